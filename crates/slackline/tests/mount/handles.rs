//! File handles, as NFS servers keep them: a file is found again by its handle when nobody has it
//! open, under another name, and after the mount has ended and begun anew.

use super::*;

/// Says the handles of the files named, one in a line; or what is at each of those given: the
/// bytes of a file, or the entries of a directory and of the one above it.
const HANDLES: &str = r#"
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def checked(returned):
    if returned < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return returned
def handle(path):
    it, mount = ctypes.create_string_buffer(struct.pack('Ii', 128, 0), 136), ctypes.c_int()
    checked(libc.name_to_handle_at(-100, path.encode(), it, ctypes.byref(mount), 0))
    return it.raw.hex()
def found(root, text):
    it = ctypes.create_string_buffer(bytes.fromhex(text), 136)
    fd = checked(libc.open_by_handle_at(root, it, os.O_RDONLY))
    try: return os.read(fd, 100).decode()
    except IsADirectoryError:
        above = os.open('..', os.O_RDONLY, dir_fd=fd)
        return ' '.join(sorted(os.listdir(fd)) + ['|'] + sorted(os.listdir(above)))
root = os.open('.', os.O_RDONLY)
for word in sys.argv[2:]: print(handle(word) if sys.argv[1] == 'of' else found(root, word))
"#;

#[test]
fn a_file_is_found_by_its_handle_when_the_kernel_has_forgotten_it() {
    let Some(mounted) = Mounted::new() else { return };
    if !has("python3") {
        return;
    }
    let script = mounted.dir.text("handles.py");
    fs::write(&script, HANDLES).unwrap();
    let run = |line: &str| mounted.shell(&format!("python3 {script} {line}"));
    fs::create_dir_all(mounted.path("d/sub")).unwrap();
    fs::write(mounted.path("d/sub/f"), "bytes").unwrap();
    // No volume stands for the directory of this one.
    mounted.client().volume_create(&VolumeCreate::new("given/way/v", Bytes::MIB)).unwrap();
    let handles = run("of d/sub d/sub/f given/way");
    let handles: Vec<&str> = handles.lines().collect();
    fs::rename(mounted.path("d/sub"), mounted.path("d/other")).unwrap();
    mounted.dir.run(&["unmount", &mounted.dir.text("mnt")]).succeeded();
    mounted.dir.run(&["mount", "--allow-other", &mounted.dir.text("mnt")]).succeeded();
    let found = run(&format!("at {}", handles.join(" ")));
    assert_eq!(found.lines().collect::<Vec<_>>(), ["f | other", "bytes", "v | way"]);
    // What was removed is not found, and nothing else is in its place.
    fs::remove_file(mounted.path("d/other/f")).unwrap();
    fs::write(mounted.path("d/other/f"), "others").unwrap();
    let said = mounted.shell(&format!("python3 {script} at {} 2>&1 || true", handles[1]));
    assert!(said.trim_end().ends_with("Stale file handle"), "{said}");
}
