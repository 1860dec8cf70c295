//! `slackline disk profile`: measures a disk, and says what was found.
//!
//! Invariants: without `--write` the disk is only read; the journal is deleted
//! when the results have been written, or the disk fails too often to have any.

use crate::failure::Failure;
use crate::{Common, confirm};
use ::disk::profiler::{Effort, Findings, Progress, Sharing, Together, ZoneFound};
use engine::{DeviceSpec, ProfileError, ProfileOptions, Profiled};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How to measure what.
#[derive(clap::Args)]
pub struct Args {
    /// A file, a block device, or emulated:MODEL:FILE for a disk model in real time
    target: String,
    /// Write the profile here, as TOML
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write a page with plots here, as HTML
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// At most eight minutes; where zones end only roughly (the default)
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Everything, zones to the track; up to four hours
    #[arg(long)]
    full: bool,
    /// Write to the disk, too: what it holds is destroyed
    #[arg(long)]
    write: bool,
    /// Do not ask before writing
    #[arg(long, requires = "write")]
    overwrite: bool,
    /// Look first whether it shares a bus, or the disk itself, with this target, which is
    /// only read
    #[arg(long, value_name = "TARGET")]
    beside: Option<String>,
    /// Keep the answers here, to go on after a stop [default: beside the output,
    /// else in the directory for temporary files]
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
}

impl From<ProfileError> for Failure {
    fn from(error: ProfileError) -> Self {
        match error {
            ProfileError::Device(error) => error.into(),
            other => Self::new(other.to_string(), other.next_step()),
        }
    }
}

/// Runs it.
pub fn run(args: &Args, common: &Common) -> Result<(), Failure> {
    let spec: DeviceSpec = args.target.parse()?;
    if args.write && matches!(spec, DeviceSpec::Real { .. }) && !args.overwrite {
        let name = spec.path().display().to_string();
        let warning = format!("Everything that {name} holds will be overwritten.");
        confirm::destroy(&warning, &name, "--overwrite")?;
    }
    let journal = args.journal.clone().unwrap_or_else(|| journal_path(args));
    let effort = if args.full { Effort::Full } else { Effort::Quick };
    let options = ProfileOptions { effort, write: args.write, journal: journal.clone() };
    let stop = stop_on_signals()?;
    let sharing = match &args.beside {
        Some(other) => {
            eprintln!("reading {} and {other}, alone and both at once", args.target);
            let other: DeviceSpec = other.parse()?;
            let sharing = engine::beside([&spec, &other], &stop, &mut warn)?;
            if sharing.is_none() && !stop.load(Ordering::Relaxed) {
                warn(
                    "nothing is known of a common bus: one of the two answers with errors, or \
                     this machine was too busy to read both at once",
                );
            }
            if let Some((seen, other)) = sharing.as_ref().zip(args.beside.as_ref()) {
                // At once: what follows may take minutes, and may be stopped.
                eprint!("{seen}");
                eprintln!("{} {}", args.target, seen.verdict(other));
            }
            sharing
        }
        None => None,
    };
    let bar = Bar::new();
    let ended =
        engine::profile(&spec, &options, &stop, &mut warn, &mut |progress| bar.at(progress));
    bar.finish();
    match ended? {
        Profiled::Stopped(progress) => Err(Failure::new(
            format!(
                "stopped after {} commands, while measuring {}; what was found so far is in {}",
                progress.commands,
                progress.stage,
                journal.display()
            ),
            "give the same command again to go on",
        )),
        Profiled::Done(mut findings) => {
            if let Some((sharing, other)) = sharing.as_ref().zip(args.beside.as_ref()) {
                findings.verdict.push(sharing.verdict(other));
            }
            let told = tell(args, &findings, sharing.as_ref(), common);
            if told.is_ok() || findings.faulty {
                // The results are told, or are none; the journal has no more use.
                let _ = std::fs::remove_file(&journal);
            }
            told
        }
    }
}

