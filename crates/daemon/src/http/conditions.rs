//! What a request says about the bytes that it means: entity tags, conditions, ranges.
//!
//! RFC 9110, sections 8.8.3, 13 and 14. A request for several ranges is answered with all bytes,
//! which the standard permits. No date of a change is kept, so that conditions on dates are passed
//! over; `if-range` with a date is answered with all bytes.

use crate::api::Failure;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use headers::{ContentLength, HeaderMapExt};
use node::VolumeId;
use std::ops::Range;
use units::{Bytes, Outside};
use wire::{Code, Problem};

/// The tag of a volume's bytes: `run` is another number for each start of the daemon, since
/// `changes` is counted anew then.
pub fn tag_of(volume: VolumeId, run: u64, changes: u64) -> HeaderValue {
    let text = format!("\"{:x}-{run:x}-{changes:x}\"", volume.0);
    text.try_into().expect("hexadecimal digits in quotes are a value")
}

/// The tags that a header names.
enum Tags<'a> {
    Any,
    /// Those that can be understood, as they are written.
    Some(Vec<&'a str>),
}

/// Reads a list of tags by itself: the crate `headers` takes `*` for a tag where it stands twice,
/// and asserts that no tag has a space in it, which a client may well send.
fn tags(asked: &HeaderMap, name: HeaderName) -> Option<Tags<'_>> {
    if !asked.contains_key(&name) {
        return None;
    }
    let mut known = Vec::new();
    for value in asked.get_all(name) {
        let mut rest = value.to_str().unwrap_or_default().trim_matches([' ', '\t', ',']);
        if rest == "*" {
            return Some(Tags::Any);
        }
        // A comma within the quotes is a part of the tag.
        while let Some(opens) = rest.find('"') {
            let Some(len) = rest[opens + 1..].find('"') else { break };
            let end = opens + len + 2;
            known.push(rest[..end].trim_start_matches([' ', '\t', ',']));
            rest = &rest[end..];
        }
    }
    Some(Tags::Some(known))
}

/// Whether the request is not to be done: the status that says so. A condition that cannot be
/// understood names no bytes.
pub fn precondition(asked: &HeaderMap, tag: &HeaderValue) -> Option<StatusCode> {
    let own = tag.to_str().expect("a tag is made of hexadecimal digits");
    // `if-none-match` looks at no more than the bytes, `if-match` at which way they are told, too.
    let weak = |known: &str| known.strip_prefix("W/").unwrap_or(known) == own;
    let is_changed = match tags(asked, header::IF_MATCH) {
        None | Some(Tags::Any) => false,
        Some(Tags::Some(known)) => !known.contains(&own),
    };
    let is_known = match tags(asked, header::IF_NONE_MATCH) {
        None => false,
        Some(Tags::Any) => true,
        Some(Tags::Some(known)) => known.into_iter().any(weak),
    };
    match (is_changed, is_known) {
        (true, _) => Some(StatusCode::PRECONDITION_FAILED),
        (false, true) => Some(StatusCode::NOT_MODIFIED),
        (false, false) => None,
    }
}

/// What of the bytes is wanted.
#[derive(Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All bytes.
    All,
    /// At least one byte.
    Part(Range<Bytes>),
    /// A range behind the end.
    Nothing,
}

/// What of `length` bytes is wanted. A range that cannot be understood is none; one of bytes that
/// cannot be understood is one of others.
pub fn range(asked: &HeaderMap, tag: &HeaderValue, length: Bytes) -> Wanted {
    if asked.get_all(header::IF_RANGE).iter().any(|known| known != tag) {
        return Wanted::All;
    }
    let mut values = asked.get_all(header::RANGE).iter();
    let (Some(text), None) = (values.next(), values.next()) else { return Wanted::All };
    let Some(one) = text.to_str().ok().and_then(one_range) else { return Wanted::All };
    let length = length.get();
    let (start, end) = match one {
        One::From(first, last) => {
            (first, last.map_or(length, |last| last.saturating_add(1)).min(length))
        }
        One::Last(count) => (length.saturating_sub(count), length),
    };
    match start < end {
        true => Wanted::Part(Bytes::new(start)..Bytes::new(end)),
        false => Wanted::Nothing,
    }
}

/// A range as it is written.
enum One {
    From(u64, Option<u64>),
    Last(u64),
}

