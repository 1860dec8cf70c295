//! The negotiation and the requests of NBD as its document has them, byte for byte, and as a
//! client gets them wrong.

use wire::nbd::handshake::{
    ALLOCATION, Chosen, Export, Exports, Handshake, Next, OPTION_HEAD_LEN, OptionHead, greeting,
};
use wire::nbd::transmission::{self, Command, Errno, Extent, Request};
use wire::nbd::{Broken, NAME_MAX, PAYLOAD_MAX};

/// One export that may be written, and one that may not.
struct Two;
impl Exports for Two {
    fn names(&self) -> Result<Vec<String>, String> {
        Ok(vec!["film".into(), "old".into()])
    }
    fn find(&self, name: &str) -> Result<Export, String> {
        let is_read_only = match name {
            "film" => false,
            "old" => true,
            _ => return Err("no such volume".into()),
        };
        Ok(Export {
            called: name.into(),
            size: 1 << 30,
            is_read_only,
            description: "a volume".into(),
        })
    }
}

const EXPORT_NAME: u32 = 1;
const ABORT: u32 = 2;
const LIST: u32 = 3;
const STARTTLS: u32 = 5;
const INFO: u32 = 6;
const GO: u32 = 7;
const STRUCTURED: u32 = 8;
const LIST_CONTEXT: u32 = 9;
const SET_CONTEXT: u32 = 10;
const EXTENDED: u32 = 11;

const ACK: u32 = 1;
const SERVER: u32 = 2;
const INFORMED: u32 = 3;
const CONTEXT: u32 = 4;
const UNSUPPORTED: u32 = 0x8000_0001;
const INVALID: u32 = 0x8000_0003;
const UNKNOWN: u32 = 0x8000_0006;
const POLICY: u32 = 0x8000_0002;
const TLS_REQUIRED: u32 = 0x8000_0005;

/// What the server says to an option: the kinds of its replies with their data, and what next.
fn ask(handshake: &mut Handshake, option: u32, data: &[u8]) -> (Vec<(u32, Vec<u8>)>, Next) {
    let mut out = Vec::new();
    let next = handshake.option(option, data, &Two, &mut out);
    let (mut rest, mut replies) = (&out[..], Vec::new());
    while !rest.is_empty() {
        let word = |at: usize| u32::from_be_bytes(rest[at..at + 4].try_into().unwrap());
        assert_eq!((word(0), word(4)), (0x0003_e889, 0x0455_65a9), "the magic of a reply");
        assert_eq!(word(8), option, "a reply names its option");
        let len = word(16) as usize;
        replies.push((word(12), rest[20..20 + len].to_vec()));
        rest = &rest[20 + len..];
    }
    (replies, next)
}

fn kinds(replies: &[(u32, Vec<u8>)]) -> Vec<u32> {
    replies.iter().map(|(kind, _)| *kind).collect()
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat()
}

fn wanted(name: &str, infos: &[u16]) -> Vec<u8> {
    let mut data = [&text(name)[..], &(infos.len() as u16).to_be_bytes()].concat();
    infos.iter().for_each(|info| data.extend(info.to_be_bytes()));
    data
}

fn contexts(name: &str, queries: &[&str]) -> Vec<u8> {
    let mut data = [&text(name)[..], &(queries.len() as u32).to_be_bytes()].concat();
    queries.iter().for_each(|query| data.extend(text(query)));
    data
}

fn begin() -> Handshake {
    Handshake::new(3).unwrap()
}

#[test]
fn the_server_greets_in_the_fixed_newstyle_and_takes_nobody_else() {
    assert_eq!(&greeting()[..16], b"NBDMAGICIHAVEOPT");
    assert_eq!(greeting()[16..], [0, 3]);
    for flags in [0, 2, 4, 5, 7, u32::MAX] {
        assert_eq!(Handshake::new(flags).err(), Some(Broken::Flags(flags)));
    }
    assert!(Handshake::new(1).is_ok());
}

