//! A plan in words and tables.

use crate::output::{Table, counted, percent};
use crate::status::PROMISED;
use client::control::{
    Alternative, Plan, PlannedDisk, PlannedMode, PlannedStream, Variation, Zone,
};
use units::Bytes;

/// Everything. The list may have streams of which it does not say whether they read or write.
pub fn all(plan: &Plan, is_either: bool) -> String {
    let mut text = verdict(plan);
    text.push_str(&streams(&plan.streams));
    text.push_str(&disks(&plan.disks));
    text.push_str(&format!(
        "memory: {} for windows, of {} that are free\n",
        plan.window_bytes, plan.memory_bytes
    ));
    text.push_str(&alternatives(plan));
    text.push_str(&modes(plan));
    if is_either && !plan.modes.is_empty() {
        text.push_str(EITHER);
    }
    text
}

/// Said below the blocks that the pool would choose.
const EITHER: &str = "these are blocks of players where no mode is named: a recording gets others, and \
                      is planned with `--mode write`, in a list `mode = \"write\"`\n";

fn verdict(plan: &Plan) -> String {
    match &plan.stops {
        None => "it fits\n".into(),
        Some(stop) => {
            let asked = plan.streams.iter().find(|kind| kind.name == stop.name);
            let asked = asked.map_or(stop.number, |kind| kind.asked);
            format!("it does not fit: {} {} of {asked} is refused\n", stop.name, stop.number)
        }
    }
}

fn streams(kinds: &[PlannedStream]) -> String {
    let mut table = Table::new(&["", ">asked", ">fit", ">more would", ">window", ">memory"]);
    let size = |size: Bytes| if size.is_zero() { "-".into() } else { size.to_string() };
    for kind in kinds {
        let more = match kind.more {
            Some(more) if kind.stops.is_none() => format!("over {more}"),
            Some(more) => more.to_string(),
            None => "-".into(),
        };
        table.row(vec![
            kind.name.clone(),
            kind.asked.to_string(),
            kind.admitted.to_string(),
            more,
            size(kind.window_bytes),
            size(kind.window_bytes * kind.admitted),
        ]);
    }
    table.text("  ")
}

fn disks(disks: &[PlannedDisk]) -> String {
    let headings = ["disk", ">promised", ">left", ">slack", ">after", ">best effort gets about"];
    let mut table = Table::new(&headings);
    for disk in disks {
        table.row(vec![
            disk.disk.to_string(),
            percent(disk.utilisation_ppm),
            percent(disk.best_effort_ppm),
            disk.slack_ns.to_string(),
            disk.critical_ns.map_or("-".into(), |critical| critical.to_string()),
            disk.best_effort_estimate_bytes_per_second.to_string(),
        ]);
    }
    format!("with all that fit:\n{}{PROMISED}", table.text("  "))
}

fn alternatives(plan: &Plan) -> String {
    if plan.alternatives.is_empty() {
        return String::new();
    }
    let headings = ["", "fit", ">promised", ">slack", ">memory", ">best effort gets about"];
    let mut table = Table::new(&headings);
    let asked: u64 = plan.streams.iter().map(|kind| kind.asked).sum();
    for other in &plan.alternatives {
        let fit = match other.fits {
            true => "all".into(),
            false => format!("{} of {asked}", other.admitted),
        };
        table.row(vec![
            name(&other.variation, plan.disks.len()),
            fit,
            percent(other.utilisation_ppm),
            other.slack_ns.to_string(),
            other.window_bytes.to_string(),
            other.best_effort_estimate_bytes_per_second.to_string(),
        ]);
    }
    let would = best(&plan.alternatives).filter(|_| !plan.fits);
    let would = would.map(|other| {
        format!("it would all fit with {}\n", name(&other.variation, plan.disks.len()))
    });
    format!("the same in other ways:\n{}{}", table.text("  "), would.unwrap_or_default())
}

