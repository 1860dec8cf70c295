//! What a file manager does, by `gio`: the library and the calls that GNOME's uses.

use super::*;

#[test]
fn a_file_manager_copies_moves_renames_trashes_and_removes() {
    let Some(mounted) = Mounted::new() else { return };
    if !has("gio") {
        return;
    }
    let bytes = noise(1_000_003, 21);
    fs::write(mounted.dir.path("from"), &bytes).unwrap();
    fs::create_dir(mounted.dir.path("home")).unwrap();
    let from = mounted.dir.text("from");
    let gio = |args: &[&str]| {
        let mut gio = Command::new("gio");
        // No desktop, and none of its services.
        gio.env("GIO_USE_VFS", "local").env("HOME", mounted.dir.path("home")).env("LC_ALL", "C");
        gio.env_remove("XDG_DATA_HOME").env_remove("DBUS_SESSION_BUS_ADDRESS");
        gio.args(args).stdin(File::open(&from).unwrap()).current_dir(mounted.path("."));
        support::Ran::from(gio.output().unwrap())
    };
    let does = |args: &[&str]| gio(args).succeeded().text().to_owned();
    let read = |name: &str| fs::read(mounted.path(name)).unwrap();
    let is_there = |name: &str| mounted.path(name).exists();

    does(&["mkdir", "-p", "films/old"]);
    does(&["copy", "--preserve", &from, "films/a"]);
    assert!(read("films/a") == bytes);
    does(&["copy", "films/a", "films/b"]);
    does(&["move", "films/b", "films/old"]);
    assert!(!is_there("films/b") && read("films/old/b") == bytes);
    does(&["rename", "films/old/b", "another film"]);
    assert!(!is_there("films/old/b") && read("films/old/another film") == bytes);
    does(&["rename", "films/old", "new"]);
    let listed = does(&["list", "-l", "films", "films/new"]);
    let listed: Vec<Vec<_>> = listed.lines().map(|line| line.split('\t').collect()).collect();
    for entry in [["new", "0"], ["a", "1000003"], ["another film", "1000003"]] {
        assert!(listed.iter().any(|line| line[..2] == entry), "{entry:?}: {listed:?}");
    }
    assert_eq!(listed.len(), 3, "{listed:?}");

    // Out of the mount and into it, by its own name for a file.
    let out = mounted.dir.text("out");
    does(&["move", "films/new/another film", &out]);
    assert!(!is_there("films/new/another film") && fs::read(&out).unwrap() == bytes);
    does(&["copy", &format!("file://{out}"), "films/c"]);
    // One that it replaces gets another name before.
    fs::write(mounted.path("films/c"), "before").unwrap();
    does(&["copy", "--backup", &out, "films/c"]);
    assert!(read("films/c") == bytes && read("films/c~") == b"before");
    // As an editor saves: beside it, synced, and in its place.
    does(&["save", "films/c~"]);
    assert!(read("films/c~") == bytes);
    assert!(gio(&["cat", "films/c"]).succeeded().out == bytes);

    does(&["set", "-t", "uint32", "films/a", "unix::mode", &0o600.to_string()]);
    does(&["set", "-t", "uint64", "films/a", "time::modified", "1000000"]);
    let known = fs::metadata(mounted.path("films/a")).unwrap();
    assert_eq!((known.mode() & 0o7777, known.mtime()), (0o600, 1_000_000));
    let told = does(&["info", "films/a"]);
    for words in ["type: regular", "size:  1000003", "time::modified: 1000000", "unix::mode: 33152"]
    {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert!(does(&["info", "-f", "films"]).contains("filesystem::type: fuse"));

    // The bin of a mount lies at its top, with where each file was.
    does(&["trash", "films/a"]);
    assert!(!is_there("films/a") && read(".Trash-0/files/a") == bytes);
    let was = String::from_utf8(read(".Trash-0/info/a.trashinfo")).unwrap();
    assert!(was.contains("Path=films/a\n"), "{was}");

    assert_eq!(gio(&["remove", "films"]).code, Some(1), "it is not empty");
    does(&["remove", "films/c", "films/c~", "films/new"]);
    does(&["remove", "films"]);
    assert!(!is_there("films"));
}
