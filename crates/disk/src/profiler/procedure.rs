//! What is measured, in which order.
//!
//! A stage that cannot be finished leaves its part of the findings empty and says
//! why; what follows does without it, or is left out, too.

use super::chunks;
use super::desk::Stop;
use super::findings::{Findings, Measured, Mechanics, SeekPoint, WriteBuffer, ZoneFound};
use super::geometry::Geometry;
use super::seeks::{Arrival, Path, distances};
use super::session::{Session, nanos, span};
use super::statistics::quantile;
use alloc::format;
use alloc::vec::Vec;
use units::{Access, Command, Direction, Duration, Lba, SECTOR};

/// Measures everything and says what was found.
pub(super) async fn run(mut session: Session) -> Findings {
    let mut findings = Findings::new(SECTOR * session.end);
    if let Err(stop) = measure(&mut session, &mut findings).await {
        findings.faulty = stop == Stop::Faults;
        findings.notes.push(match stop {
            Stop::Spent => format!(
                "stopped after {} commands, as many or as long as was allowed: what is missing \
                 here was not measured",
                session.commands()
            ),
            Stop::Faults => "the target answers with errors: what is missing here could not be \
                             measured, and what is there may be wrong"
                .into(),
        });
    }
    note_rotation(&session, &mut findings);
    findings.commands = session.commands();
    session.stage("done", 1_000);
    findings.judge();
    findings
}

/// The rotation as it is known now; every later reading makes it better.
fn note_rotation(session: &Session, findings: &mut Findings) {
    if let Some(turn) = &session.turn {
        let confidence = format!("within {} ppm", turn.uncertainty_ppm());
        findings.rotation = Some(Measured::new(span(turn.period()), confidence));
    }
}

/// What is quick to find comes first, so that a measurement that runs out of time has
/// most of it; seeks, which take longest, come last.
async fn measure(session: &mut Session, findings: &mut Findings) -> Result<(), Stop> {
    let (far, hit) = session.find_hits().await?;
    findings.far_read = span(quantile(&far, 500));
    let segments = match hit {
        Some(_) => session.find_segments().await?,
        None => None,
    };
    findings.rotates = session.find_rotation().await?;
    if let Some(hit) = hit {
        findings.cache = Some(session.find_cache(hit, segments).await?);
    }
    if session.write {
        let times = session.find_write_buffer().await?;
        findings.write_buffer = Some(WriteBuffer::from_times(findings.rotates, &times));
    }
    findings.chunks = session.find_chunks().await?;
    findings.chunk_range = chunks::range(&findings.chunks);
    if findings.rotates {
        rotating(session, findings).await?;
    } else {
        findings.flat = Some(session.find_flat().await?);
        findings.throughput = session.find_throughput(None).await?;
    }
    Ok(())
}

async fn rotating(session: &mut Session, findings: &mut Findings) -> Result<(), Stop> {
    let Some(geometry) = session.find_geometry().await? else {
        findings.notes.push("it rotates, but no tracks could be told apart".into());
        return Ok(());
    };
    findings.zones_exact = geometry.exact;
    findings.heads = geometry.heads_known.then_some(geometry.heads);
    findings.zones = geometry
        .zones
        .iter()
        .map(|zone| ZoneFound {
            start: zone.start,
            sectors_per_track: zone.track,
            cylinders: geometry.cylinders(zone),
            track_skew: span(zone.track_skew),
            cylinder_skew: span(zone.cylinder_skew),
        })
        .collect();
    findings.throughput = session.find_throughput(Some(&geometry)).await?;
    find_mechanics(session, findings, &geometry).await?;
    check_bounds(session, findings).await?;
    findings.held = Some(session.find_held().await?);
    Ok(())
}

