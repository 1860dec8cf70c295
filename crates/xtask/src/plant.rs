//! The bugs of the table (`planted.rs`) are planted, one after the other, and the test that is
//! named there has to fail.
//!
//! Nothing happens in the checkout itself: its files are copied to `out/planted/sources`, and
//! built in `out/planted/target`, which stay so that the next run has less to build. A run fails
//! where a test fails already without a bug, where it does not fail with it or takes longer than
//! a minute, and where the bug does not compile.

use crate::planted::{self, Bug};
use crate::tidy;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The longest that a test may take.
const WITHIN: Duration = Duration::from_secs(60);

/// What libtest ends with where a test has failed.
const FAILED: i32 = 101;

/// Plants the bugs of the files whose names have one of `filters` in them, all without one; false
/// where one of them is not found.
///
/// # Errors
/// Where the table is wrong, or nothing can be built or run.
pub fn run(root: &Path, filters: &[String]) -> Result<bool, String> {
    let (bugs, wrong) = planted::rows(&read(&root.join(planted::PATH))?);
    if let Some(finding) = wrong.first() {
        return Err(finding.to_string());
    }
    let is_meant = |bug: &Bug| {
        let path = bug.path();
        filters.is_empty() || filters.iter().any(|filter| path.contains(filter.as_str()))
    };
    let bugs: Vec<Bug> = bugs.into_iter().filter(is_meant).collect();
    if bugs.is_empty() {
        return Err(format!("no file in {} has {} in its name", planted::PATH, filters.join(", ")));
    }
    let began = Instant::now();
    let place = Place::new(root)?;
    let mut bad = place.without_bugs(&bugs)?;
    let all = bugs.len();
    let mut found = 0;
    for (number, bug) in (1..).zip(&bugs) {
        let from = Instant::now();
        let verdict = place.with_bug(bug)?;
        let what = match &verdict {
            None => format!("found by {}", bug.test),
            Some(why) => format!("NOT FOUND: {why}"),
        };
        println!("planted: {number} of {all}: {}: {what}, {} s", bug.path(), secs(from));
        found += usize::from(verdict.is_none());
        bad.extend(verdict.map(|why| format!("{}: {}: {why}", bug.path(), bug.what)));
    }
    for one in &bad {
        println!("planted: not well: {one}");
    }
    println!("planted: {all} bugs, {found} found by a test of their own crate, {} s", secs(began));
    Ok(bad.is_empty())
}

fn secs(from: Instant) -> u64 {
    from.elapsed().as_secs()
}

/// How a test ended.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    Passed,
    Failed,
    /// In some other way, which is no answer.
    Not(String),
}

/// The copy that bugs are planted in.
struct Place {
    sources: PathBuf,
    target: PathBuf,
    /// Held while bugs are planted there.
    _lock: File,
}

impl Place {
    /// Has the files of the checkout at `root` as they are now. What is the same already is not
    /// written, so that cargo does not build it again.
    fn new(root: &Path) -> Result<Self, String> {
        let base = root.join("out/planted");
        let lock = alone_in(&base)?;
        let place =
            Self { sources: base.join("sources"), target: base.join("target"), _lock: lock };
        let wanted: BTreeSet<String> = tidy::paths(root)?.into_iter().collect();
        for path in &wanted {
            copy(&root.join(path), &place.sources.join(path))?;
        }
        for path in tidy::walk(&place.sources, "")? {
            if !wanted.contains(&path) {
                let path = place.sources.join(path);
                std::fs::remove_file(&path).map_err(|error| at(&path, &error))?;
            }
        }
        Ok(place)
    }

    /// What is not well before any bug is planted.
    fn without_bugs(&self, bugs: &[Bug]) -> Result<Vec<String>, String> {
        let mut tests: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
        for bug in bugs {
            tests.entry((&bug.krate, &bug.target)).or_default().insert(&bug.test);
        }
        let mut bad = Vec::new();
        for ((krate, target), tests) in tests {
            println!("planted: building {target} of {krate} without a bug");
            let program = self.build(krate, target)??;
            for test in tests {
                match self.test(krate, &program, test)? {
                    Ended::Passed => {}
                    Ended::Failed => bad.push(format!("{krate}: {test} fails without a bug")),
                    Ended::Not(why) => bad.push(format!("{krate}: {test} without a bug: {why}")),
                }
            }
        }
        Ok(bad)
    }

    /// Why a bug is not found; none where its test fails.
    fn with_bug(&self, bug: &Bug) -> Result<Option<String>, String> {
        let path = self.sources.join(bug.path());
        let source = read(&path)?;
        let Some(planted) = bug.plant(&source) else {
            return Ok(Some(format!("`{}` is not once in the file", bug.is)));
        };
        write(&path, planted.as_bytes())?;
        let ended = self.build(&bug.krate, &bug.target).and_then(|program| match program {
            Ok(program) => self.test(&bug.krate, &program, &bug.test),
            Err(error) => Ok(Ended::Not(format!("it does not compile: {error}"))),
        });
        write(&path, source.as_bytes())?;
        Ok(match ended? {
            Ended::Failed => None,
            Ended::Passed => Some(format!("{} passes", bug.test)),
            Ended::Not(why) => Some(format!("{}: {why}", bug.test)),
        })
    }

