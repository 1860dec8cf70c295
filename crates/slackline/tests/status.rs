//! What `slackline status` says of a daemon, on one screen.

use crate::support::Scratch;
use std::io::Write;

/// The headings of a printed table: words with two spaces between them, behind which figures stand.
fn headings<'a>(shown: &'a str, first: &str) -> Vec<&'a str> {
    let line =
        shown.lines().find(|line| line.trim_start().starts_with(first) || line.ends_with(first));
    let line = line.unwrap_or_else(|| panic!("no table of a {first}: {shown}"));
    line.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect()
}

/// What the commands print has its line in the manual.
fn every_figure_has_its_line(dir: &Scratch, status: &str) {
    let document = |name: &str| {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/");
        std::fs::read_to_string(format!("{path}{name}")).unwrap()
    };
    let (figures, plan_page) = (document("status.md"), document("plan.md"));
    let ran = dir.run(&["pool", "status"]).succeeded();
    let pool = ran.text();
    let tables = [(status, "disk "), (status, "stream "), (pool, "disk "), (pool, "stream ")];
    for (shown, first) in tables {
        let headings = headings(shown, first);
        assert!(headings.len() > 6, "{headings:?}");
        for heading in headings {
            assert!(figures.contains(&format!("`{heading}`")), "{heading} is not explained");
        }
        // Of a pool in which nothing is open, too.
        assert!(shown.contains("promised: to contracts, and to the daemon's own log"), "{shown}");
    }
    for line in pool.lines().filter(|line| !line.starts_with([' ', '\t'])) {
        let word = line.split_whitespace().next().unwrap_or_default();
        // The disks' own lines, and the rows of the streams' table.
        let known = ["pool", "disk", "stream", "warning"].contains(&word)
            || word.starts_with(char::is_numeric);
        assert!(known || figures.contains(&format!("`{word}`")), "{word} is not explained: {line}");
    }
    let ran = dir.run(&["plan", "--rate", "1MB/s"]);
    for first in ["asked  fit", "disk  promised", "fit ", "window full after"] {
        for heading in headings(ran.text(), first) {
            assert!(plan_page.contains(&format!("**{heading}**")), "{heading} is not in plan.md");
        }
    }
}

/// One contract of a volume and one recording; then the pool's policy keeps nothing any more.
#[test]
fn the_screen_says_whether_contracts_are_kept_and_what_to_do_where_they_are_not() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    // By the pool's own clock nothing is late; a busy machine may be.
    let daemon = dir.try_serve(&disks, &["--no-admission"]);
    let daemon = daemon.unwrap_or_else(|ran| panic!("{}", ran.err));
    let ran = dir.run(&["status"]).succeeded();
    let shown = ran.text();
    assert!(shown.contains("no streams are open"), "{shown}");
    let json = |args: &[&str]| dir.run(args).succeeded().json();
    let before = json(&["status", "--json"])["findings"].as_array().unwrap().len();

    let mut recording = dir.command(&["record", "cam", "--create", "8MiB", "--rate", "1MB/s"]);
    let mut recording = recording.spawn().unwrap();
    let mut camera = recording.stdin.take().unwrap();
    camera.write_all(&[7; 600_000]).unwrap();
    let status = loop {
        let status = json(&["status", "--json"]);
        if status["status"]["streams"][0]["attached"] == true {
            break status;
        }
    };
    let found: Vec<&str> = status["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["what"].as_str().unwrap())
        .collect();
    assert_eq!(status["sound"], false, "{found:?}");
    assert!(found.len() > before && found[0].contains("no contract is a promise"), "{found:?}");
    assert!(found.iter().any(|what| what.contains("volume cam is full in")), "{found:?}");
    let ran = dir.run(&["status"]).succeeded();
    let shown = ran.text();
    assert!(shown.contains("BROKEN: no contract is a promise"), "{shown}");
    assert!(shown.contains("next: ") && shown.contains("1 MB/s, no promise"), "{shown}");
    every_figure_has_its_line(&dir, shown);
    drop(camera);
    let code = recording.wait().unwrap().code();
    assert!(matches!(code, Some(0 | 4)), "{code:?}");
    daemon.kill();
}

