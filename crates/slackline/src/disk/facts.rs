//! What the profiler found, as one table: for the terminal and for the page.

use crate::output::Table;
use ::disk::profiler::{Cache, Findings, Flat, Mechanics, WriteBuffer};

/// Rows of what, its value, and how well it is known.
struct Rows(Table);

impl Rows {
    fn row(&mut self, what: &str, found: impl ToString, known: &str) {
        self.0.row(vec![what.to_owned(), found.to_string(), known.to_owned()]);
    }

    fn rotation(&mut self, findings: &Findings) {
        match &findings.rotation {
            Some(turn) => self.row("turn", turn.value, &turn.confidence),
            None => self.row("turn", "none", "no period in 48 readings of one sector"),
        }
        if !findings.zones.is_empty() {
            let exact = if findings.zones_exact { "to the track" } else { "ends about right" };
            self.row("zones", findings.zones.len(), exact);
        }
        if let Some(heads) = findings.heads {
            self.row("heads", heads, "by the rhythm of the skews");
        }
        if let Some((mean, full)) = findings.seek_mean_and_full() {
            self.row("seek", format!("{mean} mean, {full} full"), "from reads made and missed");
        }
        if let Some(curve) = findings.two_phase() {
            let known = format!("off by {} at most", curve.off_most);
            self.row("seek over d cylinders", curve, &known);
        }
    }

    fn mechanics(&mut self, mechanics: &Mechanics) {
        if let Some(switch) = &mechanics.head_switch {
            self.row("head switch", switch.value, &switch.confidence);
        }
        if let Some(overhead) = &mechanics.overhead {
            self.row("overhead", overhead.value, &overhead.confidence);
        }
    }

    fn cache(&mut self, cache: &Cache) {
        let found = format!("{} segments of {}", cache.segments.value, cache.segment.value);
        self.row("cache", found, &cache.segments.confidence);
        self.row("reads ahead", cache.read_ahead, "when left alone");
    }

    fn flat(&mut self, flat: &Flat) {
        self.row("commands in flight", flat.depth, "for 95 % of the best rate");
        if let Some((size, _, alone)) = flat.read.sizes.first() {
            self.row("small read alone", alone, &format!("median, {size}"));
        }
        if let Some(mixed) = flat.mixed {
            self.row("reads and writes mixed", mixed, "16 KiB each, at that depth");
        }
        if let Some(steady) = flat.steady {
            let found = format!("{} at first, then {}", steady.first, steady.slowest);
            self.row("writes without a break", found, &format!("over {}", steady.written));
        }
    }

    fn writes(&mut self, writes: &WriteBuffer) {
        self.row("small write", writes.random, "median, at a random place");
        let known =
            format!("the longest after one write; with nothing to do {}", writes.flush_idle);
        self.row("flush", writes.flush, &known);
        let full = "the longest behind as many writes as a commit leaves";
        self.row("flush of a full cache", writes.flush_full, full);
        let early = match writes.hides_latency {
            Some(true) => "yes",
            Some(false) => "no",
            None => "times do not tell",
        };
        self.row("writes answered early", early, "before they are on the medium");
    }
}

/// The table of everything that one line can tell.
pub fn table(findings: &Findings) -> Table {
    let mut rows = Rows(Table::new(&["what", "found", "how well it is known"]));
    rows.row("capacity", findings.capacity, "as the target says");
    rows.rotation(findings);
    findings.mechanics.iter().for_each(|found| rows.mechanics(found));
    findings.cache.iter().for_each(|found| rows.cache(found));
    findings.flat.iter().for_each(|found| rows.flat(found));
    findings.write_buffer.iter().for_each(|found| rows.writes(found));
    if let Some((low, high)) = findings.chunk_range {
        rows.row("streams in chunks", format!("{low} to {high}"), "93 % of the best rate");
    }
    rows.0
}
