//! The decoder against everything that a socket can bring: whole frames, frames
//! in pieces, and bytes that are no frames at all.

use std::collections::HashSet;
use std::num::NonZeroU64;
use units::{Bytes, Duration, Outside};
use wire::Code;
use wire::control::Priority;
use wire::frame::{BODY_MAX, Decoder, FrameError, HEAD_LEN, Head, KINDS, TEXT_MAX, text_body};

/// Numbers without a pattern, the same in every run (SplitMix64; Steele et al. 2014).
struct Random(u64);
impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
    fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.next() as u8).collect()
    }
}

fn every_head() -> Vec<Head> {
    let (offset, len, upto) = (Bytes::mib(3), Bytes::kib(64), Bytes::new(12_345));
    vec![
        Head::HelloStream { version: 1, stream: 7 },
        Head::HelloVolume { version: 1, priority: None, writer: None },
        Head::HelloVolume { version: 1, priority: Some(Priority::Interactive), writer: None },
        Head::HelloVolume { version: 1, priority: Some(Priority::Normal), writer: None },
        Head::HelloVolume { version: 1, priority: Some(Priority::Background), writer: None },
        Head::HelloVolume { version: 1, priority: None, writer: NonZeroU64::new(77) },
        Head::HelloInTime {
            version: 2,
            len: Bytes::kib(64),
            within: Duration::from_millis(150),
            every: Duration::from_millis(500),
        },
        Head::HelloFile { version: 1 },
        Head::Given,
        Head::Give,
        Head::FileOpened { stream: 8 },
        Head::Refused { code: Code::Refused },
        Head::HelloWindow { version: 2, stream: 9 },
        Head::Bell,
        Head::Seek { tag: 3, offset },
        Head::News,
        Head::Pause { span: Duration::from_secs(3600) },
        Head::Steady { after: Duration::from_millis(80) },
        Head::Sought { first: 12, offset, ready: Duration::from_millis(5) },
        Head::Next { len },
        Head::Write,
        Head::Sync,
        Head::Close,
        Head::ReadAt { tag: 9, offset, len },
        Head::WriteAt { tag: 10, offset },
        Head::SyncAll { tag: 11 },
        Head::Welcome { version: 1, offset, len },
        Head::Data { offset },
        Head::End { offset },
        Head::Gap { offset, len },
        Head::Accepted { upto },
        Head::Durable { upto },
        Head::Synced { upto },
        Head::Closed { upto },
        Head::ReadDone { tag: u64::MAX },
        Head::WriteDone { tag: 10 },
        Head::SyncDone { tag: 11 },
        Head::Failed { tag: 0, code: Code::Busy },
    ]
}

fn decode_in_pieces(
    bytes: &[u8],
    mut piece: impl FnMut() -> usize,
) -> Result<Vec<(Head, Vec<u8>)>, FrameError> {
    let mut decoder = Decoder::new();
    let mut frames = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let want = decoder.want();
        assert!(!want.is_empty() && want.len() <= BODY_MAX.max(HEAD_LEN));
        let n = want.len().min(rest.len()).min(piece().max(1));
        want[..n].copy_from_slice(&rest[..n]);
        rest = &rest[n..];
        frames.extend(decoder.filled(n)?);
    }
    assert!(decoder.is_between_frames() || !bytes.is_empty());
    Ok(frames)
}

