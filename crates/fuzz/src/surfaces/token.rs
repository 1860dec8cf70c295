//! Tokens, as whoever found or made up a text would send them.

use std::sync::LazyLock;
use token::{Asked, KEY_LEN, Key, Names, Player, Restriction, Token, Verb, Verbs};
use units::{Outside, Rate};

/// Made once.
static GOOD: LazyLock<Vec<String>> = LazyLock::new(good);

fn key() -> Key {
    Key::new([0x5a; KEY_LEN])
}

/// A text. What is read as a token is written as it was; what is good is one of the seeds, since
/// nobody can make another.
pub fn ask(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else { return false };
    if let Ok(player) = Player::parse(text) {
        assert_eq!(player.reveal(), text, "what a player shows has one spelling");
        assert!(player.checked(&key()).is_none_or(|_| text == player_of_film()), "made up: {text}");
        return true;
    }
    let Ok(token) = Token::parse(text) else { return false };
    assert_eq!(token.reveal(), text, "a token has one spelling");
    let _said = format!("{token:?} {:?}", token.restrictions());
    let checked = token.checked(&key());
    assert_eq!(checked.is_some(), GOOD.iter().any(|good| good == text), "made up: {text}");
    let narrowed = token.clone().narrowed(Restriction::Until(1));
    let Ok(narrowed) = narrowed else { return true };
    assert_eq!(Token::parse(&narrowed.reveal()).as_ref(), Ok(&narrowed));
    assert_eq!(narrowed.checked(&key()).is_some(), checked.is_some());
    if let Some(grant) = narrowed.checked(&key()) {
        assert!(grant.is_good(1).is_err());
        let _ = grant.permits(Asked { verb: Verb::Read, volume: Some("film") });
    }
    true
}

fn made(number: u64, restrictions: impl IntoIterator<Item = Restriction>) -> Token {
    Token::make(&key(), number, 1000, restrictions).expect("a short one")
}

fn good() -> Vec<String> {
    let volumes = |names: &[Names]| Restriction::Volumes(names.to_vec());
    let film = volumes(&[Names::One("film".into()), Names::Beginning("films/".into())]);
    let verbs = Restriction::Verbs(Verbs::of([Verb::Read, Verb::Write]).expect("two"));
    let rate = Restriction::RateMax(Rate::from_outside(2_000_000).expect("in range"));
    let all = [film, verbs, rate, Restriction::Until(1_900_000_000)];
    vec![
        made(1, []).reveal(),
        made(2, all.clone()).reveal(),
        made(u64::MAX, [all[3].clone()]).reveal(),
    ]
}

fn player_of_film() -> String {
    made(4, []).player(1_900_000_000).reveal()
}

/// Good ones, what a player shows, and one of another daemon.
pub fn seeds() -> Vec<Vec<u8>> {
    let other = Token::make(&Key::new([1; KEY_LEN]), 1, 0, []).expect("a short one");
    good().into_iter().chain([player_of_film(), other.reveal()]).map(String::into_bytes).collect()
}
