//! Tokens as who has one would like to change them.

use super::*;
use alloc::string::ToString;
use alloc::vec;
use units::{Outside, Rate};

fn key(byte: u8) -> Key {
    Key::new([byte; KEY_LEN])
}

fn rate(bytes: u64) -> Rate {
    Rate::from_outside(bytes).unwrap()
}

fn one(name: &str) -> Restriction {
    Restriction::Volumes(vec![Names::One(name.into())])
}

fn read_of_film() -> Token {
    let verbs = Verbs::of([Verb::Read]).unwrap();
    let all = [one("film"), Restriction::Verbs(verbs), Restriction::RateMax(rate(2_000_000))];
    Token::make(&key(1), 7, 1000, all).unwrap()
}

fn asked(verb: Verb, volume: Option<&str>) -> Asked<'_> {
    Asked { verb, volume }
}

#[test]
fn a_token_is_read_as_it_was_written_and_lets_do_what_it_says() {
    let token = Token::parse(&read_of_film().reveal()).unwrap();
    assert_eq!(token, read_of_film());
    let grant = token.checked(&key(1)).unwrap();
    assert_eq!((grant.number, grant.uid, grant.until), (7, 1000, None));
    assert_eq!(grant.permits(asked(Verb::Read, Some("film"))), Ok(()));
    assert_eq!(grant.promises(rate(2_000_000)), Ok(()));
    let refused = grant.permits(asked(Verb::Write, Some("film"))).unwrap_err();
    assert_eq!(refused, Refusal::Verb(Verb::Write));
    let refused = grant.permits(asked(Verb::Read, Some("films"))).unwrap_err();
    assert_eq!(refused, Refusal::Volume("films".into()));
    assert_eq!(grant.permits(asked(Verb::Read, None)), Err(Refusal::Pool));
    let larger = rate(2_000_001);
    assert_eq!(grant.promises(larger), Err(Refusal::Rate { asked: larger, most: rate(2_000_000) }));
}

#[test]
fn a_token_of_another_key_or_with_any_bit_changed_is_not_good() {
    let token = read_of_film();
    assert!(token.checked(&key(2)).is_none());
    let text = token.reveal();
    let mut read = 0;
    for at in PREFIX.len()..text.len() {
        for other in [b'A', b'b', b'7', b'_', b'-'] {
            let mut bytes = text.clone().into_bytes();
            if core::mem::replace(&mut bytes[at], other) == other {
                continue;
            }
            let Ok(changed) = Token::parse(core::str::from_utf8(&bytes).unwrap()) else { continue };
            read += 1;
            assert!(changed.checked(&key(1)).is_none(), "character {at} changed to {other}");
        }
    }
    assert!(read > 100, "{read} changes could be read: for a test");
}

#[test]
fn who_has_a_token_can_narrow_it_and_not_widen_it() {
    let plain = Token::make(&key(1), 1, 0, []).unwrap();
    let films = Restriction::Volumes(vec![Names::Beginning("films/".into())]);
    let narrow = plain.clone().narrowed(films).unwrap().narrowed(Restriction::Until(99)).unwrap();
    let wider = narrow
        .narrowed(Restriction::Until(500))
        .unwrap()
        .narrowed(Restriction::Volumes(vec![Names::Beginning("f".into())]))
        .unwrap();
    let grant = wider.checked(&key(1)).unwrap();
    assert_eq!(grant.until, Some(99));
    assert_eq!(grant.is_good(98), Ok(()));
    assert_eq!(grant.is_good(99), Err(Refusal::Expired { until: 99 }));
    assert!(grant.names("films/a") && !grant.names("f") && !grant.names("films"));
    // Two lists that have nothing in common leave nothing.
    let none = wider.narrowed(one("other")).unwrap().checked(&key(1)).unwrap();
    assert!(!none.names("films/a") && !none.names("other"));
    let (read, write) = (Verbs::of([Verb::Read]).unwrap(), Verbs::of([Verb::Write]).unwrap());
    let both = [Restriction::Verbs(read), Restriction::Verbs(write)];
    let none = Token::make(&key(1), 1, 0, both).unwrap().checked(&key(1)).unwrap();
    assert!(Verb::ALL.into_iter().all(|verb| none.has(verb).is_err()));
}

