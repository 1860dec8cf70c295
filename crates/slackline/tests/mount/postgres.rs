//! PostgreSQL with its whole directory on the mount: transactions that it has acknowledged are there after a
//! power cut, which ends it and the daemon below it, and takes what the disk was not told to flush.
//!
//! Its regression suite is not run: Debian packages the program (`pg_regress`), not the tests.

use super::*;
use std::process::Child;
use support::forgetful;

const DISK: Bytes = Bytes::mib(2048);

/// Where a PostgreSQL is, with its tools.
fn installed() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let places = versions.map(|version| version.path().join("bin"));
    let complete = |bin: &PathBuf| {
        ["initdb", "postgres", "pgbench", "pg_amcheck"].iter().all(|it| bin.join(it).exists())
    };
    let found = places.filter(complete).max();
    skips::can_run(found.is_some(), "needs postgresql").then_some(found).flatten()
}

/// A database, which ends with the test.
struct Database {
    bin: PathBuf,
    data: String,
    /// Where its socket and logs are.
    own: String,
    /// Its first process.
    process: Option<Child>,
}

impl Drop for Database {
    fn drop(&mut self) {
        self.kill(|| ());
    }
}

impl Database {
    fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]);
        command.arg(self.bin.join(program)).args(args);
        command.current_dir(&self.own).stdin(Stdio::null());
        command.env("PGHOST", &self.own).env("PGUSER", "postgres");
        command
    }

    fn run(&self, program: &str, args: &[&str]) -> String {
        let ran = support::Ran::from(self.command(program, args).output().unwrap());
        assert_eq!(ran.code, Some(0), "{program}: {}{}\n{}", ran.text(), ran.err, self.log());
        ran.text().trim().to_owned()
    }

    fn log(&self) -> String {
        fs::read_to_string(format!("{}/log", self.own)).unwrap_or_default()
    }

    fn start(&mut self) {
        let settings = ["-c", "listen_addresses=", "-c", "shared_buffers=16MB"];
        let args = [&["-D", &self.data, "-k", &self.own], &settings[..]].concat();
        let mut command = self.command("postgres", &args);
        let log = OpenOptions::new().append(true).create(true).open(self.own.clone() + "/log");
        let mut process = command.stderr(log.unwrap()).spawn().unwrap();
        support::wait_until(|| {
            let over = process.try_wait().unwrap();
            assert!(over.is_none(), "{over:?}: {}", self.log());
            self.command("pg_isready", &["-q"]).status().unwrap().success()
        });
        self.process = Some(process);
    }

    /// Kills all of its processes, as `kill -9` does, and waits for their end behind `then`: one that waits for
    /// an answer of the mount ends with it.
    fn kill(&mut self, then: impl FnOnce()) {
        let Some(mut process) = self.process.take() else { return };
        let id = process.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        let children = children.unwrap_or_default();
        let _ = process.kill();
        // Some may have ended by themselves.
        let mut kill = Command::new("kill");
        let _ = kill.arg("-9").args(children.split_whitespace()).stderr(Stdio::null()).status();
        then();
        let _ = process.wait();
        let is_gone = |process: &str| {
            let state = fs::read_to_string(format!("/proc/{process}/stat"));
            state.map_or(true, |state| state.contains(") Z "))
        };
        support::wait_until(|| children.split_whitespace().all(is_gone));
    }

    /// Ends it as an administrator does.
    fn stop(&mut self) {
        let mut process = self.process.take().unwrap();
        support::signal(process.id(), "INT");
        assert!(process.wait().unwrap().success(), "{}", self.log());
    }

    fn ask(&self, sql: &str) -> String {
        self.run("psql", &["-AtX", "-c", sql, "postgres"])
    }

    fn transactions(&self) -> u64 {
        self.ask("select count(*) from pgbench_history").parse().unwrap()
    }

    fn check(&self) {
        let sums = "select (select sum(delta) from pgbench_history) = all (values
            ((select sum(abalance) from pgbench_accounts)),
            ((select sum(bbalance) from pgbench_branches)),
            ((select sum(tbalance) from pgbench_tellers))),
            (select count(*) from pgbench_accounts)";
        assert_eq!(self.ask(sums), "t|100000");
        self.run("pg_amcheck", &["--install-missing", "--heapallindexed", "postgres"]);
    }
}

