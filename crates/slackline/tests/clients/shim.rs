//! Programs of Debian's, as they are, on volumes: through the shim.

use crate::installed::{prefix, run};
use crate::support::{Scratch, noise};
use std::path::Path;
use std::process::{Command, Output};

/// A program whose paths below /slackline are volumes of this directory's daemon.
pub fn shimmed(dir: &Scratch, program: &str, rate: &str) -> Command {
    let mut command = Command::new(program);
    command
        .env("LD_PRELOAD", prefix().join("lib/libslackline_preload.so"))
        .env("SLACKLINE_SOCKET", dir.path("s.sock"))
        .env("SLACKLINE_CREATE", "16MiB")
        .env("SLACKLINE_RATE", rate);
    command
}

fn output(command: &mut Command) -> Output {
    command.stdin(std::process::Stdio::null()).output().unwrap()
}

#[test]
fn programs_of_the_core_utilities_read_and_write_volumes() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let bytes = noise(1, 700_001).bytes();
    let file = dir.text("file");
    std::fs::write(&file, &bytes).unwrap();
    let shell = |line: &str| output(shimmed(&dir, "sh", "8MB/s").args(["-c", line]));
    let good = |line: &str| {
        let output = shell(line);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !said.contains("slackline"), "{line}: {said}");
        output.stdout
    };
    good(&format!("dd if={file} of=/slackline/v bs=10000 2>/dev/null"));
    assert!(good("cat /slackline/v") == bytes, "cat gives what dd has written");
    assert_eq!(good("stat -c '%s %F' /slackline/v"), b"700001 regular file\n");
    assert_eq!(good("wc -c /slackline/v"), b"700001 /slackline/v\n");
    assert!(good("dd if=/slackline/v bs=1000 skip=699 2>/dev/null") == bytes[699_000..]);
    assert!(good("tail -c 100 /slackline/v") == bytes[699_901..]);
    assert!(good("head -c 100 /slackline/v") == bytes[..100]);
    good(&format!("cmp {file} /slackline/v"));
    for _ in 0..2 {
        good(&format!("cp {file} /slackline/copy"));
        assert!(good("cat /slackline/copy") == bytes, "also where there is one: no directory");
    }
    // In its place: what is around it stays.
    good("printf patch | dd of=/slackline/v bs=5 seek=1000 conv=notrunc 2>/dev/null");
    let patched = [&bytes[..5000], b"patch", &bytes[5005..]].concat();
    assert!(good("cat /slackline/v") == patched);
    // Written anew it is as short as what is written.
    good(&format!("head -c 1000 {file} | dd of=/slackline/v 2>/dev/null"));
    assert!(good("cat /slackline/v") == bytes[..1000]);

    let missing = shell("cat /slackline/nobody");
    assert!(String::from_utf8_lossy(&missing.stderr).contains("No such file or directory"));
    assert!(good(&format!("cat {file}")) == bytes, "other files are left alone");
}

/// Lists of memory at a place, as they are and with a sync; the descriptor's place stays.
#[test]
fn lists_of_memory_go_to_a_place_and_come_from_it() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let script = "import os\n\
        f = os.open('/slackline/v', os.O_RDWR | os.O_CREAT)\n\
        print(os.pwritev(f, [b'head', b'', b'er and ', b'body'], 10))\n\
        print(os.pwritev(f, [b'more', b'over'], 25, os.RWF_DSYNC))\n\
        a, b = bytearray(5), bytearray(100)\n\
        print(os.preadv(f, [a, b], 8), bytes(a), bytes(b[:20]))\n\
        print(os.lseek(f, 0, 1), os.readv(f, [a, b]), os.lseek(f, 0, 1))\n\
        print(os.preadv(f, [a], 33), os.preadv(f, [a], 31, os.RWF_HIPRI))\n\
        try: os.preadv(f, [a], 0, os.RWF_NOWAIT)\n\
        except OSError as error: print(error.errno)\n\
        g = os.open('/etc/hostname', os.O_RDONLY)\n\
        print(os.preadv(g, [a], 0) == len(a[:5].rstrip(b'\\0')))\n";
    let mut program = shimmed(&dir, "python3", "");
    let output = output(program.env_remove("SLACKLINE_RATE").args(["-c", script]));
    let said = String::from_utf8_lossy(&output.stderr);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let wanted = "15\n8\n25 b'\\x00\\x00hea' b'der and bodymoreover'\n0 33 33\n0 2\n95\nTrue\n";
    assert_eq!(told, wanted, "{said}");
}

