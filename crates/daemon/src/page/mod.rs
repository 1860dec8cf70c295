//! The page for people: what `slackline status` says, live, with the last hours.
//!
//! Its three parts are the same for everybody and say nothing of the pool, so that they are given
//! to whoever asks, without a token; what it shows it asks for itself (`overview`), with the token
//! that stands behind the `#` of its address, which no browser sends. It needs no network beside
//! the daemon, and nothing that others wrote becomes a part of it: text is set as text, and the
//! policy of its answers lets it load nothing else.

use crate::seat::Caller;
use axum::http::{HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};

/// The parts: address, media type and bytes.
const PARTS: [(&str, &str, &str); 3] = [
    ("/", "text/html; charset=utf-8", include_str!("page.html")),
    ("/page.css", "text/css; charset=utf-8", include_str!("page.css")),
    ("/page.js", "text/javascript; charset=utf-8", include_str!("page.js")),
];

/// What a browser may do with them.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src data:; media-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The part of the page at this address; none where there is another thing or nothing.
pub fn part(method: &Method, path: &str, caller: &Caller) -> Option<Response> {
    let (_, kind, text) = PARTS.iter().find(|(address, ..)| *address == path)?;
    if ![Method::GET, Method::HEAD].contains(method) {
        return None;
    }
    let mut answer = (*text).into_response();
    let headers = answer.headers_mut();
    let mut set = |name, value| headers.insert(name, HeaderValue::from_static(value));
    set(header::CONTENT_TYPE, kind);
    set(header::CONTENT_SECURITY_POLICY, POLICY);
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::REFERRER_POLICY, "no-referrer");
    // The next daemon may have another.
    set(header::CACHE_CONTROL, "no-store");
    if matches!(caller, Caller::Bearer(_)) {
        // A stranger comes again with what he shows, and takes his turn among strangers.
        set(header::CONNECTION, "close");
    }
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It works in a studio without a network, and is small enough for a phone.
    #[test]
    fn it_asks_nobody_else_and_is_small() {
        let all: usize = PARTS.iter().map(|(.., text)| text.len()).sum();
        assert!(all < 60_000, "{all} bytes");
        for (address, _, text) in PARTS {
            // The name of SVG is an address that nobody asks.
            let text = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("//www.") && !text.contains("https:"), "{address}");
            for unsafe_way in
                ["innerHTML", "outerHTML", "insertAdjacent", "eval(", "document.write"]
            {
                assert!(!text.contains(unsafe_way), "{address}: {unsafe_way}");
            }
        }
    }
}
