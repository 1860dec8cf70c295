//! What a player in the page shows in place of a token: a cookie, which is for reading the bytes of
//! one volume.
//!
//! A `<video>` cannot send a header. What it shows is made of the token that the page has
//! (`token::Player`), narrowed to reading one volume, in a cookie that programs in the page do not see
//! and that the browser sends to this volume's bytes alone.
//!
//! Invariants: it is looked at only where bytes of a volume are read and no token is shown; it is no
//! token; what begins with it ends with the token that it was made of.

use crate::limits::PLAYER_WITHIN;
use crate::tokens::now;
use axum::http::{HeaderMap, HeaderValue, Method, Request, header};
use token::{Malformed, Names, Player, Restriction, Token, TooLong, Verb, Verbs};
use units::Rate;

/// What the cookie is called.
const COOKIE: &str = "slackline-player";

/// Whether the connection is encrypted: what is shown on such a one is sent on no other.
#[derive(Clone, Copy)]
pub struct Secret(pub bool);

/// What a player shows with this request, where a player may show something.
pub fn shown<B>(request: &Request<B>) -> Option<&str> {
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    let parts: Vec<_> = request.uri().path().split('/').collect();
    let is_of_bytes = matches!(parts[..], ["", "v1", "volumes", _, "data"]);
    let headers = request.headers();
    if !is_read || !is_of_bytes || headers.contains_key(header::AUTHORIZATION) {
        return None;
    }
    cookie(headers)
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut cookies = lines.flat_map(|line| line.split(';'));
    // Of several the first one is for the longest path (RFC 6265, section 5.4).
    cookies.find_map(|cookie| {
        let (name, value) = cookie.trim().split_once('=')?;
        (name == COOKIE).then_some(value)
    })
}

/// Why there is no permission for a player.
pub enum NotMade {
    /// What was shown is no token.
    Malformed(Malformed),
    /// The token has no room for one more restriction.
    TooLong(TooLong),
}

/// A permission for a player made of a token, and until when something begins with it.
///
/// # Errors
/// The token cannot be narrowed.
pub fn made(token: &str, volume: &str) -> Result<Player, NotMade> {
    let token = Token::parse(token).map_err(NotMade::Malformed)?;
    let only = [
        Restriction::Volumes(vec![Names::One(volume.to_owned())]),
        Restriction::Verbs(Verbs::of([Verb::Read]).expect("one")),
        // It makes no contracts.
        Restriction::RateMax(Rate::ZERO),
    ];
    let narrowed = only.into_iter().try_fold(token, Token::narrowed);
    Ok(narrowed.map_err(NotMade::TooLong)?.player(now() + PLAYER_WITHIN.as_secs()))
}

/// The cookie with it, for the volume whose permission was asked for at this address. It lies in no
/// file that lasts longer, and goes to no page of others.
pub fn set(player: &Player, address: &str, Secret(is_secret): Secret) -> Option<HeaderValue> {
    let path = address.strip_suffix("/player")?;
    let secure = if is_secret { "; Secure" } else { "" };
    let cookie = format!(
        "{COOKIE}={}; Path={path}/data; Max-Age={}; HttpOnly; SameSite=Strict{secure}",
        player.reveal(),
        PLAYER_WITHIN.as_secs()
    );
    HeaderValue::try_from(cookie).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &str, path: &str, headers: &[(&str, &str)]) -> Request<()> {
        let builder = Request::builder().method(method).uri(path);
        let set = |builder: axum::http::request::Builder, (name, value): &(&str, &str)| {
            builder.header(*name, *value)
        };
        headers.iter().fold(builder, set).body(()).unwrap()
    }

    #[test]
    fn a_player_is_heard_where_it_reads_and_nowhere_else() {
        let (data, cookie) = ("/v1/volumes/a%2Fb/data", ("cookie", "x=1; slackline-player=p; y"));
        for (method, path) in [("GET", data), ("HEAD", data), ("GET", &format!("{data}?rate=1"))] {
            assert_eq!(shown(&asked(method, path, &[cookie])), Some("p"), "{method} {path}");
        }
        for (method, path) in [
            ("PUT", data),
            ("POST", data),
            ("GET", "/v1/volumes/a"),
            ("GET", "/v1/volumes/a/data/"),
            ("GET", "/v1/volumes/a/b/data"),
            ("GET", "/v1/volumes/data"),
            ("GET", "/v1/overview"),
            ("GET", "//v1/volumes/a/data"),
        ] {
            assert_eq!(shown(&asked(method, path, &[cookie])), None, "{method} {path}");
        }
        // A token goes before it, whatever it is; and another cookie is none.
        let token = ("authorization", "Bearer nothing");
        assert_eq!(shown(&asked("GET", data, &[cookie, token])), None);
        assert_eq!(shown(&asked("GET", data, &[("cookie", "player=p")])), None);
        let both = [("cookie", "slackline-player=p"), ("cookie", "slackline-player=q")];
        assert_eq!(shown(&asked("GET", data, &both)), Some("p"));
    }
}