/// The range of `bytes=…`, where it is one and valid.
fn one_range(text: &str) -> Option<One> {
    let (unit, set) = text.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = set.trim().split_once('-')?;
    let (first, last) = (first.trim(), last.trim());
    match (first.is_empty(), last.is_empty()) {
        (true, true) => None,
        (true, false) => Some(One::Last(number(last)?)),
        (false, true) => Some(One::From(number(first)?, None)),
        (false, false) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(One::From(first, Some(last)))
        }
    }
}

/// Digits and nothing else; more than a number holds are the largest one.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Where the bytes of a write go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// From here on.
    pub offset: Bytes,
    /// So many, where the request says it.
    pub len: Option<Bytes>,
    /// They are all that there shall be.
    pub is_whole: bool,
}

impl Destination {
    /// Where the bytes end, where the request says it; `None` behind all that a volume can have.
    pub fn end(&self) -> Option<Option<Bytes>> {
        let Some(len) = self.len else { return Some(None) };
        let end = self.offset.checked_add(len)?;
        Some(Some(end.checked().ok()?))
    }
}

/// Where a request puts its bytes.
///
/// # Errors
/// A range that says something else than the length, or something else than where the bytes go.
pub fn place(asked: &HeaderMap) -> Result<Destination, Failure> {
    let Ok(len) = asked.typed_try_get::<ContentLength>() else {
        let next = "write one number of bytes";
        return Err(Problem::new(Code::BadRequest, "content-length: no number", next).into());
    };
    let len = len.map(|len| Bytes::new(len.0));
    let mut values = asked.get_all(header::CONTENT_RANGE).iter();
    let Some(text) = values.next() else {
        return Ok(Destination { offset: Bytes::ZERO, len, is_whole: true });
    };
    let bad = |what: &str| {
        let next = "write `content-range: bytes FIRST-LAST/*` with as many bytes in the body";
        Failure::from(Problem::new(Code::BadRequest, format!("content-range: {what}"), next))
    };
    if values.next().is_some() {
        return Err(bad("there are several"));
    }
    let text = text.to_str().map_err(|_| bad("it is no text"))?;
    let range = text.strip_prefix("bytes ").and_then(|rest| rest.split_once('/'));
    let (range, whole) = range.ok_or_else(|| bad("it names no range of bytes"))?;
    let (first, last) = range.split_once('-').ok_or_else(|| bad("it names no first and last"))?;
    let (Some(first), Some(last)) = (number(first), number(last)) else {
        return Err(bad("first and last are no numbers"));
    };
    // How long the client takes the volume to be is not looked at, but it has to make sense.
    if whole != "*" && number(whole).is_none_or(|whole| whole <= last) {
        return Err(bad("it ends behind the length that it names"));
    }
    let said = last.checked_sub(first).and_then(|less| less.checked_add(1));
    let said = Bytes::new(said.ok_or_else(|| bad("the last byte comes before the first"))?);
    match len {
        Some(len) if len != said => Err(bad("it has another length than the body")),
        _ => Ok(Destination { offset: Bytes::new(first), len: Some(said), is_whole: false }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn with(name: header::HeaderName, text: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(text).unwrap())])
    }

    #[test]
    fn a_range_is_read_as_the_standard_says() {
        let tag = HeaderValue::from_static("\"a\"");
        let wanted = |text: &str| range(&with(header::RANGE, text), &tag, Bytes::new(10));
        let part = |start, end| Wanted::Part(Bytes::new(start)..Bytes::new(end));
        assert_eq!(wanted("bytes=0-0"), part(0, 1));
        assert_eq!(wanted("bytes=2-5"), part(2, 6));
        assert_eq!(wanted("Bytes = 2-5"), part(2, 6));
        assert_eq!(wanted("bytes=2-"), part(2, 10));
        assert_eq!(wanted("bytes=2-99999999999999999999999999"), part(2, 10));
        assert_eq!(wanted("bytes=9-18446744073709551615"), part(9, 10));
        assert_eq!(wanted("bytes=-3"), part(7, 10));
        assert_eq!(wanted("bytes=-30"), part(0, 10));
        for behind in ["bytes=10-", "bytes=10-12", "bytes=99999999999999999999-", "bytes=-0"] {
            assert_eq!(wanted(behind), Wanted::Nothing, "{behind}");
        }
        for none in
            ["bytes=", "bytes=-", "bytes=5-2", "bytes=a-b", "bytes=+1-2", "lines=1-2", "0-1"]
        {
            assert_eq!(wanted(none), Wanted::All, "{none}");
        }
        assert_eq!(wanted("bytes=0-1,4-5"), Wanted::All, "several");
    }

    #[test]
    fn a_range_of_other_bytes_is_answered_with_all() {
        let tag = HeaderValue::from_static("\"a\"");
        let mut asked = with(header::RANGE, "bytes=0-0");
        for (known, is_part) in [("\"a\"", true), ("\"b\"", false), ("W/\"a\"", false)] {
            asked.insert(header::IF_RANGE, HeaderValue::from_str(known).unwrap());
            let wanted = range(&asked, &tag, Bytes::new(10));
            assert_eq!(matches!(wanted, Wanted::Part(_)), is_part, "{known}");
        }
        for other in ["Sat, 29 Oct 1994 19:43:31 GMT", "a", "\"a b\"", "", "\"a\", \"b\""] {
            asked.insert(header::IF_RANGE, HeaderValue::from_static(other));
            assert_eq!(range(&asked, &tag, Bytes::new(10)), Wanted::All, "{other}");
        }
    }

    /// Whoever names other bytes than there are, or names them so that nobody understands it,
    /// changes nothing; a client may put anything that it likes between the quotes.
    #[test]
    fn a_condition_is_held_against_the_tag() {
        let tag = HeaderValue::from_static("\"a\"");
        let status = |name: HeaderName, texts: &[&str]| {
            let mut asked = HeaderMap::new();
            for text in texts {
                asked.append(&name, HeaderValue::from_str(text).unwrap());
            }
            precondition(&asked, &tag).map(|status| status.as_u16())
        };
        for (texts, is_own) in [
            (&["\"a\""][..], true),
            (&["*"], true),
            (&["*", "*"], true),
            (&["\"b\", \"a\""], true),
            (&["\"b\"", "\"a\""], true),
            (&["\"b,\",\"a\" ,"], true),
            (&["\"a b\""], false),
            (&["\", a"], false),
            (&["a"], false),
            (&["\"a"], false),
            (&[""], false),
            (&["\"b\""], false),
        ] {
            let status = |name| status(name, texts);
            assert_eq!(status(header::IF_MATCH), (!is_own).then_some(412), "{texts:?}");
            assert_eq!(status(header::IF_NONE_MATCH), is_own.then_some(304), "{texts:?}");
        }
        assert_eq!(status(header::IF_MATCH, &["W/\"a\""]), Some(412));
        assert_eq!(status(header::IF_NONE_MATCH, &["W/\"a\""]), Some(304));
    }

    #[test]
    fn a_write_says_where_its_bytes_go() {
        let mut asked = HeaderMap::new();
        let whole = Destination { offset: Bytes::ZERO, len: None, is_whole: true };
        assert_eq!(place(&asked).ok(), Some(whole));
        asked.insert(header::CONTENT_LENGTH, HeaderValue::from_static("5"));
        asked.insert(header::CONTENT_RANGE, HeaderValue::from_static("bytes 7-11/*"));
        let part = Destination { offset: Bytes::new(7), len: Some(Bytes::new(5)), is_whole: false };
        assert_eq!(place(&asked).ok(), Some(part));
        assert_eq!(part.end(), Some(Some(Bytes::new(12))));
        asked.insert(header::CONTENT_RANGE, HeaderValue::from_static("bytes 7-11/12"));
        assert_eq!(place(&asked).ok(), Some(part));
        for bad in [
            "bytes 7-12/*",
            "bytes 7-11/11",
            "bytes 7-11/",
            "bytes 7-11/x",
            "bytes 11-7/*",
            "bytes */5",
            "bytes 0-18446744073709551615/*",
            "bytes -1-3/*",
            "lines 7-11/*",
            "",
        ] {
            asked.insert(header::CONTENT_RANGE, HeaderValue::from_str(bad).unwrap());
            assert!(place(&asked).is_err(), "{bad}");
        }
        // Two lengths; a fuzzed input.
        asked.insert(header::CONTENT_RANGE, HeaderValue::from_static("bytes 7-11/*"));
        assert!(place(&asked).is_ok());
        asked.append(header::CONTENT_LENGTH, HeaderValue::from_static("6"));
        assert!(place(&asked).is_err());
    }
}
