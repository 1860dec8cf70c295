//! PostgreSQL on a directory, and pgbench beside it.

use super::super::samples::Samples;
use super::super::{failed, folder};
use super::tools::{Tools, directory, run};
use crate::failure::Failure;
use report::quoted;
use std::path::{Path, PathBuf};
use units::Duration;

/// Rows of accounts, in hundred thousands: 75 MB, more than the database's own memory.
const SCALE: &str = "5";
/// Programs that wait for one transaction each.
const CLIENTS: &str = "4";

/// A database that serves, until the demo's end.
pub struct Database {
    postgres: PathBuf,
    /// Where its socket and pgbench's logs are.
    folder: PathBuf,
}

impl Database {
    /// Makes and starts one in a new directory `data`, and fills it.
    pub fn start(folder: &Path, name: &str, data: &Path, tools: &Tools) -> Result<Self, Failure> {
        let own = directory(folder, name)?;
        std::fs::create_dir(data).map_err(|error| Failure::file(data, &error))?;
        let [own_text, data_text] = [&own, data].map(|path| path.display().to_string());
        run("chown", &["postgres", &own_text, &data_text])?;
        let this = Self { postgres: tools.postgres.clone(), folder: own };
        this.run("initdb", &["-D", &data_text, "-A", "trust", "--no-sync"])?;
        // Memory for little of it, and no checkpoint by chance in one run and not in another.
        let options = format!(
            "-k {own_text} -c listen_addresses= -c shared_buffers=16MB -c checkpoint_timeout=1h"
        );
        let log = format!("{own_text}/log");
        let control = format!("{}/pg_ctl", this.postgres.display());
        let stop = format!(
            "cd / && runuser -u postgres -- {control} -D {} -m immediate stop",
            quoted(&data_text)
        );
        folder::undo(folder, &stop)?;
        this.run("pg_ctl", &["-D", &data_text, "-o", &options, "-l", &log, "-w", "start"])?;
        Ok(this)
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<String, Failure> {
        let program = self.postgres.join(program).display().to_string();
        let chdir = format!("--chdir={}", self.folder.display());
        let before = [chdir.as_str(), "runuser", "-u", "postgres", "--", &program];
        run("env", &[&before[..], arguments].concat())
    }

    fn bench(&self, arguments: &[&str]) -> Result<String, Failure> {
        let socket = self.folder.display().to_string();
        let common = ["-h", &socket, "-U", "postgres"];
        self.run("pgbench", &[&common[..], arguments, &["postgres"]].concat())
    }

    /// Fills its tables anew.
    pub fn fill(&self) -> Result<(), Failure> {
        self.bench(&["-i", "-q", "-s", SCALE]).map(|_| ())
    }

    /// How long each transaction took of those that ended within so many seconds. pgbench's own
    /// log stays beside the database's, named for the run.
    pub fn transactions(&self, run: &str, seconds: u64) -> Result<Samples, Failure> {
        let name = format!("transactions-{run}.");
        let prefix = self.folder.join(name.trim_end_matches('.')).display().to_string();
        let (prefix, seconds) = (format!("--log-prefix={prefix}"), seconds.to_string());
        self.bench(&["-c", CLIENTS, "-T", &seconds, "-n", "-l", &prefix])?;
        let mut samples = Samples::default();
        let failed_at = |error: std::io::Error| Failure::file(&self.folder, &error);
        for entry in std::fs::read_dir(&self.folder).map_err(failed_at)? {
            let path = entry.map_err(failed_at)?.path();
            if path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&name)) {
                let text = std::fs::read_to_string(&path).map_err(failed_at)?;
                text.lines().try_for_each(|line| {
                    // Client, transaction, microseconds, ...
                    let micros = line.split(' ').nth(2).and_then(|word| word.parse().ok());
                    let micros = micros.ok_or_else(|| failed(format!("pgbench wrote: {line}")))?;
                    samples.add(Duration::from_micros(micros));
                    Ok::<_, Failure>(())
                })?;
            }
        }
        Ok(samples)
    }
}
