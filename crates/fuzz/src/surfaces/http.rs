//! What a request for the bytes of a volume says about them, in its headers.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use daemon::http::conditions::{Destination, Wanted, place, precondition, range, tag_of};
use node::VolumeId;
use units::{Bytes, Outside};

/// Bytes of an input before its headers: how many the volume has recorded.
const HEAD: usize = 8;

/// The volume's length, and then a header in each line. A surface of its own tag: `TAG` in a
/// value stands for it.
pub fn ask(input: &[u8]) -> bool {
    let Some((length, text)) = input.split_first_chunk::<HEAD>() else { return false };
    let Ok(length) = Bytes::from_outside(u64::from_le_bytes(*length)) else { return false };
    let own = tag_of(VolumeId(7), 1, 2);
    let mut asked = HeaderMap::new();
    for line in text.split(|&byte| byte == b'\n').take(16) {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
        let (Ok(name), value) = (HeaderName::from_bytes(&line[..colon]), &line[colon + 1..]) else {
            continue;
        };
        let value = value.trim_ascii();
        let value = if value == b"TAG" { own.as_bytes() } else { value };
        if let Ok(value) = HeaderValue::from_bytes(value) {
            asked.append(name, value);
        }
    }
    let held = precondition(&asked, &own);
    // Elements of a list that are empty are passed over, also beside a star.
    let is_any = |value: &HeaderValue| {
        let bytes = value.as_bytes().iter().filter(|byte| !b" \t,".contains(byte));
        bytes.eq(b"*")
    };
    let names_others = |value: &HeaderValue| value != own && !is_any(value);
    if asked.get_all(header::IF_MATCH).iter().any(|value| value == own || is_any(value)) {
        assert_ne!(held, Some(StatusCode::PRECONDITION_FAILED), "{asked:?}");
    } else if let Some(known) = asked.get(header::IF_MATCH)
        && names_others(known)
        && !contains(known, &own)
        && asked.get_all(header::IF_MATCH).iter().count() == 1
    {
        assert_eq!(held, Some(StatusCode::PRECONDITION_FAILED), "{asked:?}");
    }
    let wanted = range(&asked, &own, length);
    if let Wanted::Part(part) = &wanted {
        assert!(part.start < part.end && part.end <= length, "{part:?} of {length:?}");
        // The same in other words.
        let text = format!("bytes={}-{}", part.start.get(), part.end.get() - 1);
        let again = HeaderValue::from_str(&text).expect("digits");
        let again = range(&HeaderMap::from_iter([(header::RANGE, again)]), &own, length);
        assert_eq!(again, wanted);
        assert!(asked.get_all(header::IF_RANGE).iter().all(|known| known == own), "{asked:?}");
    }
    let placed = place(&asked);
    if let Ok(place) = &placed {
        write(&asked, place);
    }
    held.is_some() || wanted != Wanted::All || placed.is_ok_and(|place| !place.is_whole)
}

fn contains(value: &HeaderValue, own: &HeaderValue) -> bool {
    value.as_bytes().windows(own.len()).any(|part| part == own.as_bytes())
}

/// Bytes that are taken go where a volume can be, as many as the body has.
fn write(asked: &HeaderMap, place: &Destination) {
    if place.is_whole {
        assert!(place.offset.is_zero() && !asked.contains_key(header::CONTENT_RANGE));
    }
    match place.end() {
        Some(Some(end)) => {
            let len = place.len.expect("an end is that of so many bytes");
            assert!(end <= Bytes::OUTSIDE_MAX && place.offset + len == end, "{place:?}");
        }
        Some(None) => assert!(place.len.is_none() && place.is_whole),
        None => {}
    }
    let said = asked.get(header::CONTENT_LENGTH).and_then(|said| said.to_str().ok()?.parse().ok());
    if let (Some(said), Some(len)) = (said, place.len) {
        assert_eq!(len, Bytes::new(said));
    }
}

pub fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "range: bytes=0-99\nif-range: TAG",
        "range: bytes=4096-",
        "range: bytes=-500\nif-range: \"other\"",
        "range: bytes=1000000-2000000",
        "range: bytes=0-1,4-5",
        "if-match: TAG",
        "if-match: \"a b\", \"7-1-2\"\nif-none-match: W/\"7-1-2\"",
        "if-none-match: *\ncontent-length: 5",
        "if-match: *,",
        "if-none-match: TAG\nrange: bytes=7-7",
        "content-range: bytes 7-11/*\ncontent-length: 5",
        "content-range: bytes 4096-8191/1000000",
        // Two lengths: a failure that was found.
        "content-range: bytes 7-11/*\ncontent-length: 5\ncontent-length: 6",
        "content-range: bytes 1152921504606846970-1152921504606846975/*",
    ];
    let seed = |text: &&str| [&1_000_000u64.to_le_bytes()[..], text.as_bytes()].concat();
    texts.iter().map(seed).collect()
}
