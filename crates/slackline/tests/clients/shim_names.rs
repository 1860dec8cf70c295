//! What programs as they are do with the names of volumes through the shim: `rm`, `mv`, `touch`, `ls`, Python.

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

/// `mv f /slackline/keep/` removed the volume keep, and `rm /slackline/keep/` too.
#[test]
fn a_slash_behind_the_name_of_a_volume_is_no_directory() {
    let (dir, _daemon) = served();
    let file = dir.text("file");
    std::fs::write(&file, "of the file").unwrap();
    for volume in ["v", "w", "d/x"] {
        dir.run_with(&["record", volume, "--create", "1MiB", "--rate", "1MB/s"], volume.as_bytes())
            .succeeded();
    }
    for program in [
        &["rm", "/slackline/v/"][..],
        &["mv", &file, "/slackline/v/"],
        &["mv", "/slackline/w", "/slackline/v/"],
        &["mv", "/slackline/w/", "/slackline/new"],
        &["mv", "/slackline/w", "/slackline/new/"],
        &["cp", &file, "/slackline/v/"],
        &["cp", &file, "/slackline/new/"],
        &["cat", "/slackline/v/"],
        &["stat", "/slackline/v/"],
        &["touch", "-c", "/slackline/v/"],
        &["truncate", "-s", "0", "/slackline/v/"],
        &["python3", "-c", "import os; os.unlink('/slackline/v/')"],
        &["python3", "-c", "import os; os.rename('/slackline/w', '/slackline/v/')"],
        &["python3", "-c", "import os; os.rename('/slackline/w', '/slackline/new/')"],
        &["python3", "-c", "open('/slackline/v/', 'w')"],
    ] {
        let (status, _, said) = ran(&dir, "", program);
        assert!(status.is_some_and(|status| status > 0), "{program:?}: {said}");
    }
    let script = "import ctypes, errno, os\n\
        c = ctypes.CDLL(None, use_errno=True)\n\
        name = b'/slackline/v/'\n\
        calls = {\n\
        \x20   'access': lambda: c.access(name, 4),\n\
        \x20   'open': lambda: c.open(name, os.O_RDONLY),\n\
        \x20   'open to write': lambda: c.open(name, os.O_WRONLY | os.O_TRUNC),\n\
        \x20   'fopen': lambda: c.fopen(name, b'w') or -1,\n\
        \x20   'truncate': lambda: c.truncate(name, 0),\n\
        \x20   'unlink': lambda: c.unlink(name),\n\
        \x20   'rename to': lambda: c.rename(b'/slackline/w', name),\n\
        \x20   'rename': lambda: c.rename(name, b'/slackline/new'),\n\
        \x20   'utime': lambda: c.utime(name, None),\n\
        }\n\
        for call, made in calls.items():\n\
        \x20   if made() != -1 or ctypes.get_errno() != errno.ENOTDIR:\n\
        \x20       print(call, errno.errorcode.get(ctypes.get_errno()))\n";
    assert_eq!(says(&dir, "", &["python3", "-c", script]), "");
    assert_eq!(std::fs::read(&file).unwrap(), b"of the file");
    for volume in ["v", "w", "d/x"] {
        assert_eq!(held(&dir, volume).as_deref(), Some(volume));
    }
    assert_eq!(held(&dir, "new"), None);
    // Of a directory it is none of the name.
    says(&dir, "", &["python3", "-c", "import os; os.rename('/slackline/d/', '/slackline/e/')"]);
    assert_eq!(held(&dir, "e/x").as_deref(), Some("d/x"));
}

/// `dd of=/dev/stdout` opened what stood for the volume anew, which took all bytes and kept none.
#[test]
fn a_volume_is_not_opened_again_by_its_descriptor() {
    let (dir, _daemon) = served();
    dir.run_with(&["record", "v", "--create", "1MiB", "--rate", "1MB/s"], b"bytes").succeeded();
    let script = "import errno, os\n\
        f = os.open('/slackline/v', os.O_RDWR)\n\
        for path in f'/dev/fd/{f}', f'/proc/self/fd/{f}':\n\
        \x20   for way in os.O_RDONLY, os.O_WRONLY:\n\
        \x20       try: os.open(path, way)\n\
        \x20       except OSError as error: print(errno.errorcode[error.errno])\n\
        print(os.read(f, 9))\n";
    let told = says(&dir, "", &["python3", "-c", script]);
    assert_eq!(told, format!("{}b'bytes'\n", "ELOOP\n".repeat(4)));
    // What a shell has open its child does not have, and its write fails.
    for line in [
        "cat FILE > /slackline/v",
        "dd if=FILE of=/dev/stdout > /slackline/v",
        "cat < /slackline/v",
    ] {
        let file = dir.text("file");
        std::fs::write(&file, "of the file").unwrap();
        let (status, out, said) = ran(&dir, "", &["bash", "-c", &line.replace("FILE", &file)]);
        assert!(status.is_some_and(|status| status > 0) && out.is_empty(), "{line}: {out} {said}");
    }
}

/// Of two programs that make one volume, one heard that there is such a file.
#[test]
fn many_programs_make_one_volume_at_once() {
    let (dir, _daemon) = served();
    let script = "import os\n\
        for round in range(12):\n\
        \x20   children = []\n\
        \x20   for _ in range(4):\n\
        \x20       child = os.fork()\n\
        \x20       if child == 0:\n\
        \x20           try: os.open(f'/slackline/v{round}', os.O_WRONLY | os.O_CREAT)\n\
        \x20           except OSError as error:\n\
        \x20               print(error)\n\
        \x20               os._exit(1)\n\
        \x20           os._exit(0)\n\
        \x20       children.append(child)\n\
        \x20   print(*[os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])\n";
    assert_eq!(says(&dir, "", &["python3", "-c", script]), "0 0 0 0\n".repeat(12));
}