/// A private map holds what the volume holds, also at its end and from within it on; git maps
/// what it hashes. What cannot be mapped soundly is refused, with what to do instead.
#[test]
fn a_private_map_is_what_the_volume_holds_and_others_are_refused() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let bytes = noise(4, 700_001).bytes();
    let file = dir.text("file");
    std::fs::write(&file, &bytes).unwrap();
    dir.run_with(&["record", "v", "--create", "1MiB", "--rate", "8MB/s"], &bytes).recorded();
    let hash = |of: &str| {
        let mut git = shimmed(&dir, "git", "2MB/s");
        run(git.args(["hash-object", "--no-filters", of]))
    };
    assert_eq!(hash("/slackline/v"), hash(&file));
    let python = |script: &str| {
        let whole = format!("import mmap, os\nf = os.open('/slackline/v', os.O_RDONLY)\n{script}");
        let output = output(shimmed(&dir, "python3", "2MB/s").args(["-c", &whole]));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (String::from_utf8_lossy(&output.stdout).into_owned(), said)
    };
    let (out, said) = python(
        "m = mmap.mmap(f, 3681, access=mmap.ACCESS_COPY, offset=696320)\n\
         print(m[:].hex(), os.lseek(f, 0, 1))\n\
         m[0] = 255 - m[0]\nprint(os.pread(f, 1, 696320).hex())",
    );
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (end, first) = (hex(&bytes[696_320..]), hex(&bytes[696_320..696_321]));
    assert_eq!(out, format!("{end} 0\n{first}\n"), "{said}");
    let (_, said) = python("mmap.mmap(f, 4096, access=mmap.ACCESS_READ)");
    assert!(said.contains("MAP_PRIVATE") && said.contains("No such device"), "{said}");
    // Behind the data are zeros to the end of the page, and behind that nothing.
    let raw = "import ctypes as c\nmap = c.CDLL(None).mmap\nmap.restype = c.c_void_p\n\
               map.argtypes = [c.c_void_p, c.c_size_t, c.c_int, c.c_int, c.c_int, c.c_long]\n\
               at = map(None, 8192, 1, 2, f, 696320)\n";
    let (out, said) = python(&format!("{raw}print(map(None, 1 << 27, 1, 2, f, 0))"));
    assert!(out == format!("{}\n", u64::MAX) && said.contains("read it"), "{out} {said}");
    let page = python(&format!("{raw}print(set(c.string_at(at + 3681, 415)))"));
    assert_eq!(page.0, "{0}\n", "{}", page.1);
    let behind = python(&format!("{raw}print(c.string_at(at + 4096, 1))"));
    assert_eq!(behind.0, "", "{}", behind.1);
}

