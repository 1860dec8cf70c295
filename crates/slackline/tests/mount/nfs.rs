//! The mount exported by nfs-ganesha, with the configuration that the documents name.

use super::*;
use std::net::TcpListener;
use std::process::Child;

/// A server that ends with the test.
pub struct Server(pub Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port that nobody listens on, as far as can be known.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn answers_for_ports() -> bool {
    let asked = Command::new("rpcinfo").args(["-p", "127.0.0.1"]).output();
    asked.is_ok_and(|ran| ran.status.success())
}

#[test]
fn what_is_copied_over_nfs_is_what_the_files_hold() {
    let Some(mounted) = Mounted::new() else { return };
    if !["ganesha.nfsd", "nfs-cp", "nfs-ls", "rpcbind", "rpcinfo"].into_iter().all(has) {
        return;
    }
    // Without a portmapper ganesha ends at once. Where the machine has none, this one ends with the test.
    let _portmapper = (!answers_for_ports()).then(|| {
        // Only on 127.0.0.1 (`-h`) rpcbind 1.2.6 aborts: a double free of its own.
        let portmapper = Server(Command::new("rpcbind").arg("-f").spawn().unwrap());
        support::wait_until(answers_for_ports);
        portmapper
    });
    let root = mounted.dir.text("mnt");
    let settings = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/ganesha.conf");
    let settings = fs::read_to_string(settings).unwrap();
    let (port, mounts) = (free_port(), free_port());
    let here =
        format!("NFS_CORE_PARAM {{ NFS_Port = {port}; MNT_Port = {mounts}; Bind_addr = 127.0.0.1;");
    let settings = settings.replace("NFS_CORE_PARAM {", &here).replace("/mnt/pool", &root);
    // Clients of a server before it are not waited for, and what is copied is root's.
    let settings = settings.replace("NFSV4 {", "NFSV4 { Graceless = true;");
    let settings = settings.replace("Root_Squash", "No_Root_Squash");
    let is_set =
        [&*root, "Graceless", "No_Root_Squash"].into_iter().all(|it| settings.contains(it));
    assert!(is_set, "{settings}");
    fs::write(mounted.dir.path("ganesha.conf"), settings).unwrap();
    let [settings, log, pid] = ["ganesha.conf", "ganesha.log", "ganesha.pid"];
    let [settings, log, pid] = [settings, log, pid].map(|name| mounted.dir.text(name));
    let mut server = Command::new("ganesha.nfsd");
    server.args(["-F", "-f", &settings, "-L", &log, "-p", &pid]);
    let mut server = Server(server.spawn().unwrap());
    let url = |name: &str, version: u8| {
        let root = if version == 3 { &*root } else { "/pool" };
        format!("nfs://127.0.0.1{root}{name}?version={version}&nfsport={port}&mountport={mounts}")
    };
    let ended = |tool: &str, args: &[&str]| {
        let ran = Command::new(tool).args(args).output().unwrap();
        (ran.status.success(), String::from_utf8_lossy(&ran.stdout).into_owned())
    };
    fs::create_dir(mounted.path("films")).unwrap();
    support::wait_until(|| {
        let over = server.0.try_wait().unwrap();
        assert!(over.is_none(), "{}", fs::read_to_string(&log).unwrap_or_default());
        ended("nfs-ls", &[&url("/", 3)]).0
    });
    let bytes = noise(3_000_001, 9);
    fs::write(mounted.dir.path("from"), &bytes).unwrap();
    let (from, to) = (mounted.dir.text("from"), mounted.dir.path("to"));
    assert!(ended("nfs-cp", &[&from, &url("/films/f", 3)]).0, "written");
    assert_eq!(fs::read(mounted.path("films/f")).unwrap(), bytes);
    // By version 4 the nfs-cp of libnfs 4.0 cannot write, to an export of ext4 either.
    for version in [3, 4] {
        assert!(ended("nfs-cp", &[&url("/films/f", version), &to.display().to_string()]).0);
        assert_eq!(fs::read(&to).unwrap(), bytes);
        fs::remove_file(&to).unwrap();
        let (_, listed) = ended("nfs-ls", &[&url("/films", version)]);
        assert!(listed.contains("3000001 f"), "{listed}");
    }
}