#[test]
fn a_restriction_that_is_taken_away_or_changed_places_is_noticed() {
    let token = read_of_film();
    for gone in 0..3 {
        let mut less = token.clone();
        less.restrictions.remove(gone);
        assert!(less.checked(&key(1)).is_none());
    }
    let mut turned = token.clone();
    turned.restrictions.swap(0, 1);
    assert!(turned.checked(&key(1)).is_none());
    // The tag of a shorter token is not in a longer one.
    let shorter = Token::make(&key(1), 7, 1000, [one("film")]).unwrap();
    let mut less = token;
    less.restrictions = shorter.restrictions.clone();
    assert!(less.checked(&key(1)).is_none() && shorter.checked(&key(1)).is_some());
}

#[test]
fn what_is_no_token_is_refused_and_so_is_what_is_too_long() {
    let text = read_of_film().reveal();
    for bad in
        ["", "slt1_", "slt1_AAAA", &text[1..], &text[..text.len() - 1], &(text.clone() + "A")]
    {
        assert_eq!(Token::parse(bad), Err(Malformed), "{bad}");
    }
    assert_eq!(Token::parse(&(text.clone() + "=")), Err(Malformed), "one spelling");
    assert_eq!(Token::parse(&"slt1_".repeat(1_000)), Err(Malformed));
    let mut token = read_of_film();
    let mut narrowings = 0;
    let refused = loop {
        match token.clone().narrowed(Restriction::Until(1)) {
            Ok(more) => token = more,
            Err(error) => break error,
        }
        narrowings += 1;
        assert_eq!(Token::parse(&token.reveal()), Ok(token.clone()));
    };
    assert_eq!((narrowings, refused), (RESTRICTIONS_MAX - 3, TooLong));
    let many = (0..200).map(|_| Names::One("x".repeat(NAME_MAX))).collect();
    let many = read_of_film().narrowed(Restriction::Volumes(many));
    assert_eq!(many, Err(TooLong));
    for unsound in [
        Restriction::Volumes(vec![]),
        one(""),
        one("a\nb"),
        one(&"x".repeat(NAME_MAX + 1)),
        Restriction::Until(UNTIL_MAX + 1),
        Restriction::RateMax(Rate::per_second(u64::MAX)),
    ] {
        assert_eq!(read_of_film().narrowed(unsound), Err(TooLong));
    }
}

/// What a daemon says, and what stands in its messages.
#[test]
fn nothing_that_is_said_shows_the_secret() {
    use alloc::format;
    let token = read_of_film();
    let text = token.reveal();
    let secret = &text[text.len() - 20..];
    let grant = token.checked(&key(1)).unwrap();
    let said = [format!("{token:?}"), format!("{:?}", key(1)), format!("{grant:?}")].concat();
    assert!(!said.contains(secret) && !said.contains("[1, 1"), "{said}");
}

#[test]
fn dates_are_those_of_the_calendar() {
    let said = |second: u64| restriction::Date(second).to_string();
    assert_eq!(said(0), "1970-01-01 00:00:00 UTC");
    assert_eq!(said(951_782_400), "2000-02-29 00:00:00 UTC");
    assert_eq!(said(1_795_474_047), "2026-11-23 22:47:27 UTC");
    assert_eq!(said(UNTIL_MAX), "9999-12-31 23:59:59 UTC");
}

/// A player's text lets nobody do more than the token that it was made of, and is no token.
#[test]
fn what_a_player_shows_is_no_token_and_nobody_else_makes_one() {
    let token = read_of_film();
    let player = token.clone().player(99);
    let read = Player::parse(&player.reveal()).unwrap();
    assert_eq!((&read, read.until()), (&player, 99));
    assert_eq!(read.checked(&key(1)), token.checked(&key(1)));
    assert!(read.checked(&key(2)).is_none(), "of another daemon");
    let text = player.reveal();
    let (_, as_token) = text.split_once('.').unwrap();
    let as_token = Token::parse(as_token).unwrap();
    assert!(as_token.checked(&key(1)).is_none());
    // Neither is the token one, nor is one made of the other, nor one that lasts longer.
    let longer = text.replacen("99", "100", 1);
    let plain = alloc::format!("99.{}", token.reveal());
    let again = as_token.clone().player(99).reveal();
    let wide = Token::make(&key(1), 7, 1000, []).unwrap();
    let wider = alloc::format!("99.{}", Token { tag: as_token.tag, ..wide }.reveal());
    for other in [longer, plain, again, wider] {
        assert!(Player::parse(&other).unwrap().checked(&key(1)).is_none(), "{other}");
    }
    for other in ["", "99", "99.", "x.y", &text[2..], &text.replacen("99", "+99", 1)] {
        assert_eq!(Player::parse(other), Err(Malformed), "{other}");
    }
    assert_eq!(Player::parse(&text.replacen("99", "099", 1)), Err(Malformed));
    assert!(!alloc::format!("{player:?}").contains("slt1"));
}
