//! A file outside the pool through the library: read as it is, and under a contract
//! where its file system and device take one.

use crate::support::{Scratch, noise};
use client::units::{Bytes, Rate};
use client::{Code, Contract, File};
use std::io::{Read, Seek, SeekFrom};

#[test]
fn a_file_outside_the_pool_is_read_and_takes_a_contract_or_says_why_not() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let (path, bytes) = (dir.text("film"), noise(1, 300_001).bytes());
    std::fs::write(&path, &bytes).unwrap();
    std::fs::File::open(&path).unwrap().sync_all().unwrap();
    let mut options = File::options();
    options.socket(dir.path("s.sock"));
    let mut file = options.open(&path).unwrap();
    let mut back = Vec::new();
    file.read_to_end(&mut back).unwrap();
    assert!(back == bytes);
    assert_eq!(file.seek(SeekFrom::End(-200_000)).unwrap(), 100_001);
    match file.set_contract(Some(Contract::at(Rate::per_second(1_000_000)))) {
        Ok(()) => assert!(file.stream().is_some()),
        // A device that is too slow for it, or a file system that cannot tell.
        Err(error) => {
            assert!(matches!(error.code(), Some(Code::Refused | Code::BadFile)), "{error}");
            assert!(!error.next_step().is_empty() && file.contract().is_none());
        }
    }
    for place in [100_001, 7] {
        file.seek(SeekFrom::Start(place as u64)).unwrap();
        back.clear();
        file.read_to_end(&mut back).unwrap();
        assert!(back == bytes[place..], "from {place}");
    }
    let background = client::control::Priority::Background;
    assert_eq!(file.set_priority(Some(background)).unwrap_err().code(), Some(Code::Invalid));
    file.close().unwrap();
    let refused = options.write(true).create(Bytes::MIB).open(&path).unwrap_err();
    assert!(refused.to_string().contains("only read"), "{refused}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "it is as it was");
}
