//! What a look at a volume has shown is what comes next, and no more than that: whoever goes away and
//! comes back, or looks once more, sees what is there by then.

use crate::support::Scratch;
use client::units::{Bytes, Rate};
use client::{Contract, File, OpenOptions, Peek, Piece};
use std::io::{Read, Seek, SeekFrom, Write};

/// A volume with these bytes, and how it is opened.
fn volume(dir: &Scratch, bytes: &[u8]) -> OpenOptions {
    let mut options = File::options();
    options.socket(dir.path("s.sock"));
    let mut made = options.clone().write(true).create(Bytes::mib(4)).open("v").unwrap();
    made.write_all(bytes).unwrap();
    made.close().unwrap();
    options
}

#[track_caller]
fn sees(file: &mut File, len: usize, wanted: u8) {
    match file.peek(len).unwrap() {
        Peek::Data(seen) => assert_eq!(seen, vec![wanted; len]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_others_wrote_since_a_look_is_seen_by_the_next_look_and_behind_a_seek() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let options = volume(&dir, &[1; 100_000]);
    let mut other = options.clone().write(true).open("v").unwrap();
    let mut write = |place: u64, byte: u8| {
        other.write_at(Bytes::new(place), &[byte; 5000]).unwrap();
    };
    let mut file = options.open("v").unwrap();
    // Whoever looks at one place again and again waits for news there.
    sees(&mut file, 100, 1);
    write(0, 2);
    sees(&mut file, 100, 2);
    assert!(matches!(file.peek_whole(5000).unwrap(), Peek::Data(seen) if seen == [2; 5000]));
    write(0, 3);
    assert!(matches!(file.peek_whole(5000).unwrap(), Peek::Data(seen) if seen == [3; 5000]));
    // What was shown is what is passed and read, whatever happens meanwhile.
    write(0, 4);
    file.advance(1000).unwrap();
    sees(&mut file, 1000, 3);
    let mut back = [0; 1000];
    file.read_exact(&mut back).unwrap();
    assert_eq!(back, [3; 1000]);
    // Some bytes are asked for by their place: they are those that are there.
    let mut back = [0; 1000];
    assert_eq!(file.read_at(Bytes::new(2000), &mut back).unwrap(), Piece::Data(1000));
    assert_eq!(back, [4; 1000]);
    // Who comes back.
    file.seek(SeekFrom::Start(2000)).unwrap();
    file.read_exact(&mut back).unwrap();
    assert_eq!(back, [4; 1000]);
    sees(&mut file, 1000, 4);
    write(0, 5);
    file.set_playout(Bytes::new(3000)).unwrap();
    file.read_exact(&mut back).unwrap();
    assert_eq!(back, [5; 1000]);
    file.close().unwrap();
}

#[test]
fn what_was_seen_and_then_changed_by_the_same_handle_is_read_as_it_is() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let options = volume(&dir, &[1; 100_000]);
    let contract = Contract::at(Rate::per_second(300_000)).block(Bytes::kib(16));
    let contract = contract.burst(Bytes::kib(64));
    let mut file = options.clone().update(true).contract(contract).open("v").unwrap();
    assert!(matches!(file.peek_whole(100).unwrap(), Peek::Data(seen) if seen == [1; 100]));
    assert_eq!(file.write_at(Bytes::ZERO, &[2; 100]).unwrap(), 100);
    file.set_contract(None).unwrap();
    let mut back = [0; 200];
    file.read_exact(&mut back).unwrap();
    assert_eq!(back[..100], [2; 100]);
    assert_eq!(back[100..], [1; 100]);
    file.close().unwrap();
}

#[test]
fn only_what_the_stream_has_shown_is_passed_under_contract() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let options = volume(&dir, &[1; 100_000]);
    let mut file = options.open("v").unwrap();
    sees(&mut file, 5000, 1);
    file.set_contract(Some(Contract::at(Rate::per_second(1_000_000)))).unwrap();
    file.seek(SeekFrom::Start(100)).unwrap();
    let refused = file.advance(10).unwrap_err();
    assert!(refused.to_string().contains("the 0 that were seen"), "{refused}");
    sees(&mut file, 10, 1);
    file.advance(10).unwrap();
    assert_eq!(file.position(), Bytes::new(110));
    file.close().unwrap();
}