#[test]
fn an_options_head_is_a_magic_a_number_and_a_length_that_is_bounded() {
    let head = |magic: &[u8; 8], option: u32, len: u32| {
        let bytes = [&magic[..], &option.to_be_bytes(), &len.to_be_bytes()].concat();
        let bytes: [u8; OPTION_HEAD_LEN] = bytes.try_into().unwrap();
        OptionHead::decode(&bytes)
    };
    assert_eq!(head(b"IHAVEOPT", 7, 12), Ok(OptionHead { option: 7, len: 12 }));
    assert_eq!(head(b"IHAVEOPT", 7, 8_193), Err(Broken::OptionLen(8_193)));
    assert!(matches!(head(b"ihaveopt", 7, 12), Err(Broken::OptionMagic(_))));
}

#[test]
fn exports_are_listed_asked_about_and_chosen() {
    let mut handshake = begin();
    let (listed, next) = ask(&mut handshake, LIST, &[]);
    let names = [(SERVER, text("film")), (SERVER, text("old")), (ACK, vec![])];
    assert_eq!((listed, next), (names.to_vec(), Next::Option));

    let (told, next) = ask(&mut handshake, INFO, &wanted("film", &[1, 2, 3]));
    assert_eq!(next, Next::Option, "asking chooses nothing");
    assert_eq!(kinds(&told), [INFORMED, INFORMED, INFORMED, INFORMED, ACK]);
    let size = [0, 0, 0, 0, 0x40, 0, 0, 0];
    // Has flags, flush, FUA, trim, zeroes, may not be divided, many connections.
    let flags = (1u16 | 4 | 8 | 32 | 64 | 128 | 256).to_be_bytes();
    assert_eq!(told[0].1, [&[0, 0][..], &size, &flags].concat());
    assert_eq!(told[1].1, b"\0\x01film");
    assert_eq!(told[2].1, b"\0\x02a volume");
    assert_eq!(told[3].1, [0, 3, 0, 0, 0, 1, 0, 0, 0x10, 0, 2, 0, 0, 0]);

    let (told, next) = ask(&mut handshake, GO, &wanted("old", &[]));
    assert_eq!(kinds(&told), [INFORMED, INFORMED, ACK]);
    let flags = u16::from_be_bytes(told[0].1[10..].try_into().unwrap());
    assert_eq!(flags, 1 | 2 | 4 | 8 | 128 | 256, "read-only, so no trim and no zeroes");
    let Next::Transmit(chosen) = next else { panic!("it was chosen") };
    assert!(chosen.export.is_read_only && !chosen.is_structured && !chosen.asks_allocation);
}

/// Whoever can read along could else read names, and whoever can write could choose for others.
#[test]
fn where_tls_is_required_nothing_else_is_answered_before_it() {
    let mut handshake = begin().with_tls_required();
    for option in [LIST, INFO, GO, STRUCTURED, LIST_CONTEXT, SET_CONTEXT, EXTENDED, 99] {
        let (replies, next) = ask(&mut handshake, option, &wanted("film", &[]));
        assert_eq!((kinds(&replies), next), (vec![TLS_REQUIRED], Next::Option), "{option}");
    }
    let (replies, next) = ask(&mut handshake, STARTTLS, b"x");
    assert_eq!((kinds(&replies), next), (vec![INVALID], Next::Option));
    let (replies, next) = ask(&mut handshake.clone(), EXPORT_NAME, b"film");
    assert_eq!((replies, next), (vec![], Next::End));
    let (replies, next) = ask(&mut handshake.clone(), ABORT, &[]);
    assert_eq!((kinds(&replies), next), (vec![ACK], Next::End));
    let (replies, next) = ask(&mut handshake, STARTTLS, &[]);
    assert_eq!((kinds(&replies), next), (vec![ACK], Next::StartTls));

    let mut handshake = handshake.is_behind_tls();
    let (replies, next) = ask(&mut handshake, STARTTLS, &[]);
    assert_eq!((kinds(&replies), next), (vec![INVALID], Next::Option), "once");
    let (_, next) = ask(&mut handshake, GO, &wanted("film", &[]));
    let Next::Transmit(chosen) = next else { panic!("it was chosen") };
    assert!(!chosen.is_structured, "what was said before TLS is forgotten");
    let (replies, _) = ask(&mut begin(), STARTTLS, &[]);
    assert_eq!(kinds(&replies), [UNSUPPORTED], "where there is no TLS");
}