/// What to advise of those that hold all: of several blocks the shortest that promises little more
/// of the disks than the best one does, since longer ones take more memory.
fn best(all: &[Alternative]) -> Option<&Alternative> {
    let suits = |other: &&Alternative| other.fits && other.variation != Variation::Asked {};
    let suiting = || all.iter().filter(suits);
    let blocks = || suiting().filter(|it| matches!(it.variation, Variation::Blocks { .. }));
    let least = blocks().map(|it| it.utilisation_ppm).min().unwrap_or(0);
    let enough = |it: &&Alternative| it.utilisation_ppm <= least + least / 10;
    blocks().find(enough).or_else(|| suiting().next())
}

/// Each mode of a pool with what it takes. A pool follows the one that it was told.
fn modes(plan: &Plan) -> String {
    if plan.modes.is_empty() {
        return String::new();
    }
    let headings = ["", "blocks", "fit", ">promised", ">memory", ">window full after"];
    let mut table = Table::new(&headings);
    let asked: u64 = plan.streams.iter().map(|kind| kind.asked).sum();
    for mode in &plan.modes {
        let mut blocks: Vec<u64> = mode.block_bytes.iter().flatten().copied().collect();
        blocks.sort_unstable();
        blocks.dedup();
        let blocks: Vec<String> = blocks.iter().map(|&it| Bytes::new(it).to_string()).collect();
        let fit = match mode.fits {
            true => "all".into(),
            false => format!("{} of {asked}", mode.admitted),
        };
        table.row(vec![
            flags(mode),
            blocks.join(", "),
            fit,
            percent(mode.utilisation_ppm),
            mode.window_bytes.to_string(),
            mode.begins_ns.to_string(),
        ]);
    }
    let text = table.text("  ");
    format!("the same in blocks that the pool chooses, with `slackline pool set`:\n{text}")
}

fn flags(mode: &PlannedMode) -> String {
    let settings = mode.settings.iter();
    let settings: String = settings
        .map(|(name, value)| format!(" --setting {name}={}", value.replace(' ', "")))
        .collect();
    let now = if mode.now { " (now)" } else { "" };
    format!("--policy {}{settings}{now}", mode.policy)
}

fn name(variation: &Variation, disks: usize) -> String {
    match variation {
        Variation::Asked {} => "as asked".into(),
        Variation::Blocks { block_bytes } => format!("blocks of {block_bytes}"),
        Variation::Zone { zone: Zone::Outer } => "volumes in the outer half".into(),
        Variation::Zone { zone: Zone::Inner } => "volumes in the inner half".into(),
        Variation::Zone { zone: Zone::Any } => "volumes anywhere".into(),
        Variation::Apart {} => "each volume on one disk".into(),
        Variation::Disks { disks: count } => {
            let more = usize::from(*count) > disks;
            let like = if more { " like disk 0" } else { "" };
            format!("volumes over {}{like}", counted((*count).into(), "disk"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Duration, Rate};

    fn other(variation: Variation, fits: bool, utilisation_ppm: u64) -> Alternative {
        Alternative {
            variation,
            fits,
            admitted: 0,
            utilisation_ppm,
            slack_ns: Duration::ZERO,
            window_bytes: Bytes::ZERO,
            best_effort_estimate_bytes_per_second: Rate::ZERO,
        }
    }

    /// Neither the shortest block that just fits, nor the longest, which takes most memory.
    #[test]
    fn the_block_that_is_advised_promises_little_more_than_the_best_one() {
        let block =
            |mib, fits, ppm| other(Variation::Blocks { block_bytes: Bytes::mib(mib) }, fits, ppm);
        let asked = other(Variation::Asked {}, false, 0);
        let outer = other(Variation::Zone { zone: Zone::Outer }, true, 100_000);
        let all = [asked, block(1, false, 990_000), block(2, true, 950_000)];
        let mut all =
            [&all[..], &[block(4, true, 640_000), block(8, true, 600_000), outer]].concat();
        assert_eq!(best(&all), Some(&all[3]));
        all.retain(|one| !matches!(one.variation, Variation::Blocks { .. }));
        assert_eq!(best(&all), Some(&all[1]), "without blocks what else there is");
        assert_eq!(best(&all[..1]), None);
    }
}