/// Clients that go on until the database has gone.
fn clients_without_end(database: &Database) -> Child {
    let logs = format!("--log-prefix={}/transactions", database.own);
    let args = ["-n", "-c", "2", "-t", "1000000", "-l", &logs, "postgres"];
    let mut clients = database.command("pgbench", &args);
    clients.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// A daemon that commits by itself seldom.
fn serve(dir: &Scratch, disks: &[String]) -> Daemon {
    let settings = ["--commit-interval", "1s", "--no-realtime"];
    dir.try_serve(disks, &settings).unwrap_or_else(|ran| panic!("no daemon: {}", ran.err))
}

#[test]
fn what_postgresql_has_committed_outlives_a_power_cut() {
    if !can_mount() {
        return;
    }
    let Some(bin) = installed() else { return };
    let below = Scratch::new();
    let disk = forgetful::emulate(&below.path("disk"), DISK, 0);
    let dir = Scratch::new();
    let disks = vec![disk.file().display().to_string()];
    let profile = dir.text("profile.toml");
    fs::write(&profile, forgetful::profile(DISK)).unwrap();
    dir.run(&["pool", "create", "test", "--profile", &profile, &disks[0]]).succeeded();
    let daemon = Some(serve(&dir, &disks));
    fs::create_dir(dir.path("mnt")).unwrap();
    dir.run(&["mount", "--allow-other", &dir.text("mnt")]).succeeded();
    let mut mounted = Mounted { daemon, disks, dir };
    fs::create_dir(mounted.path("pg")).unwrap();
    fs::create_dir(mounted.dir.path("own")).unwrap();
    fs::set_permissions(mounted.dir.path("."), fs::Permissions::from_mode(0o755)).unwrap();
    mounted.shell("chown postgres pg ../own; chmod 700 pg");
    let data = mounted.path("pg").display().to_string();
    let mut database = Database { bin, data, own: mounted.dir.text("own"), process: None };
    database.run("initdb", &["-D", &database.data, "-A", "trust", "--no-locale", "-k"]);
    database.start();
    database.run("pgbench", &["-i", "-q", "-s", "1", "postgres"]);
    database.run("pgbench", &["-n", "-t", "50", "-c", "2", "postgres"]);
    assert_eq!(database.transactions(), 100);

    let mut clients = clients_without_end(&database);
    support::wait_until(|| database.transactions() >= 200);
    // The daemon first, so that nothing becomes durable behind the last answer.
    mounted.daemon.take().unwrap().kill();
    let daemon = &mut mounted.daemon;
    database.kill(|| {
        ["power-cut", "heal", "power-on"].iter().for_each(|order| disk.order(order).unwrap());
        *daemon = Some(serve(&mounted.dir, &mounted.disks));
    });
    // pgbench writes what it has counted, and ends, when its connections break.
    clients.wait().unwrap();
    database.start();
    assert!(database.log().contains("automatic recovery in progress"), "{}", database.log());
    let logs = fs::read_dir(&database.own).unwrap().map(|entry| entry.unwrap().path());
    let logs = logs.filter(|path| path.to_string_lossy().contains("/transactions."));
    let answered: usize = logs.map(|log| fs::read_to_string(log).unwrap().lines().count()).sum();
    let (answered, found) = (100 + answered as u64, database.transactions());
    assert!(answered >= 200, "{answered} transactions were answered");
    // One of each client may have been committed, and not answered.
    assert!((answered..=answered + 2).contains(&found), "{answered} answered, {found} found");
    database.check();
    database.run("pgbench", &["-n", "-t", "50", "-c", "2", "postgres"]);
    assert_eq!(database.transactions(), found + 100);
    database.stop();
    database.run("pg_checksums", &["--check", "-D", &database.data]);
}
