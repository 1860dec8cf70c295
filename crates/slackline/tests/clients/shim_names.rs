//! What programs as they are do with the names of volumes through the shim: `rm`, `mv`, `touch`, `ls`, Python;
//! and with redirections of shells.

use crate::shim::shimmed;
use crate::support::{Daemon, Scratch};
use std::process::Stdio;

/// Longer than this none of these programs takes: one that does hangs.
const HANGS: &str = "120";
const ONLY: &str = "only `slackline mount DIR` can do this";

fn served() -> (Scratch, Daemon) {
    let dir = Scratch::new();
    let daemon = dir.serve(&dir.make_pool(&["a"]));
    (dir, daemon)
}

/// Runs a program; gives its exit status, and what it said on standard output and error.
fn ran(dir: &Scratch, rate: &str, program: &[&str]) -> (Option<i32>, String, String) {
    let mut command = shimmed(dir, "timeout", rate);
    if rate.is_empty() {
        command.env_remove("SLACKLINE_RATE");
    }
    command.env("LC_ALL", "C").args(["-s", "KILL", HANGS]).args(program);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// What it says, and nothing on standard error.
#[track_caller]
fn says(dir: &Scratch, rate: &str, program: &[&str]) -> String {
    let (status, out, err) = ran(dir, rate, program);
    assert_eq!((status, err.as_str()), (Some(0), ""), "{program:?}: {out}");
    out
}

/// The bytes of a volume; none where there is no such volume.
fn held(dir: &Scratch, volume: &str) -> Option<String> {
    let ran = dir.run(&["export", volume, "-"]);
    (ran.code == Some(0)).then(|| String::from_utf8(ran.out).unwrap())
}

#[test]
fn volumes_are_removed_renamed_and_touched() {
    let (dir, _daemon) = served();
    let file = dir.text("file");
    let write = || std::fs::write(&file, "bytes").unwrap();
    write();
    says(&dir, "1MB/s", &["cp", &file, "/slackline/a"]);
    says(&dir, "1MB/s", &["rm", "/slackline/a"]);
    assert_eq!(held(&dir, "a"), None);
    let (status, _, said) = ran(&dir, "1MB/s", &["rm", "/slackline/a"]);
    assert!(
        status == Some(1) && said.contains("No such file") && !said.contains("slackline:"),
        "{said}"
    );
    says(&dir, "1MB/s", &["rm", "-f", "/slackline/a"]);

    says(&dir, "1MB/s", &["cp", &file, "/slackline/a"]);
    says(&dir, "1MB/s", &["mv", "/slackline/a", "/slackline/in/b"]);
    assert_eq!((held(&dir, "a"), held(&dir, "in/b")), (None, Some("bytes".into())));
    dir.run_with(&["record", "c", "--create", "1MiB", "--rate", "1MB/s"], b"other").succeeded();
    says(&dir, "", &["mv", "/slackline/in/b", "/slackline/c"]);
    assert_eq!((held(&dir, "in/b"), held(&dir, "c")), (None, Some("bytes".into())));

    // Across the border mv copies.
    let moved = dir.text("moved");
    says(&dir, "1MB/s", &["mv", "/slackline/c", &moved]);
    assert_eq!((held(&dir, "c"), std::fs::read(&moved).unwrap()), (None, b"bytes".to_vec()));
    let (status, _, said) = ran(&dir, "1MB/s", &["mv", &file, "/slackline/d"]);
    assert_eq!((status, held(&dir, "d")), (Some(0), Some("bytes".into())), "{said}");
    assert!(!std::path::Path::new(&file).exists(), "{said}");
    write();
    says(&dir, "", &["mv", "-n", &file, "/slackline/d"]);
    assert!(std::path::Path::new(&file).exists());

    says(&dir, "1MB/s", &["touch", "-d", "@1000000000", "/slackline/d"]);
    let client = client::Client::connect(dir.path("s.sock")).unwrap();
    let client::Found::Volume(facts) = client.file_facts("d").unwrap() else {
        panic!("a directory")
    };
    assert_eq!(facts.times.unwrap().modified_ns, 1_000_000_000_000_000_000);
    says(&dir, "", &["touch", "/slackline/new"]);
    assert_eq!(held(&dir, "new"), Some(String::new()));
    assert_eq!(says(&dir, "", &["ls", "-l", "/slackline/d"]).split(' ').nth(4), Some("5"));
    assert_eq!(held(&dir, "d").as_deref(), Some("bytes"));
    says(&dir, "", &["truncate", "-s", "2", "/slackline/d"]);
    assert_eq!(held(&dir, "d").as_deref(), Some("by"));
}

#[test]
fn what_cannot_be_removed_or_renamed_is_told_by_its_errno() {
    let (dir, _daemon) = served();
    let file = dir.text("file");
    std::fs::write(&file, "").unwrap();
    for volume in ["v", "w", "d/x"] {
        dir.run_with(&["record", volume, "--create", "1MiB", "--rate", "1MB/s"], volume.as_bytes())
            .succeeded();
    }
    let script = "import errno, os, sys\n\
        def told(what, *arguments):\n\
        \x20   try: what(*arguments)\n\
        \x20   except OSError as error: print(what.__name__, errno.errorcode[error.errno])\n\
        \x20   else: print(what.__name__, 'done')\n\
        at = '/slackline/'\n\
        told(os.remove, at + 'none')\n\
        told(os.rename, at + 'none', at + 'v')\n\
        told(os.rename, at + 'none', sys.argv[1])\n\
        told(os.rename, sys.argv[1] + '0', at + 'v')\n\
        told(os.rename, at + 'v', sys.argv[1])\n\
        told(os.rename, sys.argv[1], at + 'v')\n\
        told(os.remove, at + 'd')\n\
        told(os.rename, at + 'v', at + 'd')\n\
        told(os.rename, at + 'd', at + 'v')\n\
        told(os.rename, at, at + 'v')\n\
        for way in os.O_RDONLY, os.O_WRONLY:\n\
        \x20   f = os.open(at + 'v', way)\n\
        \x20   told(os.remove, at + 'v')\n\
        \x20   told(os.rename, at + 'v', at + 'u')\n\
        \x20   told(os.replace, at + 'w', at + 'v')\n\
        \x20   os.close(f)\n\
        told(os.rename, at + 'v', at + 'v')\n\
        told(os.replace, at + 'w', at + 'v')\n\
        told(os.rename, at + 'd', at + 'e')\n\
        told(os.rename, sys.argv[1], sys.argv[1] + '1')\n\
        told(os.remove, sys.argv[1] + '1')\n";
    let (status, out, said) = ran(&dir, "1MB/s", &["python3", "-c", script, &file]);
    let busy = "remove EBUSY\nrename EBUSY\nreplace EBUSY\n".repeat(2);
    let wanted = format!(
        "remove ENOENT\nrename ENOENT\nrename ENOENT\nrename ENOENT\nrename EXDEV\nrename EXDEV\n\
         remove EISDIR\nrename EISDIR\nrename ENOTDIR\nrename EBUSY\n{busy}rename done\n\
         replace done\nrename done\nrename done\nremove done\n"
    );
    assert_eq!((status, out), (Some(0), wanted), "{said}");
    assert!(said.contains("v: this program has it open"), "{said}");
    assert_eq!((held(&dir, "v").as_deref(), held(&dir, "w")), (Some("w"), None));
    assert_eq!(held(&dir, "e/x").as_deref(), Some("d/x"));
    // A stream of another program's.
    let client = client::Client::connect(dir.path("s.sock")).unwrap();
    let contract = client::Contract::at("1MB/s".parse().unwrap());
    let mut open = client::File::options();
    let open = open.socket(dir.path("s.sock")).contract(contract).open("v").unwrap();
    let (status, _, said) = ran(&dir, "", &["rm", "/slackline/v"]);
    assert!(status == Some(1) && said.contains("busy") && said.contains("open stream"), "{said}");
    drop((open, client));
    assert_eq!(held(&dir, "v").as_deref(), Some("w"));
}

/// `ls` showed nothing, and the others told that there is no such file.
#[test]
fn what_only_a_mount_can_do_is_said_and_refused() {
    let (dir, _daemon) = served();
    for volume in ["v", "d/x"] {
        dir.run_with(&["record", volume, "--create", "1MiB", "--rate", "1MB/s"], b"bytes")
            .succeeded();
    }
    for (program, why) in [
        (&["ls", "-la", "/slackline"][..], "not supported"),
        (&["ls", "/slackline/"], "not supported"),
        (&["ls", "/slackline/d"], "not supported"),
        (&["find", "/slackline"], "not supported"),
        (&["rm", "-r", "/slackline/d"], "not supported"),
        (&["mkdir", "/slackline/new"], "not supported"),
        (&["mkdir", "-p", "/slackline/new/newer"], "not supported"),
        (&["rmdir", "/slackline/d"], "not supported"),
        (&["cp", "/etc/hostname", "/slackline/"], "directory"),
        (&["sh", "-c", "cd /slackline/d"], "can't cd"),
        (&["python3", "-c", "import os; os.listdir('/slackline')"], "not supported"),
        (&["ln", "-s", "v", "/slackline/l"], "not permitted"),
        (&["ln", "/slackline/v", "/slackline/l"], "not permitted"),
        (&["mkfifo", "/slackline/l"], "not permitted"),
        (&["chmod", "600", "/slackline/v"], "not permitted"),
        (&["chown", "12345", "/slackline/v"], "not permitted"),
        (&["truncate", "-s", "6", "/slackline/v"], "Invalid argument"),
        (
            &["python3", "-c", "import os; os.open('/slackline/v', os.O_RDWR); os.ftruncate(3, 6)"],
            "Invalid",
        ),
    ] {
        let (status, _, said) = ran(&dir, "", program);
        assert!(status.is_some_and(|status| status > 0), "{program:?}: {said}");
        assert!(said.contains(why) && said.contains(ONLY), "{program:?}: {said}");
    }
    // Once of each kind; and what is there already is told as always.
    let script = "import os\n\
        def tried(what, *arguments):\n\
        \x20   try: what(*arguments)\n\
        \x20   except OSError as error: print(error.errno)\n\
        for _ in range(3):\n\
        \x20   tried(os.mkdir, '/slackline/new')\n\
        \x20   tried(os.chmod, '/slackline/v', 0o600)\n\
        tried(os.mkdir, '/slackline/v')\n\
        tried(os.symlink, 'v', '/slackline/v')\n\
        tried(os.chmod, '/slackline/v', 0o660)\n\
        tried(os.chmod, '/slackline/none', 0o600)\n\
        tried(os.listdir, '/slackline/none')\n\
        tried(os.listdir, '/slackline/v')\n\
        print(os.path.isdir('/slackline'), os.path.isdir('/slackline/d'), os.path.isfile('/slackline/v'))\n";
    let (_, out, said) = ran(&dir, "", &["python3", "-c", script]);
    assert_eq!(out, format!("{}17\n17\n2\n2\n20\nTrue True True\n", "95\n1\n".repeat(3)), "{said}");
    assert_eq!(said.matches(ONLY).count(), 2, "{said}");
    assert_eq!(
        (held(&dir, "v").as_deref(), held(&dir, "d/x").as_deref()),
        (Some("bytes"), Some("bytes"))
    );
    // Other files are as they always are.
    let at = dir.text("directory");
    let plain = format!(
        "mkdir {at} && cd {at} && touch f && mv f g && ln g h && ln -s g i && chmod 600 g && ls && cd / && rm -r {at}"
    );
    assert_eq!(says(&dir, "", &["sh", "-c", &plain]), "g\nh\ni\n");
}

/// A program that a shell began had no volume, and the shell left an empty one. What the shell itself says
/// was lost in bash.
#[test]
fn what_shells_redirect_comes_to_the_volume_and_from_it() {
    let (dir, _daemon) = served();
    let file = dir.text("file");
    std::fs::write(&file, "of the file\n").unwrap();
    // Where a shell begins a program by vfork, it goes on without a stream of its own.
    for (shell, rate) in [("dash", ""), ("bash", ""), ("bash", "1MB/s")] {
        let line = |line: &str, wanted: &str| {
            let line = line.replace("FILE", &file);
            assert_eq!(says(&dir, rate, &[shell, "-c", &line]), wanted, "{shell} {rate:?}: {line}");
        };
        let told = |volume: &str| held(&dir, volume).unwrap();
        line("echo of the shell > /slackline/v; echo more >> /slackline/v; echo told", "told\n");
        assert_eq!(told("v"), "of the shell\nmore\n", "{shell} {rate:?}");
        line("cat FILE > /slackline/v; cat FILE >> /slackline/v", "");
        assert_eq!(told("v"), "of the file\nof the file\n", "{shell} {rate:?}");
        // By files of the C library, and from one program to the next.
        line("env sort < FILE > /slackline/v; printf '%s\\n' and more >> /slackline/v", "");
        line("sort -r < /slackline/v", "of the file\nmore\nand\n");
        line("read first < /slackline/v; echo $first; wc -l < /slackline/v", "of the file\n3\n");
        // Two descriptors of one opening have one place.
        line("ls FILE FILE0 > /slackline/v 2>&1; test $? = 2", "");
        let said = told("v");
        assert!(
            said.contains("No such file") && said.ends_with("file\n"),
            "{shell} {rate:?}: {said}"
        );
        line("exec > /slackline/v; echo first; exec cat FILE", "");
        assert_eq!(told("v"), "first\nof the file\n", "{shell} {rate:?}");
        line(
            "python3 -c 'print(5)' > /slackline/v; python3 -c 'print(input())' < /slackline/v",
            "5\n",
        );
        // As with any file.
        line("false > /slackline/v; nothing-of-this-name 2> /dev/null > /slackline/w; true", "");
        assert_eq!((told("v"), told("w")), (String::new(), String::new()), "{shell} {rate:?}");
        // Where nobody takes the place, the shell goes on with what it has.
        line(
            "command exec 5> /slackline/w; (exec nothing-of-this-name) 2> /dev/null; echo kept >&5",
            "",
        );
        assert_eq!(told("w"), "kept\n", "{shell} {rate:?}");
    }
    // What the shell has open itself, a program of bash's has not, and hears so.
    let line = format!("{{ echo first; cat {file}; echo last; }} > /slackline/v");
    let (status, _, said) = ran(&dir, "", &["bash", "-c", &line]);
    assert!(said.contains("descriptor 1 is a volume") && said.contains(ONLY), "{status:?} {said}");
    assert_eq!(held(&dir, "v").as_deref(), Some("first\nlast\n"));
}

/// What a program becomes has the stream that it had, and a program that is not there takes none away.
#[test]
fn a_program_that_becomes_another_gives_its_stream_on() {
    let (dir, _daemon) = served();
    let script = "import os, sys\n\
        f = os.open('/slackline/v', os.O_WRONLY | os.O_CREAT)\n\
        g = os.open('/slackline/w', os.O_WRONLY | os.O_CREAT)\n\
        os.write(f, b'before, ')\n\
        os.dup2(f, 1)\n\
        try: os.execv('/nowhere', ['nowhere'])\n\
        except OSError as error: os.write(f, b'%d, ' % error.errno)\n\
        os.write(g, b'its own')\n\
        os.execvp('echo', ['echo', 'behind'])\n";
    for rate in ["1MB/s", ""] {
        assert_eq!(says(&dir, rate, &["/usr/bin/python3", "-c", script]), "");
        assert_eq!(held(&dir, "v").as_deref(), Some("before, 2, behind\n"), "at {rate:?}");
        dir.run(&["volume", "delete", "v", "--yes"]).succeeded();
    }
}