/// Exports that nobody is told.
struct Secret;
impl Exports for Secret {
    fn names(&self) -> Result<Vec<String>, String> {
        Err("not here".into())
    }
    fn find(&self, _: &str) -> Result<Export, String> {
        Err("none".into())
    }
}

#[test]
fn a_list_that_nobody_is_told_is_refused_and_the_next_option_is_heard() {
    let mut out = Vec::new();
    assert_eq!(begin().option(LIST, &[], &Secret, &mut out), Next::Option);
    assert_eq!(out[12..16], POLICY.to_be_bytes());
    assert_eq!(&out[20..], b"not here");
}

#[test]
fn the_old_way_to_choose_is_answered_or_ends_the_connection() {
    let export_name = |flags, name: &[u8]| {
        let mut out = Vec::new();
        let mut handshake = Handshake::new(flags).unwrap();
        (handshake.option(EXPORT_NAME, name, &Two, &mut out), out.len())
    };
    assert!(matches!(export_name(1, b"film"), (Next::Transmit(_), 134)));
    assert!(matches!(export_name(3, b"film"), (Next::Transmit(_), 10)));
    assert_eq!(export_name(3, b"none"), (Next::End, 0));
    assert_eq!(export_name(3, b"\xff\xfe"), (Next::End, 0));
    assert_eq!(export_name(3, &[b'a'; NAME_MAX + 1]), (Next::End, 0));
}

#[test]
fn contexts_need_structured_replies_and_hold_for_the_export_they_were_chosen_for() {
    let mut handshake = begin();
    let set = contexts("film", &["x-other:thing", ALLOCATION]);
    assert_eq!(kinds(&ask(&mut handshake, SET_CONTEXT, &set).0), [INVALID]);
    assert_eq!(kinds(&ask(&mut handshake, STRUCTURED, &[]).0), [ACK]);
    let listed = [&[0, 0, 0, 0][..], ALLOCATION.as_bytes()].concat();
    for queries in [&[][..], &["base:"], &[ALLOCATION]] {
        let (told, _) = ask(&mut handshake, LIST_CONTEXT, &contexts("film", queries));
        assert_eq!(told, [(CONTEXT, listed.clone()), (ACK, vec![])], "{queries:?}");
    }
    let chosen = |handshake: &mut Handshake, name| match ask(handshake, GO, &wanted(name, &[])).1 {
        Next::Transmit(chosen) => chosen.asks_allocation,
        _ => panic!("it was chosen"),
    };
    let (told, _) = ask(&mut handshake, SET_CONTEXT, &set);
    assert_eq!(told[0].1, [&[0, 0, 0, 1][..], ALLOCATION.as_bytes()].concat());
    assert!(chosen(&mut handshake.clone(), "film"));
    assert!(!chosen(&mut handshake.clone(), "old"), "it was chosen for another export");
    // A choice of nothing takes its place, and one that fails does.
    let none = contexts("film", &["base:"]);
    assert_eq!(kinds(&ask(&mut handshake.clone(), SET_CONTEXT, &none).0), [ACK]);
    for (data, wanted) in [(none, ACK), (contexts("x", &[ALLOCATION]), UNKNOWN)] {
        let mut handshake = handshake.clone();
        assert_eq!(kinds(&ask(&mut handshake, SET_CONTEXT, &data).0), [wanted]);
        assert!(!chosen(&mut handshake, "film"));
    }
}

