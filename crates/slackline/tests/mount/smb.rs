//! The mount served by Samba, with the settings that the documents name.

use super::nfs::{Server, free_port};
use super::*;

#[test]
fn what_is_copied_over_smb_is_what_the_files_hold() {
    let Some(mounted) = Mounted::new() else { return };
    if !["smbd", "smbclient", "smbpasswd"].into_iter().all(has) {
        return;
    }
    let own = mounted.dir.path("smb");
    fs::create_dir(&own).unwrap();
    let (own, port) = (own.display(), free_port());
    let settings = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/smb.conf");
    let settings = fs::read_to_string(settings).unwrap();
    // A server of its own beside the machine's, here alone.
    let places =
        ["pid directory", "lock directory", "state directory", "cache directory", "private dir"];
    let places: String = places.iter().map(|place| format!("{place} = {own}\n")).collect();
    let here = format!(
        "[global]\n{places}ncalrpc dir = {own}/rpc\nlog file = {own}/log\nsmb ports = {port}\n\
         interfaces = 127.0.0.1\nbind interfaces only = yes\n"
    );
    let root = mounted.dir.text("mnt");
    let settings =
        settings.replace("[global]\n", &here).replace("= /mnt/pool", &format!("= {root}"));
    assert!(settings.contains(&here) && settings.contains(&format!("path = {root}")), "{settings}");
    fs::write(mounted.dir.path("smb.conf"), settings).unwrap();
    let settings = mounted.dir.text("smb.conf");
    let ended = |program: &str, args: &[&str], input: &str| {
        fs::write(mounted.dir.path("input"), input).unwrap();
        let input = File::open(mounted.dir.path("input")).unwrap();
        let ran = Command::new(program).args(args).stdin(input).output().unwrap();
        let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
        (ran.status.success(), said)
    };
    let (is_set, said) =
        ended("smbpasswd", &["-c", &settings, "-s", "-a", "root"], "secret\nsecret\n");
    assert!(is_set, "{said}");
    let mut server = Command::new("smbd");
    server.args(["--foreground", "--no-process-group", "--debug-stdout", "-s", &settings]);
    let log = File::create(mounted.dir.path("smbd.log")).unwrap();
    server.stdin(Stdio::null()).stderr(log.try_clone().unwrap()).stdout(log);
    let mut server = Server(server.spawn().unwrap());
    let (share, at) = ("//127.0.0.1/pool", port.to_string());
    let ask = |password: &str, commands: &str| {
        let user = format!("root%{password}");
        ended("smbclient", &["-s", &settings, "-p", &at, "-U", &user, share, "-c", commands], "")
    };
    support::wait_until(|| {
        let over = server.0.try_wait().unwrap();
        assert!(over.is_none(), "{}", fs::read_to_string(mounted.dir.path("smbd.log")).unwrap());
        ask("secret", "ls").0
    });
    let (is_let_in, said) = ask("another", "ls");
    assert!(!is_let_in && said.contains("NT_STATUS_LOGON_FAILURE"), "{said}");
    let done = |commands: &str| {
        let (is_done, said) = ask("secret", commands);
        assert!(is_done && !said.contains("NT_STATUS"), "{commands}: {said}");
        said
    };

    let bytes = noise(3_000_001, 10);
    fs::write(mounted.dir.path("from"), &bytes).unwrap();
    let (from, to) = (mounted.dir.text("from"), mounted.dir.text("to"));
    done(&format!("mkdir films; put {from} films\\f"));
    assert!(fs::read(mounted.path("films/f")).unwrap() == bytes, "written");
    assert_eq!(mounted.client().volume("films/f").unwrap().length_bytes, Bytes::new(3_000_001));
    done(&format!("get films\\f {to}"));
    assert!(fs::read(&to).unwrap() == bytes, "read");
    // What another program changes is read by the next who comes.
    let file = OpenOptions::new().write(true).open(mounted.path("films/f")).unwrap();
    file.write_all_at(b"changed", 1_000_000).unwrap();
    done(&format!("rename films\\f films\\g; mkdir films\\sub; get films\\g {to}"));
    assert_eq!(&fs::read(&to).unwrap()[1_000_000..][..7], b"changed");
    let listed = done("cd films; ls");
    assert!(listed.contains(" 3000001 ") && listed.contains(" sub "), "{listed}");
    let mode = fs::metadata(mounted.path("films/g")).unwrap().mode();
    assert_eq!(mode & 0o111, 0, "{mode:o}: x is not an attribute of DOS");
    done("deltree films");
    assert_eq!(fs::read_dir(mounted.path(".")).unwrap().count(), 0);
}
