//! The daemon below a mount is stopped and started again, as an upgrade does it, or another pool is served
//! in its place.

use super::*;

impl Mounted {
    /// The daemon is stopped in order, and started again.
    fn restart_daemon(&mut self) {
        let daemon = self.daemon.take().unwrap();
        daemon.signal("TERM");
        assert_eq!(daemon.wait().0, Some(0));
        self.daemon = Some(self.dir.serve(&self.disks));
    }
}

/// A daemon that is stopped says so on each connection, also where nobody uses it: none of these is used
/// again. (Whoever had used a file in the last minutes had EIO from then on.)
#[test]
fn files_go_on_over_a_stop_and_a_start() {
    let Some(mut mounted) = Mounted::new() else { return };
    let path = mounted.path("f");
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    for round in 1..4_u8 {
        file.write_all_at(&[round; 9000], 0).unwrap();
        file.sync_all().unwrap();
        mounted.restart_daemon();
        // Opened anew the bytes come from the daemon, and by the descriptor they go there.
        let direct = OpenOptions::new().read(true).custom_flags(O_DIRECT).open(&path).unwrap();
        let mut page = Page([0; 4096]);
        direct.read_exact_at(&mut page.0, 4096).unwrap();
        assert_eq!(page.0, [round; 4096]);
        file.write_all_at(&[100 + round], 0).unwrap();
        file.sync_all().unwrap();
        fs::write(mounted.path("other"), [round]).unwrap();
    }
}

/// What was made behind a start of the daemon is its own: `fsync` tells of no loss.
#[test]
fn what_is_made_behind_a_kill_is_not_told_as_lost_with_it() {
    let Some(mut mounted) = Mounted::new() else { return };
    for round in 0..4 {
        fs::write(mounted.path("before"), b"some change, just before").unwrap();
        mounted.kill_daemon();
        let file = File::create(mounted.path(&format!("new{round}"))).unwrap();
        (&file).write_all(b"whole").unwrap();
        fs::set_permissions(
            mounted.path(&format!("new{round}")),
            fs::Permissions::from_mode(0o600),
        )
        .unwrap();
        file.sync_all().unwrap();
    }
}

/// Volumes have numbers, and those of another pool have the same: nothing of it is touched.
#[test]
fn another_pool_at_the_same_socket_is_not_taken_for_the_one_that_is_mounted() {
    let Some(mut mounted) = Mounted::new() else { return };
    let path = mounted.path("mine");
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    file.write_all_at(&[1; 4096], 0).unwrap();
    file.sync_all().unwrap();
    mounted.daemon.take().unwrap().kill();
    let others = mounted.dir.make_pool_of(&["b"], "1GiB");
    let other = mounted.dir.serve(&others);
    let client = mounted.client();
    let theirs = client.volume_create(&VolumeCreate::new("theirs", Bytes::mib(1))).unwrap();
    let mut bytes = client.best_effort("theirs").unwrap();
    bytes.write_at(Bytes::ZERO, &[2; 4096]).unwrap();
    bytes.sync().unwrap();
    let own = fs::metadata(&path).map(|file| file.ino());
    assert_eq!(own.map_err(|error| error.raw_os_error()), Err(Some(5)), "{}", theirs.number);
    for refused in [
        file.write_all_at(&[3; 100], 0),
        file.sync_all(),
        fs::remove_file(&path),
        fs::rename(&path, mounted.path("theirs")),
        fs::write(mounted.path("new"), b"new"),
        fs::read(&path).map(drop),
    ] {
        assert_eq!(refused.map_err(|error| error.raw_os_error()), Err(Some(5)));
    }
    let mut seen = [0; 4096];
    client.best_effort("theirs").unwrap().read_at(Bytes::ZERO, &mut seen).unwrap();
    assert_eq!(seen, [2; 4096]);
    assert_eq!(client.volumes().unwrap().len(), 1);
    // With its own pool it goes on.
    other.kill();
    mounted.daemon = Some(mounted.dir.serve(&mounted.disks));
    file.write_all_at(&[4; 4096], 0).unwrap();
    file.sync_all().unwrap();
    assert_eq!(fs::read(&path).unwrap(), [4; 4096]);
}

/// `cp -p` and `tar` set the time of a file and close it then: the space that the mount had reserved ahead
/// goes back with the last close, and that is no modification.
#[test]
fn a_time_that_was_set_outlives_the_close() {
    let Some(mounted) = Mounted::new() else { return };
    let path = mounted.path("f");
    let at = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    for len in [100, 6_200_000] {
        let mut file = File::create(&path).unwrap();
        file.write_all(&noise(len, 3)).unwrap();
        file.set_modified(at).unwrap();
        drop(file);
        // Seen behind the close's end, which does not wait for it: the space is given back then.
        support::wait_until(|| {
            let known = mounted.client().volume("f").unwrap();
            known.size_bytes < known.length_bytes + Bytes::mib(1)
        });
        let second = mounted.client().volume("f").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), at, "{len} {second:?}");
    }
}

/// The daemon was started again between the two that asked for space: the second is not forgotten.
#[test]
fn space_that_was_reserved_behind_a_start_of_the_daemon_stays() {
    let Some(mut mounted) = Mounted::new() else { return };
    let mut file = File::create(mounted.path("f")).unwrap();
    file.write_all(&noise(14 << 20, 3)).unwrap();
    file.sync_all().unwrap();
    let has = mounted.client().volume("f").unwrap().size_bytes;
    assert!(has > Bytes::mib(15), "the mount has reserved {has}");
    mounted.kill_daemon();
    let keep = rustix::fs::FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&file, keep, 0, 15 << 20).unwrap();
    drop(file);
    support::wait_until(|| mounted.client().volume("f").unwrap().size_bytes < has);
    assert_eq!(mounted.client().volume("f").unwrap().size_bytes, Bytes::mib(15));
}