#[test]
fn what_a_client_gets_wrong_is_refused_by_its_name_and_the_next_option_is_heard() {
    let mut handshake = begin();
    let long = [&(NAME_MAX as u32 + 1).to_be_bytes()[..], &[b'a'; NAME_MAX + 1], &[0, 0]].concat();
    let behind = [wanted("film", &[]), vec![0]].concat();
    let short = wanted("film", &[1, 2, 3]);
    let many = [&text("film")[..], &u32::MAX.to_be_bytes(), &text("base:")].concat();
    for (option, data, wanted) in [
        (LIST, &b"x"[..], INVALID),
        (STRUCTURED, b"x", INVALID),
        (GO, b"", INVALID),
        (GO, &long, INVALID),
        (GO, &behind, INVALID),
        (GO, &short[..short.len() - 1], INVALID),
        (GO, &wanted("none", &[]), UNKNOWN),
        (LIST_CONTEXT, &many, INVALID),
        (LIST_CONTEXT, &contexts("none", &[]), UNKNOWN),
        (STARTTLS, b"", UNSUPPORTED),
        (EXTENDED, b"", UNSUPPORTED),
        (u32::MAX, b"whatever", UNSUPPORTED),
    ] {
        let (told, next) = ask(&mut handshake, option, data);
        assert_eq!((kinds(&told), next), (vec![wanted], Next::Option), "{option}");
    }
    assert_eq!(ask(&mut handshake, ABORT, &[]), (vec![(ACK, vec![])], Next::End));
}

fn chosen(is_read_only: bool, is_structured: bool, asks_allocation: bool) -> Chosen {
    let export = Export {
        called: "film".into(),
        size: 100_000_000,
        is_read_only,
        description: String::new(),
    };
    Chosen { name: "film".into(), export, is_structured, asks_allocation }
}

fn request(kind: u16, flags: u16, offset: u64, len: u32) -> Request {
    Request { flags, kind, cookie: 7, offset, len }
}

#[test]
fn requests_are_read_as_they_are_written_and_what_is_none_ends_the_connection() {
    for request in [request(0, 0, 1, 2), request(1, 1, u64::MAX, PAYLOAD_MAX)] {
        assert_eq!(Request::decode(&request.encode()), Ok(request));
    }
    let mut bytes = request(0, 0, 1, 2).encode();
    assert_eq!(bytes[..8], [0x25, 0x60, 0x95, 0x13, 0, 0, 0, 0]);
    bytes[0] = 0;
    assert_eq!(Request::decode(&bytes), Err(Broken::RequestMagic(0x0060_9513)));
    // There would be no next request to read behind it; a read of as much is answered.
    let more = PAYLOAD_MAX + 1;
    assert_eq!(Request::decode(&request(1, 0, 0, more).encode()), Err(Broken::PayloadLen(more)));
    assert!(Request::decode(&request(0, 0, 0, more).encode()).is_ok());
}