/// What bash offers behind these words, by the completions that are installed.
fn offered(dir: &Scratch, socket: &str, words: &[&str]) -> Vec<String> {
    let script = r#"source <(slackline completions bash) || exit
COMP_WORDS=(slackline "$@") COMP_CWORD=$#
_clap_complete_slackline slackline "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"
printf '%s\n' "${COMPREPLY[@]}""#;
    let built = std::path::Path::new(env!("CARGO_BIN_EXE_slackline")).parent().unwrap();
    let path = format!("{}:{}", built.display(), std::env::var("PATH").unwrap());
    let mut bash = std::process::Command::new("bash");
    bash.args(["-c", script, "bash"]).args(words).env("PATH", path).current_dir(dir.path("."));
    let ran = bash.env("SLACKLINE_SOCKET", dir.path(socket)).output().unwrap();
    assert!(ran.status.success() && ran.stderr.is_empty(), "{ran:?}");
    let lines = String::from_utf8(ran.stdout).unwrap();
    lines.lines().filter(|line| !line.is_empty()).map(String::from).collect()
}

/// A key pressed in a shell: volumes and disks of the daemon that runs, and no word where none does.
#[test]
fn a_shell_offers_what_the_daemon_has_and_nothing_where_there_is_none() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a", "b"]);
    let daemon = dir.serve(&disks);
    for name in ["cam1", "cam2", "films/one"] {
        dir.run(&["volume", "create", name, "--size", "1MiB"]).succeeded();
    }
    let offers = |words: &[&str]| offered(&dir, "s.sock", words);
    for line in [&["play", "cam"][..], &["record", "cam"], &["volume", "delete", "cam"]] {
        assert_eq!(offers(line), ["cam1", "cam2"], "{line:?}");
    }
    assert_eq!(offers(&["token", "make", "--volume", "f"]), ["films/one"]);
    assert_eq!(offers(&["pool", "profile", "--disk", ""]), ["0", "1"]);
    assert_eq!(offers(&["disk", "show", "laptop"]), ["laptop-4200"]);
    assert_eq!(offers(&["pool", "set", "--policy", "delta-l-"]), ["delta-l-1999"]);
    assert_eq!(offers(&["serve", "profile.t"]), ["profile.toml"]);
    let cameras =
        "[[camera]]\nname = 'gate'\nrate = '1MB/s'\nsource = 'rtsp://a/b'\nsize = '1GB'\n";
    std::fs::write(dir.path("c.toml"), cameras).unwrap();
    assert_eq!(offers(&["cameras", "c.toml", "--status", "--camera", "g"]), ["gate"]);
    // The daemon of another socket, which the line names.
    let socket = dir.text("s.sock");
    let named = ["--socket", &socket, "play", "cam"];
    assert_eq!(offered(&dir, "none.sock", &named), ["cam1", "cam2"]);
    daemon.kill();
    let none: [&str; 0] = [];
    assert_eq!(offered(&dir, "s.sock", &["play", "cam"]), none);
}

/// docs/tried.md is worth as much as the tests that it names.
#[test]
fn the_list_of_what_users_tripped_over_names_tests_that_are_there() {
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let read = |path: &str| std::fs::read_to_string(root.join(path));
    let list = read("docs/tried.md").unwrap();
    let rows = list.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").nth(1)).skip(1);
    let mut named = 0;
    for cell in rows {
        let (mut file, before) = (String::new(), named);
        for word in cell.split('`').skip(1).step_by(2) {
            let (text, test) = match word.rsplit_once("::") {
                Some((path, test)) => {
                    let path = format!("crates/slackline/tests/{}", path.replace("::", "/"));
                    let found =
                        read(&format!("{path}.rs")).or_else(|_| read(&format!("{path}/main.rs")));
                    (found.unwrap_or_else(|_| panic!("no {path}")), test)
                }
                None if word.contains('/') => {
                    file = read(word).unwrap_or_else(|_| panic!("no {word}"));
                    continue;
                }
                None => (file.clone(), word),
            };
            let is_there =
                text.contains(&format!("fn {test}()")) || text.contains(&format!("{test} "));
            assert!(is_there, "there is no test {test}: {cell}");
            named += 1;
        }
        assert!(named > before, "no test is named: {cell}");
    }
    assert!(named > 30, "{named}");
}