/// What cannot be read is an error, and never best effort where a contract was meant.
#[test]
fn a_variable_that_cannot_be_read_fails_every_open() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    dir.run_with(&["record", "v", "--create", "1MiB", "--rate", "1MB/s"], b"bytes").recorded();
    let cat = |rate: &str, more: &[(&str, &str)], without: &str| {
        let mut cat = shimmed(&dir, "cat", rate);
        let output = output(cat.envs(more.iter().copied()).env_remove(without).arg("/slackline/v"));
        (output.stdout, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(cat("1MB/s", &[("SLACKLINE_BLOCK", "64KiB")], "").0, b"bytes");
    for (name, value) in [
        ("SLACKLINE_WITHIN", "64KiB within 500ms every 1s"),
        ("SLACKLINE_WITHIN", "500ms"),
        ("SLACKLINE_PRIORITY", "background"),
    ] {
        let (out, said) = cat("", &[(name, value)], "SLACKLINE_RATE");
        assert_eq!(out, b"bytes", "{name}={value}: {said}");
    }
    for (rate, more, without, says) in [
        ("2 fast", &[][..], "", "SLACKLINE_RATE=2 fast"),
        ("", &[], "", "SLACKLINE_RATE="),
        ("1MB/s", &[("SLACKLINE_BLOCK", "x")], "", "SLACKLINE_BLOCK=x"),
        ("1MB/s", &[("SLACKLINE_CREATE", "-1")], "", "SLACKLINE_CREATE=-1"),
        ("", &[("SLACKLINE_WITHIN", "soon")], "SLACKLINE_RATE", "SLACKLINE_WITHIN=soon"),
        ("", &[("SLACKLINE_WITHIN", "1ns")], "SLACKLINE_RATE", "period"),
        ("1MB/s", &[("SLACKLINE_WITHIN", "150ms")], "", "SLACKLINE_RATE is, too"),
        ("", &[("SLACKLINE_PRIORITY", "high")], "SLACKLINE_RATE", "SLACKLINE_PRIORITY=high"),
        ("", &[("SLACKLINE_BURST", "1MiB")], "SLACKLINE_RATE", "SLACKLINE_RATE is not"),
    ] {
        let (out, said) = cat(rate, more, without);
        assert_eq!(out, b"", "{said}");
        assert!(said.contains(says) && said.contains("Invalid argument"), "{said}");
    }
}

const FFMPEG: [&str; 4] = ["-v", "error", "-nostdin", "-y"];

/// Hashes of all decoded frames, picture and sound.
pub fn frames(ffmpeg: &mut Command, film: &str) -> String {
    run(ffmpeg.args(FFMPEG).args(["-i", film, "-f", "framemd5", "-"]))
}

/// A short video: a moving picture and a tone.
pub fn make_film(path: &Path) {
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(FFMPEG).args(["-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=3"]);
    ffmpeg.args(["-f", "lavfi", "-i", "sine=frequency=440:duration=3"]);
    ffmpeg.args(["-c:v", "mpeg2video", "-q:v", "2", "-c:a", "aac", "-f", "matroska"]).arg(path);
    run(&mut ffmpeg);
}

#[test]
fn ffmpeg_records_to_a_contract_and_plays_from_it() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let original = dir.text("film.mkv");
    make_film(Path::new(&original));
    let wanted = frames(&mut Command::new("ffmpeg"), &original);
    let pictures = wanted.lines().filter(|line| line.starts_with("0,")).count();
    assert_eq!(pictures, 75, "three seconds of 25 pictures");
    // mp4 goes back to say how long it became; mpegts never goes back.
    for format in ["matroska", "mpegts", "mp4"] {
        let volume = format!("/slackline/{format}");
        let mut record = shimmed(&dir, "ffmpeg", "4MB/s");
        record.args(FFMPEG).args(["-i", &original, "-c", "copy", "-f", format, &volume]);
        run(&mut record);
        let plain = dir.text(format);
        let mut without = Command::new("ffmpeg");
        without.args(FFMPEG).args(["-i", &original, "-c", "copy", "-f", format, &plain]);
        run(&mut without);
        let played = frames(&mut shimmed(&dir, "ffmpeg", "4MB/s"), &volume);
        let without = frames(&mut Command::new("ffmpeg"), &plain);
        assert!(played == without, "{format}: frame for frame as without the shim");
        if format == "matroska" {
            assert!(played == wanted, "and as it was made");
        }
        let length = run(shimmed(&dir, "stat", "4MB/s").args(["-c", "%s", &volume]));
        let plain = std::fs::metadata(&plain).unwrap().len();
        assert_eq!(length.trim(), plain.to_string(), "{format}");
    }
    let mut probe = shimmed(&dir, "ffprobe", "4MB/s");
    probe.args(["-v", "error", "-select_streams", "v:0", "-count_frames"]);
    probe.args(["-show_entries", "stream=nb_read_frames", "-of", "csv=p=0"]);
    assert_eq!(run(probe.arg("/slackline/matroska")).trim().trim_end_matches(','), "75");
}

#[test]
fn a_program_whose_contract_is_refused_hears_so_and_why() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let mut record = shimmed(&dir, "ffmpeg", "300MB/s");
    record.args(FFMPEG).args(["-f", "lavfi", "-i", "testsrc2=duration=1"]);
    let output = output(record.args(["-f", "mpegts", "/slackline/v"]));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{said}");
    for words in ["disk 0 cannot keep this contract", "the largest rate", "resource busy"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    dir.run(&["volume", "show", "v"]).failed(1, &["there is no volume"]);
}
