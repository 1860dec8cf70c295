//! Checking a pool: everything is read, nothing is written, every damage named.
//!
//! A pool that was opened after its last power cut, and is intact, has no
//! findings but notes. A pool that was not opened since may have warnings that
//! cannot be told from damage, such as a record that was cut short; opening it
//! mends them.

use crate::api::Lag;
use crate::api::{DiskIndex, Io, IoError, IoId, Pool};
use crate::error::Damage;
use crate::facts::Facts;
use crate::geometry::{Area, Geometry};
use crate::lag::lagging;
use crate::structure::Problem;
use crate::survey::Survey;
use crate::verdict::{Verdict, judge, members};
use crate::volume::Volume;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use units::Bytes;

/// How bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Good to know; nothing is wrong.
    Note,
    /// Damaged, but another copy is whole; opening the pool mends it.
    Warning,
    /// The pool cannot be opened as it is.
    Error,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad.
    pub severity: Severity,
    /// Which of the given devices; none where it is about one that was not given.
    pub device: Option<DiskIndex>,
    /// Where on the device, in bytes.
    pub offset: Option<Bytes>,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub next: &'static str,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.severity {
            Severity::Note => "note: ",
            Severity::Warning => "warning: ",
            Severity::Error => "error: ",
        })?;
        write!(f, "{}; {}", self.what, self.next)
    }
}

/// What a check found.
#[derive(Clone, Debug)]
pub struct Report {
    /// The pool, where a label says what it is.
    pub pool: Option<Pool>,
    /// The volumes, where they can be read.
    pub volumes: Vec<Volume>,
    /// Everything found, the worst first.
    pub findings: Vec<Finding>,
}

