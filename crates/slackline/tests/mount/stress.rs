//! Programs that do one thing to a file system very often: the file stressors of `stress-ng`, all at once, and
//! the statements of SQLite's speed check.

use super::*;

/// A stressor, its settings, and how often it does what it does.
const STRESSORS: [(&str, u32, &str, u32); 22] = [
    ("hdd", 2, "--hdd-bytes 1m --hdd-opts direct,fsync", 256),
    ("fallocate", 1, "--fallocate-bytes 1m", 4),
    ("rename", 1, "", 100),
    ("dir", 1, "--dir-dirs 64", 64),
    ("dentry", 1, "--dentries 64", 64),
    ("filename", 1, "--filename-opts posix", 5),
    ("seek", 1, "--seek-size 2m", 50),
    ("chmod", 1, "", 4),
    ("chown", 1, "", 20),
    ("utime", 1, "", 50),
    ("touch", 1, "", 50),
    ("sync-file", 1, "--sync-file-bytes 1m", 10),
    ("flock", 2, "", 100),
    ("lockf", 2, "", 100),
    ("iomix", 1, "--iomix-bytes 2m", 20),
    ("aiol", 1, "", 10),
    ("copy-file", 1, "--copy-file-bytes 128m", 4),
    ("revio", 1, "--revio-bytes 2m", 50),
    ("readahead", 1, "--readahead-bytes 2m", 100),
    ("dirdeep", 1, "--dirdeep-dirs 2 --dirdeep-inodes 30", 30),
    ("sendfile", 1, "--sendfile-size 1m", 20),
    ("fstat", 1, "", 10),
];

/// What its others need is not there: hard links (`link`), attributes of any name (`xattr`).
#[test]
fn stress_ng_finds_no_fault_and_does_all_that_it_was_asked_for() {
    let Some(mounted) = Mounted::new() else { return };
    if !has("stress-ng") {
        return;
    }
    fs::create_dir(mounted.path("stress")).unwrap();
    let mut command = Command::new("stress-ng");
    // Nothing is timed: who is not done by then has done less than the numbers above.
    command.args(["--verify", "--metrics-brief", "--timeout", "500", "--temp-path"]);
    command.arg(mounted.path("stress"));
    for (name, instances, settings, operations) in STRESSORS {
        let line = format!("--{name} {instances} {settings} --{name}-ops {operations}");
        command.args(line.split_whitespace());
    }
    let ran = command.stdin(Stdio::null()).current_dir(mounted.dir.path(".")).output().unwrap();
    let said = [ran.stdout, ran.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert_eq!(ran.status.code(), Some(0), "{said}");
    for (name, _, _, operations) in STRESSORS {
        // stress-ng: metrc: [PID] NAME OPERATIONS ...
        let words = said.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let mut done = words.filter(|words| words.get(1) == Some(&"metrc:"));
        let done = done.find(|words| words.get(3) == Some(&name));
        let done: Option<u32> = done.and_then(|words| words.get(4)?.parse().ok());
        assert!(done.is_some_and(|done| done >= operations), "{name}: {done:?}\n{said}");
    }
    assert!(!said.contains("skip") && !said.contains("fail:"), "{said}");
    let left: Vec<_> = fs::read_dir(mounted.path("stress")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// The kinds of statements of SQLite's own speed check, in its order: Debian has no `speedtest1`. What it
/// asks for is the same in each run.
const STATEMENTS: &str = "
pragma cache_size = -400;
create table z1(a integer not null, b integer not null, c text not null);
create table z2(a integer not null unique, b integer not null, c text not null);
create table z3(a text primary key, b integer not null, c text not null) without rowid;
create view n as with recursive n(i) as (select 1 union all select i + 1 from n where i < 4000)
  select i, (i * 7919) % 4001 as r, printf('%d thousand %d', (i * 7919) % 4001, i) as t from n;
begin; insert into z1 select r, i, t from n; commit;
begin; insert into z2 select i, r, t from n; commit;
begin; insert into z3 select t, i, t from n; commit;
insert into z1 values(1, 2, 'alone'); insert into z1 values(3, 4, 'alone');
select count(*), avg(b), sum(length(c)) from z1 where b between 500 and 1500;
select count(*), avg(b), sum(length(c)) from z1 where c like '%9 thousand%';
select a, b, c from z1 where c like '%7%' order by a, b limit 10;
create unique index z2b on z2(b); create index z1c on z1(c); create index z1ab on z1(a, b);
select count(*), avg(b), sum(length(c)) from z1 where a between 10 and 900;
select count(*), min(c), max(c) from z1 where c between '1' and '2';
insert into z1 select a, b + 1, c from z2 where a % 3 = 0;
delete from z2 where b between 1000 and 1200;
replace into z2 select a, b, c || ' again' from z2 where a % 5 = 0;
update z2 set b = -b where a between 100 and 2000;
update z1 set c = c || ' changed' where a = 77;
alter table z2 add column d integer default 123;
select sum(d), count(*) from z2;
begin; delete from z1; rollback;
delete from z3 where b % 2 = 0;
delete from z2; insert into z2 select i, r, t, i from n;
select count(*), sum(z1.b) from z1 join z2 on z1.a = z2.a join z3 on z3.b = z2.b;
select count(*) from z1 where exists (select 1 from z2 where z2.b = z1.a and z2.a > 2000);
vacuum; analyze; reindex;
pragma integrity_check;
";

#[test]
fn sqlite_answers_its_speed_check_as_on_any_file_system() {
    let Some(mounted) = Mounted::new() else { return };
    if !has("sqlite3") {
        return;
    }
    let answers = |database: PathBuf, journal: &str| {
        let begin = format!("pragma journal_mode = {journal}; pragma synchronous = full;\n");
        let script = format!("{begin}{STATEMENTS}.sha3sum\n");
        fs::write(mounted.dir.path("script"), script).unwrap();
        let script = File::open(mounted.dir.path("script")).unwrap();
        let ran = Command::new("sqlite3").arg("-bail").arg(database).stdin(script).output();
        let ran = support::Ran::from(ran.unwrap()).succeeded();
        assert_eq!(ran.err, "");
        ran.text().to_owned()
    };
    for journal in ["delete", "wal", "truncate"] {
        let known = answers(mounted.dir.path(&format!("here-{journal}")), journal);
        let found = answers(mounted.path(&format!("there-{journal}")), journal);
        assert!(known.starts_with(journal) && known.contains("\nok\n"), "{known}");
        assert_eq!(found, known);
    }
}
