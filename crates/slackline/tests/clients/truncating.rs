//! What a volume has reserved stays reserved when what is recorded is cut, however much others want it.

use crate::support::Scratch;
use client::control::VolumeCreate;
use client::units::Bytes;
use client::{Client, Code, File};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn nobody_else_gets_the_space_of_a_volume_that_is_cut() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let client = Client::connect(dir.path("s.sock")).unwrap();
    // All of the pool.
    let pool = client.status().unwrap().disks.iter().map(|disk| disk.free_bytes.get()).sum();
    let size = Bytes::new(pool);
    client.volume_create(&VolumeCreate::new("all", size)).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let others = scope.spawn(|| {
            let one = VolumeCreate::new("other", Bytes::MIB);
            while !is_over.load(Ordering::Acquire) {
                match client.volume_create(&one) {
                    Ok(_) => return true,
                    Err(error) => assert_eq!(error.code(), Some(Code::PoolFull), "{error}"),
                }
            }
            false
        });
        let mut file = File::options().socket(dir.path("s.sock")).write(true).open("all").unwrap();
        for _ in 0..5 {
            file.write_all(&[7; 70_001]).unwrap();
            file.set_len(file.position() - Bytes::new(10_000)).unwrap();
            assert_eq!(file.size(), size);
        }
        is_over.store(true, Ordering::Release);
        assert!(!others.join().unwrap(), "another volume has got some of it");
        file.close().unwrap();
    });
    let volume = client.volume("all").unwrap();
    assert_eq!(volume.size_bytes, size);
}
