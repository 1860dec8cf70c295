//! Frames of the data socket, in pieces of any size.

use wire::frame::{Decoder, HEAD_LEN, Head};

/// The first byte says in pieces of which size the rest comes in.
pub fn ask(input: &[u8]) -> bool {
    let Some((&size, mut rest)) = input.split_first() else { return false };
    let mut frames = 0;
    let size = usize::from(size) + 1;
    let mut decoder = Decoder::new();
    let mut consumed = Vec::new();
    while !rest.is_empty() {
        let want = decoder.want();
        assert!(!want.is_empty(), "a decoder that wants nothing");
        let len = want.len().min(size).min(rest.len());
        want[..len].copy_from_slice(&rest[..len]);
        consumed.extend_from_slice(&rest[..len]);
        rest = &rest[len..];
        match decoder.filled(len) {
            Err(_) => break,
            Ok(None) => assert!(!decoder.is_between_frames(), "half a frame is none"),
            Ok(Some((head, body))) => {
                let written = [&head.encode(body.len())[..], &body].concat();
                assert_eq!(written, consumed, "{head:?} is written as it was read");
                assert!(body.len() <= head.body_max() && decoder.is_between_frames());
                frames += 1;
                consumed.clear();
                decoder.recycle(body);
            }
        }
    }
    frames > 0
}

/// One head of each kind, and several frames in a row.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for kind in 0..=u8::MAX {
        for code in 0..4u8 {
            let mut bytes = [0; HEAD_LEN];
            bytes[4] = kind;
            bytes[6] = code;
            let Ok((head, _)) = Head::decode(&bytes) else { continue };
            bytes[0] = head.body_max().min(5) as u8;
            let body = &b"bytes"[..usize::from(bytes[0])];
            seeds.push([&[31], &bytes[..], body, &bytes[..], body].concat());
        }
    }
    seeds
}