impl Report {
    /// How bad the worst finding is; none where there is none.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}

/// Checks a pool: a state machine over [`Io`] that only reads. Its I/O means a
/// disk by its place among the given devices, which may be given in any order.
#[derive(Clone, Debug)]
pub struct Checking {
    survey: Survey,
}

impl Checking {
    /// Checks the pool on devices of these sizes.
    pub fn new(capacities: &[Bytes]) -> Self {
        Self { survey: Survey::new(capacities) }
    }
    /// The next I/O to start; none while others must end first.
    pub fn poll(&mut self) -> Option<Io> {
        self.survey.poll()
    }
    /// An I/O has ended, with the bytes that were asked for.
    pub fn done(&mut self, id: IoId, result: Result<Vec<u8>, IoError>) {
        self.survey.done(id, result);
    }
    /// True when no I/O is left or on its way.
    pub fn is_finished(&self) -> bool {
        self.survey.facts().is_some()
    }
    /// The end.
    ///
    /// # Panics
    /// Unless [`Checking::is_finished`].
    pub fn finish(self) -> Report {
        assert!(self.is_finished(), "the pool is still being checked");
        let facts = self.survey.into_facts();
        let mut findings = Findings::default();
        findings.identity(&facts);
        findings.labels(&facts);
        let mut volumes = Vec::new();
        let behind = lagging(&facts);
        findings.behind(&behind);
        if behind.is_empty() && facts.members.iter().any(Option::is_some) {
            match judge(&facts) {
                Ok(verdict) => {
                    findings.areas(&facts, &verdict);
                    findings.records(&facts, &verdict);
                    volumes = verdict.state.volumes.into_values().collect();
                }
                Err(damage) if matches!(damage.problem, Problem::EndUnreadable(_)) => {
                    findings.add(Severity::Error, &damage, damage.next_step());
                }
                Err(damage) => {
                    findings.add(Severity::Error, &damage, RESTORE);
                    findings.wrecks(&facts, &damage);
                }
            }
        }
        let mut findings = findings.0;
        findings.sort_by_key(|finding| core::cmp::Reverse(finding.severity));
        Report { pool: facts.label.map(|label| label.pool), volumes, findings }
    }
}

const MENDED: &str = "opening the pool writes it anew from a whole copy";
const RESTORE: &str = "no other copy of it is whole: restore that disk from a copy";

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, severity: Severity, damage: &Damage, next: &'static str) {
        self.0.push(Finding {
            severity,
            device: Some(damage.device),
            offset: Some(damage.offset),
            what: damage.to_string(),
            next,
        });
    }
    /// Wrong, missing and foreign disks.
    fn identity(&mut self, facts: &Facts) {
        self.0.extend(facts.identity.iter().map(|error| Finding {
            severity: Severity::Error,
            device: error.device(),
            offset: None,
            what: format!("{}", error.what()),
            next: error.next_step(),
        }));
        let given: Vec<_> = facts.members.iter().flatten().collect();
        if !given.is_sorted() {
            self.0.push(Finding {
                severity: Severity::Note,
                device: None,
                offset: None,
                what: String::from(
                    "the disks are given in another order than they have in the pool",
                ),
                next: "any order will do",
            });
        }
    }
    /// Disks of an earlier time. What else differs on them follows from that.
    fn behind(&mut self, behind: &[Lag]) {
        self.0.extend(behind.iter().map(|lag| Finding {
            severity: Severity::Error,
            device: Some(lag.device),
            offset: None,
            what: lag.to_string(),
            next: lag.next_step(),
        }));
    }
    /// Copies of labels and profiles.
    fn labels(&mut self, facts: &Facts) {
        for (_, device, _) in members(facts) {
            let found = &facts.devices[device.as_usize()];
            let no_profile = found.profiles.iter().all(Result::is_err);
            for copy in [0, 1] {
                let damage = |name: &str, offset, problem| Damage {
                    device,
                    what: format!("{name}, copy {copy}"),
                    offset,
                    problem,
                };
                if let Err(problem) = found.labels[copy] {
                    let damage = damage("label", found.label_at(copy), problem);
                    self.add(Severity::Warning, &damage, MENDED);
                    continue; // the profile beside it was not looked for
                }
                if let Err(problem) = found.profiles[copy] {
                    let damage = damage("profile", found.profile_at(copy), problem);
                    match no_profile {
                        true => self.add(Severity::Error, &damage, RESTORE),
                        false => self.add(Severity::Warning, &damage, MENDED),
                    }
                }
            }
        }
    }
    /// Checkpoints and seals, held against what they should be.
    fn areas(&mut self, facts: &Facts, verdict: &Verdict) {
        for (disk, device, geometry) in members(facts) {
            let current = verdict.current[disk];
            for area in Area::BOTH {
                let found = facts.area(device, area);
                let should = match area == current {
                    true => verdict.stamp.generation,
                    // The twin, or the area that was left for the current one.
                    false => verdict.stamp.generation - 1,
                };
                let problem = match found.checkpoint {
                    Err(problem) => Some(problem),
                    Ok(stamp) if stamp.generation == should => None,
                    Ok(_) => Some(Problem::Contradiction("it is of another generation")),
                };
                if let Some(problem) = problem {
                    self.area(device, &geometry, area, "checkpoint", problem);
                }
                // Where the other area was left, the seal comes with the first record.
                let stamp = &verdict.stamp;
                let sealed = !stamp.is_twin()
                    || facts.records.keys().any(|(generation, _)| *generation == stamp.generation);
                let problem = match found.seal {
                    _ if area == current || !sealed => None,
                    Ok(successor) if successor == verdict.stamp.generation => None,
                    Ok(_) => Some(Problem::Contradiction("it is of another generation")),
                    Err(problem) => Some(problem),
                };
                if let Some(problem) = problem {
                    self.area(device, &geometry, area, "seal", problem);
                }
                let log = geometry.log(area);
                if let Some((offset, error)) = found.unreadable_in(log, log + geometry.log_size()) {
                    let (what, problem) =
                        (format!("log in {}", area.name()), Problem::Unreadable(error));
                    self.add(Severity::Warning, &Damage { device, what, offset, problem }, MENDED);
                }
            }
        }
    }
    fn area(
        &mut self,
        device: DiskIndex,
        geometry: &Geometry,
        area: Area,
        name: &str,
        problem: Problem,
    ) {
        let offset = match name {
            "checkpoint" => geometry.checkpoint(area),
            _ => geometry.seal(area),
        };
        let what = format!("{name} in {}", area.name());
        self.add(Severity::Warning, &Damage { device, what, offset, problem }, MENDED);
    }
    /// Every disk should have every record of the current generation twice.
    fn records(&mut self, facts: &Facts, verdict: &Verdict) {
        let mut used = Bytes::ZERO;
        let generation = verdict.stamp.generation;
        for ((_, sequence), record) in facts.records.range((generation, 0)..=(generation, u64::MAX))
        {
            let size = record.copies[0].size;
            for (disk, device, geometry) in members(facts) {
                let area = verdict.current[disk];
                for copy in [0, 1] {
                    let offset = geometry.log(area) + used + size * copy;
                    let here =
                        |place: &&crate::facts::Place| place.device == device && place.at == offset;
                    if record.copies.iter().find(here).is_none() {
                        let what = format!("log record {sequence} in {}, copy {copy}", area.name());
                        let problem = Problem::Checksum;
                        let damage = Damage { device, what, offset, problem };
                        self.add(Severity::Warning, &damage, MENDED);
                    }
                }
            }
            used += size * 2;
        }
    }
    /// Where there is no state: everything that is not whole.
    fn wrecks(&mut self, facts: &Facts, told: &Damage) {
        for (_, device, geometry) in members(facts) {
            for area in Area::BOTH {
                let at = geometry.checkpoint(area);
                if (told.device, told.offset) != (device, at)
                    && let Err(problem) = facts.area(device, area).checkpoint
                {
                    let what = format!("checkpoint in {}", area.name());
                    let damage = Damage { device, what, offset: at, problem };
                    self.add(Severity::Error, &damage, RESTORE);
                }
            }
        }
    }
}
