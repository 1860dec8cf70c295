//! A file outside the pool through the library: read as it is, and under a contract
//! where its file system and device take one.

use crate::support::{Daemon, Scratch, noise};
use client::units::{Bytes, Rate};
use client::{Code, Contract, File};
use std::io::{Read, Seek, SeekFrom};

/// A daemon that gives contracts on files of this directory, by a profile that is stated; none where the
/// file system gives none.
pub fn serve(dir: &Scratch) -> Option<Daemon> {
    let probe = dir.path("probe");
    std::fs::write(&probe, [1; 4096]).unwrap();
    let probe = std::fs::File::open(probe).unwrap();
    probe.sync_all().unwrap();
    if !skips::can_run(skips::is_fit_for_contracts(&dir.path("")), "needs TMPDIR on ext4 or xfs") {
        return None;
    }
    let device = engine::HostFile::take(probe.into()).unwrap().device().unwrap();
    let (pool, drive) = (dir.make_pool(&["a"]), dir.text("drive.toml"));
    let profile = std::fs::read_to_string(dir.text("profile.toml")).unwrap();
    std::fs::write(&drive, profile.replace("256MiB", "64TiB")).unwrap();
    let name = device.name;
    let config =
        format!("[[files.device]]\ndevice = '{name}'\nprofile = '{drive}'\nothers = '1ms'\n");
    std::fs::write(dir.text("config.toml"), config).unwrap();
    let more = ["--config", &dir.text("config.toml"), "--shared-drive"];
    Some(dir.try_serve(&pool, &more).unwrap_or_else(|ran| panic!("no daemon: {}", ran.err)))
}

/// A file of these bytes, on the medium.
pub fn lay(path: &str, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
    std::fs::File::open(path).unwrap().sync_all().unwrap();
}

#[test]
fn who_reads_a_file_goes_on_with_it_when_another_one_gets_its_name() {
    let dir = Scratch::new();
    let Some(_daemon) = serve(&dir) else { return };
    let (old, new) = (noise(1, 300_001).bytes(), noise(2, 300_001).bytes());
    lay(&dir.text("film"), &old);
    lay(&dir.text("new"), &new);
    let contract = Contract::at(Rate::per_second(1_000_000)).block(Bytes::kib(64));
    let mut file = File::options()
        .socket(dir.path("s.sock"))
        .contract(contract)
        .open(&dir.text("film"))
        .unwrap();
    let mut back = vec![0; 100_000];
    file.read_exact(&mut back).unwrap();
    assert!(back == old[..100_000]);
    std::fs::rename(dir.path("new"), dir.path("film")).unwrap();
    // The stream of such a file goes only forward: another one is opened.
    for place in [7, 200_000, 3] {
        file.seek(SeekFrom::Start(place as u64)).unwrap();
        back.resize(50_000, 0);
        file.read_exact(&mut back).unwrap();
        assert!(file.stream().is_some());
        assert!(back == old[place..][..50_000], "from {place}");
    }
    file.set_contract(None).unwrap();
    file.read_exact(&mut back).unwrap();
    assert!(back == old[50_003..100_003], "and as best effort");
    file.close().unwrap();
}

#[test]
fn a_path_that_leads_to_no_file_is_told_in_the_systems_words() {
    let dir = Scratch::new();
    std::fs::write(dir.path("file"), "").unwrap();
    std::os::unix::fs::symlink(dir.path("loop"), dir.path("loop")).unwrap();
    for (name, number, word) in [
        ("nothing", 2, "No such file or directory"),
        ("file/below", 20, "Not a directory"),
        ("loop", 40, "Too many levels"),
    ] {
        let path = dir.text(name);
        let error = File::open(&path).unwrap_err();
        assert_eq!(error.errno(), number, "{error}");
        let said = error.to_string();
        assert!(said.contains(&path) && said.contains(word), "{said}");
        assert!(error.next_step().contains("path"), "{}", error.next_step());
        let kind = std::io::Error::from(error).kind();
        assert_eq!(kind, std::io::Error::from_raw_os_error(number).kind());
    }
}

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