async fn find_mechanics(
    session: &mut Session,
    findings: &mut Findings,
    geometry: &Geometry,
) -> Result<(), Stop> {
    session.stage("seeks", 650);
    let same = session.arrival_sure(geometry, Path::Track).await?;
    let head = match geometry.heads {
        1 => None,
        _ => session.arrival_sure(geometry, Path::Head).await?,
    };
    let sector = session.period() / geometry.zones[0].track as i64 * session.grain as i64;
    // What varies from command to command on one track varies here, too.
    let base =
        same.unwrap_or(Arrival { mean: sector, deviation: 0, low: sector, high: sector, reads: 0 });
    let mut points = Vec::new();
    let all = distances(geometry.cylinders_all(), session.full());
    let total = all.len() as u32;
    for (index, distance) in all.into_iter().enumerate() {
        session.stage("seeks", 650 + 200 * index as u32 / total);
        if session.has_spent(950) {
            findings.notes.push("the longest seeks were left out for want of time".into());
            break;
        }
        if let Some(found) = session.arrival(geometry, Path::Cylinders(distance)).await? {
            points.push(point(distance, &found, &base));
        }
        let even = evened(&points);
        findings.mechanics = Some(mechanics(same.as_ref(), head.as_ref(), &even, sector));
    }
    Ok(())
}

/// Holds the profile against long reads at random places. What takes longer has a
/// cause that no part of the profile knows, such as a bus slower than the platters;
/// every bound is raised by it.
async fn check_bounds(session: &mut Session, findings: &mut Findings) -> Result<(), Stop> {
    session.stage("holding bounds against reads", 960);
    note_rotation(session, findings);
    let Ok(profile) = findings.profile() else { return Ok(()) };
    let mut head = Lba::new(0);
    for kib in [64u64, 256, 1_024] {
        let sectors = (kib * 2).next_multiple_of(session.grain);
        let mut over = Vec::new();
        for _ in 0..if session.full() { 300 } else { 100 } {
            let lba = session.place(0, session.end - sectors);
            let timing = session.transfer(lba, sectors, Direction::Read, 0).await?;
            let (lba, len) = (Lba::new(lba), SECTOR * sectors);
            let access = Access { lba, len, direction: Direction::Read };
            let bound = profile.bound(head, &Command::Transfer(access));
            over.push(nanos(timing.taken()) - nanos(bound));
            head = access.end();
        }
        // The host is late now and then; the few largest may be its own.
        let excess = quantile(&over, 960);
        if excess > 0 {
            // As much again, for the reads that were not tried.
            findings.excess = findings.excess.max(span(2 * excess));
        }
    }
    Ok(())
}

fn point(distance: u64, found: &Arrival, base: &Arrival) -> SeekPoint {
    let variance = found.deviation.pow(2) - base.deviation.pow(2);
    SeekPoint {
        distance,
        mean: span(found.mean - base.mean),
        deviation: span(variance.max(0).isqrt()),
        low: span(found.low - base.mean),
        high: span(found.high - base.mean),
        reads: found.reads,
    }
}

/// The points with deviations taken over their neighbours: one distance is measured
/// by some hundred reads, which tell its mean well and its deviation badly.
fn evened(points: &[SeekPoint]) -> Vec<SeekPoint> {
    const REACH: usize = 3;
    let even = |(index, point): (usize, &SeekPoint)| {
        let near = &points[index.saturating_sub(REACH)..(index + REACH + 1).min(points.len())];
        let sum: u128 = near.iter().map(|p| u128::from(p.deviation.as_nanos()).pow(2)).sum();
        let variance = (sum / near.len() as u128).isqrt();
        let deviation = Duration::from_nanos(u64::try_from(variance).expect("as its terms"));
        SeekPoint { deviation, ..*point }
    };
    points.iter().enumerate().map(even).collect()
}

fn mechanics(
    same: Option<&Arrival>,
    head: Option<&Arrival>,
    points: &[SeekPoint],
    sector: i64,
) -> Mechanics {
    let switch = |same: &Arrival, head: &Arrival| {
        let confidence = format!("{} reads against {} on one track", head.reads, same.reads);
        Measured::new(span(head.mean - same.mean), confidence)
    };
    Mechanics {
        overhead: same.map(|same| {
            let confidence = format!("{} reads on one track", same.reads);
            Measured::new(span(same.mean - sector), confidence)
        }),
        overhead_high: same.map(|same| span(same.high - sector)),
        head_switch: same.zip(head).map(|(same, head)| switch(same, head)),
        seeks: points.to_vec(),
    }
}