fn stream_of(frames: &[(Head, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (head, body) in frames {
        bytes.extend(head.encode(body.len()));
        bytes.extend(body);
    }
    bytes
}

#[test]
fn every_kind_of_frame_survives_every_split_of_the_stream() {
    let mut random = Random(1);
    let frames: Vec<_> = every_head()
        .into_iter()
        .map(|head| {
            let body = random.bytes(head.body_max().min(40));
            (head, body)
        })
        .collect();
    let kinds: HashSet<u8> = frames.iter().map(|(head, _)| head.encode(0)[4]).collect();
    assert_eq!(kinds.len(), KINDS.len(), "the list above has every kind");
    let bytes = stream_of(&frames);
    for split in 0..bytes.len() {
        let mut first = Some(split);
        let got = decode_in_pieces(&bytes, || first.take().unwrap_or(usize::MAX)).unwrap();
        assert_eq!(got, frames, "split at {split}");
    }
    for size in 1..80 {
        assert_eq!(decode_in_pieces(&bytes, || size).unwrap(), frames, "pieces of {size}");
    }
}

#[test]
fn random_frames_in_random_pieces_come_back_whole() {
    let mut random = Random(2);
    for _ in 0..300 {
        let heads = every_head();
        let mut frames = Vec::new();
        for _ in 0..random.below(12) {
            let head = heads[random.below(heads.len() as u64) as usize];
            let len = random.below(head.body_max().min(3000) as u64 + 1) as usize;
            frames.push((head, random.bytes(len)));
        }
        let bytes = stream_of(&frames);
        let got = decode_in_pieces(&bytes, || random.below(700) as usize).unwrap();
        assert_eq!(got, frames);
    }
}

#[test]
fn the_longest_body_passes_and_one_byte_more_is_refused() {
    let body = vec![7; BODY_MAX];
    let frames = vec![(Head::Write, body)];
    let mut bytes = stream_of(&frames);
    assert_eq!(decode_in_pieces(&bytes, || 65_537).unwrap(), frames);
    bytes[0..4].copy_from_slice(&(BODY_MAX as u32 + 1).to_le_bytes());
    let error = decode_in_pieces(&bytes, || 65_537).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a frame of kind 4 with a body of 1048577 bytes, 1048576 are allowed"
    );
}

#[test]
fn random_bytes_never_panic_and_what_decodes_encodes_to_the_same_bytes() {
    let mut random = Random(3);
    let (mut good, mut bad) = (0u32, 0u32);
    for _ in 0..200_000 {
        let mut head: [u8; HEAD_LEN] = random.bytes(HEAD_LEN).try_into().unwrap();
        // Most random heads fail at once; give half of them a plausible beginning.
        if random.below(2) == 0 {
            let row = &KINDS[random.below(KINDS.len() as u64) as usize];
            head[..8].fill(0);
            head[4] = row.number;
            head[0] = random.below(row.body_max.min(200) as u64 + 2) as u8;
            head[6] = random.below(30) as u8;
            for field in head[8..].chunks_mut(8) {
                if random.below(2) == 0 {
                    field.fill(0);
                }
            }
        }
        match Head::decode(&head) {
            Ok((decoded, body)) => {
                good += 1;
                assert_eq!(decoded.encode(body), head);
            }
            Err(error) => {
                bad += 1;
                assert!(!error.to_string().is_empty());
            }
        }
    }
    assert!(good > 1_000 && bad > 1_000, "both outcomes are tried: {good} good, {bad} bad");
}

#[test]
fn a_stream_of_noise_ends_in_an_error_and_never_in_a_panic() {
    let mut random = Random(4);
    for _ in 0..2_000 {
        let len = random.below(5_000) as usize;
        let noise = random.bytes(len);
        // 32 random bytes are a frame with a chance of about 2^-50.
        assert_eq!(decode_in_pieces(&noise, || 100).is_err(), len >= HEAD_LEN);
    }
}

#[test]
fn one_flipped_bit_is_either_refused_or_another_valid_frame() {
    for head in every_head() {
        let body = head.body_max().min(5);
        for bit in 0..HEAD_LEN * 8 {
            let mut bytes = head.encode(body);
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Ok((decoded, len)) = Head::decode(&bytes) {
                assert_eq!(decoded.encode(len), bytes);
                assert!((decoded, len) != (head, body));
            }
        }
    }
}

#[test]
fn a_long_text_is_cut_between_characters() {
    let text = "é".repeat(TEXT_MAX);
    let body = text_body(&text);
    assert!(body.len() <= TEXT_MAX && std::str::from_utf8(body).is_ok());
    let odd = format!("a{text}");
    assert_eq!(text_body(&odd).len(), TEXT_MAX - 1);
    assert_eq!(text_body("short"), b"short");
}

/// Numbers at which arithmetic breaks, or a limit is.
const EXTREMES: [u64; 12] = [
    0,
    1,
    1 << 31,
    1 << 32,
    1 << 53,
    (1 << 60) - 1,
    1 << 60,
    (1 << 60) + 1,
    1 << 62,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];

/// Every kind of frame with every extreme number in each of its words: what is taken is
/// within the limits, what is not is refused with the number, and nothing panics.
#[test]
fn a_frame_with_an_absurd_number_is_refused_with_the_figures() {
    let (mut taken, mut out_of_range) = (0u64, 0u64);
    for kind in 0..=255u8 {
        for (tag, offset, len) in EXTREMES.iter().flat_map(|&tag| {
            EXTREMES.iter().flat_map(move |&o| EXTREMES.iter().map(move |&len| (tag, o, len)))
        }) {
            let mut bytes = [0; HEAD_LEN];
            bytes[4] = kind;
            for (at, word) in [(8, tag), (16, offset), (24, len)] {
                bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
            }
            match Head::decode(&bytes) {
                Ok((head, _)) => {
                    assert!(offset.max(len) <= Bytes::OUTSIDE_MAX.get(), "{head:?}");
                    assert_eq!(head.checked(), Ok(head));
                    assert_eq!(head.encode(0), bytes);
                    taken += 1;
                }
                Err(error @ FrameError::Range { refused, .. }) => {
                    assert!([tag, offset, len].contains(&refused.given), "{error}");
                    assert!(error.to_string().contains(&refused.given.to_string()), "{error}");
                    out_of_range += 1;
                }
                Err(FrameError::Kind(_) | FrameError::Field(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(taken > 1_000 && out_of_range > 1_000, "{taken} taken, {out_of_range} refused");
}

#[test]
fn a_client_learns_of_an_absurd_offset_before_it_sends_it() {
    let head = Head::Seek { tag: 1, offset: Bytes::new(1 << 62) };
    assert!(matches!(head.checked(), Err(FrameError::Range { kind: 12, .. })));
}