    /// The program with the tests of a target, or what the compiler says instead.
    fn build(&self, krate: &str, target: &str) -> Result<Result<PathBuf, String>, String> {
        let mut cargo = Command::new("cargo");
        // Most of what is built is built for one test that is soon over.
        let level = format!("profile.dev.package.slackline-{krate}.opt-level=0");
        cargo.args(["--config", &level]);
        cargo.args(["test", "--quiet", "--locked", "--no-run", "--message-format=json"]);
        cargo.args(["--package", &format!("slackline-{krate}")]);
        match target {
            "lib" => cargo.arg("--lib"),
            target => cargo.args(["--test", target]),
        };
        // From one bug to the next little is built, and nobody looks at it with a debugger.
        cargo.envs([("CARGO_INCREMENTAL", "1"), ("CARGO_PROFILE_DEV_DEBUG", "0")]);
        cargo.env("CARGO_TARGET_DIR", &self.target).current_dir(&self.sources);
        let output = cargo.output().map_err(|error| format!("cargo: {error}"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let why = errors(&said);
            let why =
                if why.is_empty() { String::from_utf8_lossy(&output.stderr).into() } else { why };
            return Ok(Err(why));
        }
        Ok(Ok(program(&said).ok_or("cargo names no program that it built")?))
    }

    /// Runs one test of a program.
    fn test(&self, krate: &str, program: &Path, test: &str) -> Result<Ended, String> {
        let mut command = Command::new(program);
        command.args(["--exact", test]).current_dir(self.sources.join("crates").join(krate));
        ended(&mut command, WITHIN)
    }
}

/// Nobody else plants bugs in the folder until what this gives is dropped.
fn alone_in(folder: &Path) -> Result<File, String> {
    std::fs::create_dir_all(folder).map_err(|error| at(folder, &error))?;
    let path = folder.join("lock");
    let lock = File::create(&path).map_err(|error| at(&path, &error))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => {
            Err(format!("another run plants bugs in {}; wait until it ends", folder.display()))
        }
        Err(TryLockError::Error(error)) => Err(at(&path, &error)),
    }
}

/// Runs the program of a test to its end, or stops it.
fn ended(command: &mut Command, within: Duration) -> Result<Ended, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = quiet.spawn().map_err(|error| format!("{name}: {error}"))?;
    let until = Instant::now() + within;
    loop {
        let status = child.try_wait().map_err(|error| format!("{name}: {error}"))?;
        match status.map(|status| (status.code(), status)) {
            Some((Some(0), _)) => return Ok(Ended::Passed),
            Some((Some(FAILED), _)) => return Ok(Ended::Failed),
            Some((_, status)) => return Ok(Ended::Not(status.to_string())),
            None if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
            None => break,
        }
    }
    child.kill().and_then(|()| child.wait()).map_err(|error| format!("{name}: {error}"))?;
    Ok(Ended::Not(format!("does not end within {} s", within.as_secs())))
}

/// The program of tests that cargo has built, in its messages.
fn program(messages: &str) -> Option<PathBuf> {
    let values = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut tests = values.filter(|value| value["profile"]["test"] == true);
    tests.find_map(|value| value["executable"].as_str().map(PathBuf::from))
}

/// The compiler's errors in cargo's messages, each by its first line.
fn errors(messages: &str) -> String {
    let values = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let errors = values.filter(|value| value["message"]["level"] == "error");
    let told = errors.filter_map(|value| value["message"]["message"].as_str().map(str::to_owned));
    told.collect::<Vec<_>>().join("; ")
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let bytes = match std::fs::read(from) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()), // deleted
        Err(error) => return Err(at(from, &error)),
    };
    if std::fs::read(to).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder).map_err(|error| at(folder, &error))?;
    }
    write(to, &bytes)
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| at(path, &error))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    std::fs::write(path, bytes).map_err(|error| at(path, &error))
}

fn at(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, within: Duration) -> Ended {
        ended(Command::new("sh").args(["-c", script]), within).unwrap()
    }

    #[test]
    fn a_test_fails_only_where_it_says_so_itself() {
        let long = Duration::from_secs(3_600);
        assert_eq!(shell("exit 0", long), Ended::Passed);
        assert_eq!(shell("exit 101", long), Ended::Failed);
        for other in ["exit 1", "kill -9 $$"] {
            assert!(matches!(shell(other, long), Ended::Not(_)), "{other}");
        }
        let endless = Ended::Not("does not end within 0 s".into());
        assert_eq!(shell("sleep 3600", Duration::ZERO), endless);
    }

    #[test]
    fn cargo_says_what_it_has_built_or_why_not() {
        let built = r#"{"reason": "compiler-artifact", "profile": {"test": false}, "executable": "/a"}
            {"reason": "compiler-artifact", "profile": {"test": true}, "executable": "/b"}"#;
        assert_eq!(program(built), Some("/b".into()));
        assert_eq!(program("{}\nwords\n"), None);
        let wrong = r#"{"reason": "compiler-message", "message": {"level": "warning", "message": "w"}}
            {"reason": "compiler-message", "message": {"level": "error", "message": "mismatched"}}"#;
        assert_eq!(errors(wrong), "mismatched");
        assert_eq!(errors(built), "");
    }
}
