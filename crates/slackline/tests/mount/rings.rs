//! Rings as files: a hole in place of what was given up.

use super::{Mounted, noise};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};

/// A read of what a ring had given up was `EINVAL`, and `cp` of a ring failed.
#[test]
fn what_a_ring_has_given_up_is_a_hole_that_cannot_be_read() {
    let Some(mounted) = Mounted::new() else { return };
    let bytes = noise(150 << 20, 5);
    // Twice what a host that is in time needs.
    let ring = ["--create", "96MiB", "--ring", "--rate", "2MB/s", "--block", "256KiB"];
    let record = [&["record", "gate"], &ring[..]].concat();
    mounted.dir.run_with(&record, &bytes).recorded();
    let shown = mounted.dir.run(&["volume", "show", "gate", "--json"]).succeeded().json();
    let start = shown["ring"]["start_bytes"].as_u64().unwrap();
    assert!(start >= 16 << 20, "{start}");
    let path = mounted.path("gate");

    let file = File::open(&path).unwrap();
    let mut read = vec![0; 10_000];
    for at in [0, 5_000, start - 10_000, start - 1] {
        let refused = file.read_at(&mut read, at).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(Errno::NODATA.raw_os_error()), "{at}: {refused}");
    }
    file.read_exact_at(&mut read, start).unwrap();
    assert!(read == bytes[start as usize..][..read.len()]);
    let (data, hole) = (|at| seek(&file, SeekFrom::Data(at)), |at| seek(&file, SeekFrom::Hole(at)));
    let end = bytes.len() as u64;
    assert_eq!((data(0), data(start + 7)), (Ok(start), Ok(start + 7)));
    assert_eq!((hole(9), hole(start), data(end)), (Ok(9), Ok(end), Err(Errno::NXIO)));
    let known = fs::metadata(&path).unwrap();
    assert_eq!((known.len(), known.blocks() * 512), (end, end - start));

    // What programs make of it.
    let copy = mounted.dir.path("copy");
    mounted.shell(&format!("cp gate {}", copy.display()));
    let copied = fs::read(&copy).unwrap();
    assert!(copied.len() == bytes.len() && copied[start as usize..] == bytes[start as usize..]);
    assert!(copied[..start as usize].iter().all(|&byte| byte == 0), "a hole");
    let out = mounted.dir.path("out");
    mounted.shell(&format!("tail -c 1000 gate >{}", out.display()));
    assert!(fs::read(&out).unwrap() == bytes[bytes.len() - 1_000..]);
    mounted.shell(&format!("tail -c +{} gate >{}", start + 1, out.display()));
    assert!(fs::read(&out).unwrap() == bytes[start as usize..]);
    let said = mounted.shell("cat gate 2>&1 >/dev/null || true");
    assert!(said.contains("No data available"), "{said}");
    let writes = File::options().write(true).open(&path).unwrap();
    assert!(writes.write_at(b"x", end - 10).is_err());
}