#[test]
fn a_request_is_held_against_the_export_that_was_chosen() {
    const SIZE: u64 = 100_000_000;
    let writable = chosen(false, true, true);
    let ask = |kind, flags, offset, len| request(kind, flags, offset, len).command(&writable);
    let durable = true;
    assert_eq!(ask(0, 0, 5, 9), Ok(Command::Read { offset: 5, len: 9, in_one: false }));
    assert_eq!(ask(0, 4, 5, 9), Ok(Command::Read { offset: 5, len: 9, in_one: true }));
    assert_eq!(ask(1, 1, SIZE - 9, 9), Ok(Command::Write { offset: SIZE - 9, len: 9, durable }));
    assert_eq!(ask(2, 0, 0, 0), Ok(Command::Disconnect));
    assert_eq!(ask(3, 0, 0, 0), Ok(Command::Flush));
    assert_eq!(ask(4, 1, 0, 9), Ok(Command::Trim { offset: 0, len: 9, durable }));
    // Zeros may be more than any payload.
    let all = SIZE as u32;
    assert_eq!(ask(6, 3, 0, all), Ok(Command::WriteZeroes { offset: 0, len: all, durable }));
    assert_eq!(ask(7, 8, 0, all), Ok(Command::BlockStatus { offset: 0, len: all, one: true }));
    for (kind, flags, offset, len, wanted) in [
        (0, 0, SIZE - 8, 9, Errno::Invalid),
        (0, 0, u64::MAX, 1, Errno::Invalid),
        (0, 0, 0, PAYLOAD_MAX + 1, Errno::Invalid),
        (0, 4, 0, (1 << 20) + 1, Errno::Overflow),
        (1, 0, SIZE - 8, 9, Errno::NoSpace),
        (1, 0, u64::MAX, u32::MAX, Errno::NoSpace),
        (4, 0, SIZE, 1, Errno::NoSpace),
        (6, 16, 0, 9, Errno::NotSupported),
        (3, 0, 1, 0, Errno::Invalid),
        (0, 2, 0, 9, Errno::Invalid),
        (1, 32, 0, 9, Errno::Invalid),
        (7, 0, 0, 0, Errno::Invalid),
        (5, 0, 0, 9, Errno::Invalid),
        (8, 0, 0, 9, Errno::Invalid),
        (u16::MAX, 0, 0, 9, Errno::Invalid),
    ] {
        assert_eq!(ask(kind, flags, offset, len), Err(wanted), "{kind} {flags} {offset} {len}");
    }
    let old = chosen(true, true, false);
    for kind in [1, 4, 6] {
        assert_eq!(request(kind, 0, 0, 9).command(&old), Err(Errno::NotPermitted));
    }
    assert_eq!(request(7, 0, 0, 9).command(&old), Err(Errno::Invalid), "no context was chosen");
    let simple = chosen(false, false, false);
    let whole = Command::Read { offset: 5, len: 9, in_one: true };
    assert_eq!(request(0, 0, 5, 9).command(&simple), Ok(whole), "there is one reply");
}

#[test]
fn replies_are_as_the_document_has_them() {
    let cookie = 0x0102_0304_0506_0708;
    let simple = [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 5, 1, 2, 3, 4, 5, 6, 7, 8];
    assert_eq!(transmission::simple(cookie, Some(Errno::Io)), simple);
    let head = |kind: u16, done: u8, len: u8| {
        let kind = kind.to_be_bytes();
        let magic = [0x66, 0x8e, 0x33, 0xef, 0, done, kind[0], kind[1]];
        [&magic[..], &[1, 2, 3, 4, 5, 6, 7, 8], &[0, 0, 0, len]].concat()
    };
    let offset = [0, 0, 0, 0, 0, 0, 0x10, 0];
    let data = [head(1, 0, 17), offset.to_vec()].concat();
    assert_eq!(transmission::data(cookie, false, 4096, 9)[..], data);
    let hole = [head(2, 1, 12), offset.to_vec(), vec![0, 0, 0, 9]].concat();
    assert_eq!(transmission::hole(cookie, true, 4096, 9), hole);
    assert_eq!(transmission::none(cookie), head(0, 1, 0));
    let error = [head(0x8001, 1, 9), vec![0, 0, 0, 28, 0, 3], b"why".to_vec()].concat();
    assert_eq!(transmission::error(cookie, Errno::NoSpace, "why"), error);
    let long = transmission::error(cookie, Errno::Io, &"ö".repeat(NAME_MAX));
    assert_eq!(long.len(), 20 + 6 + NAME_MAX, "cut between two letters");
    let extents = [Extent { len: 4096, is_hole: false }, Extent { len: 8192, is_hole: true }];
    let told = [0, 0, 0, 1, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 3];
    assert_eq!(transmission::status(cookie, &extents), [&head(5, 1, 20)[..], &told].concat());
}