/// A place that is the same when the command is given again.
fn journal_path(args: &Args) -> PathBuf {
    if let Some(output) = &args.output {
        let mut name = output.as_os_str().to_owned();
        name.push(".journal");
        return name.into();
    }
    let name: String =
        args.target.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    std::env::temp_dir().join(format!("slackline-profile{name}.journal"))
}

/// The first signal stops the measurement after the answer that is waited for; the
/// second ends the process, where a disk does not answer.
fn stop_on_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]);
    let mut signals = signals.map_err(|error| Failure::new(format!("signals: {error}"), ""))?;
    let flag = Arc::clone(&stop);
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if flag.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
            eprintln!("stopping when the disk has answered; another signal ends it at once");
        }
    });
    Ok(stop)
}

fn warn(warning: &str) {
    eprintln!("warning: {warning}");
}

fn tell(
    args: &Args,
    findings: &Findings,
    sharing: Option<&Sharing>,
    common: &Common,
) -> Result<(), Failure> {
    if let Some(path) = &args.report {
        write(path, &super::report::page(&args.target, findings))?;
    }
    let toml = findings.to_toml().map_err(|error| {
        let notes = findings.notes.join("; ");
        match findings.faulty {
            true => Failure::new(
                format!("{}: {notes}", args.target),
                "read what the system's log says of it (dmesg); the next measurement begins anew",
            ),
            false => Failure::new(format!("{}: {error}", args.target), notes),
        }
    })?;
    if let Some(path) = &args.output {
        write(path, &toml)?;
    }
    common.output().result(&json(findings, sharing, &toml), |_| text(args, findings))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| Failure::file(path, &error))
}

fn json(findings: &Findings, sharing: Option<&Sharing>, toml: &str) -> Value {
    json!({
        "rotates": findings.rotates,
        "rotation_ns": findings.rotation.as_ref().map(|found| found.value.as_nanos()),
        "capacity_bytes": findings.capacity.get(),
        "heads": findings.heads,
        "zones": findings.zones.iter().map(zone).collect::<Vec<_>>(),
        "commands": findings.commands,
        "cache_bytes": findings.cache.as_ref().map(|cache| cache.size.get()),
        "chunk_bytes": findings.chunk_range.map(|(low, high)| [low.get(), high.get()]),
        "beside": sharing.map(|sharing| json!({
            "shared": match sharing.together() {
                Together::Shared => Some(true),
                Together::Apart => Some(false),
                Together::Unclear => None,
            },
            "percent_of_time_alone": sharing.percent(),
        })),
        "notes": findings.notes,
        "verdict": findings.verdict,
        "profile": toml,
    })
}

fn zone(zone: &ZoneFound) -> Value {
    json!({ "start_sector": zone.start, "sectors_per_track": zone.sectors_per_track })
}

fn text(args: &Args, findings: &Findings) -> String {
    let mut text = super::facts::table(findings).text("");
    for line in findings.notes.iter().chain(&findings.verdict) {
        text.push_str(&format!("* {line}\n"));
    }
    if let Some(path) = &args.output {
        text.push_str(&format!("profile written to {}\n", path.display()));
    }
    text
}

/// Progress on standard error: a bar where a person looks, else a line a stage.
struct Bar {
    bar: Option<ProgressBar>,
    stage: std::cell::Cell<&'static str>,
}

impl Bar {
    fn new() -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(1_000);
            let style = ProgressStyle::with_template("{wide_bar} {percent} % {elapsed} {msg}")
                .expect("the template is sound");
            bar.set_style(style);
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(4));
            bar
        });
        Self { bar, stage: std::cell::Cell::new("") }
    }

    fn at(&self, progress: Progress) {
        if let Some(bar) = &self.bar {
            bar.set_position(u64::from(progress.permille));
        }
        if self.stage.replace(progress.stage) != progress.stage {
            match &self.bar {
                Some(bar) => bar.set_message(progress.stage),
                None => eprintln!("measuring {}", progress.stage),
            }
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
