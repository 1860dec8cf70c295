//! What the emulator says of itself: what it served, and how late it was.
//!
//! Two kinds of times are kept apart. Those of the *drive* are the model's: from
//! the arrival of a request to the end that the model gives, waiting in the drive's
//! queue included; they are exact. *Late* is the emulator's own: from that end to
//! the moment at which the answer was handed to the kernel. What the kernel takes
//! before and after is in neither.

use serde_json::{Value, json};
use units::{Bytes, Direction, Distribution, Duration};

/// What the drive did.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// From arrival to the model's end.
    pub reads: Distribution,
    /// The same for writes.
    pub writes: Distribution,
    /// The same for flushes.
    pub flushes: Distribution,
    /// Bytes that were read.
    pub bytes_read: Bytes,
    /// Bytes that were written.
    pub bytes_written: Bytes,
    /// Requests that failed, on request or with the power.
    pub failed: u64,
    /// What power cuts took back.
    pub lost: Bytes,
}

impl Served {
    pub(crate) fn count(
        &mut self,
        transfer: Option<(Bytes, Direction)>,
        good: bool,
        time: Duration,
    ) {
        self.failed += u64::from(!good);
        match transfer {
            None => self.flushes.record(time),
            Some((len, Direction::Read)) => {
                self.reads.record(time);
                self.bytes_read += len;
            }
            Some((len, Direction::Write)) => {
                self.writes.record(time);
                self.bytes_written += len;
            }
        }
    }
}

/// Everything, at one moment.
#[derive(Clone, Debug)]
pub struct Status {
    /// The model's name.
    pub model: String,
    /// How much the disk holds.
    pub capacity: Bytes,
    /// How many commands the drive takes in at once.
    pub depth: usize,
    /// Whether writes are acknowledged before they are on the medium.
    pub write_back: bool,
    /// What was served.
    pub served: Served,
    /// From the drive's end to the answer: the emulator's own part.
    pub late: Distribution,
    /// Requests without an answer.
    pub waiting: usize,
    /// What a power cut would take back.
    pub unflushed: Bytes,
    /// Faults in force, in words.
    pub troubles: Vec<String>,
    /// What came of the last order.
    pub last_order: Option<String>,
}

/// Quantiles that are told, in millionths, and their names.
const QUANTILES: [(u64, &str); 4] =
    [(500_000, "p50"), (990_000, "p99"), (999_000, "p99.9"), (999_900, "p99.99")];

fn row(name: &str, times: &Distribution) -> String {
    let mut line = format!("{name:<16}{:>9}", times.count());
    for (ppm, _) in QUANTILES {
        line.push_str(&format!("{:>10}", times.quantile(ppm).to_string()));
    }
    line.push_str(&format!("{:>10}\n", times.max().to_string()));
    line
}

fn times(times: &Distribution) -> Value {
    let mut value = json!({ "count": times.count(), "max_ns": times.max().as_nanos() });
    for (ppm, name) in QUANTILES {
        value[format!("{}_ns", name.replace('.', "_"))] = times.quantile(ppm).as_nanos().into();
    }
    value
}

impl Status {
    /// For a person.
    pub fn text(&self) -> String {
        let Served { bytes_read, bytes_written, failed, lost, .. } = &self.served;
        let depth = match self.depth {
            1 => "one command at a time".to_owned(),
            depth => format!("{depth} commands at once"),
        };
        let cache = if self.write_back { "on" } else { "off" };
        let mut text =
            format!("{}, {}, {depth}, volatile write cache {cache}\n", self.model, self.capacity);
        text.push_str(&format!(
            "read {bytes_read}, written {bytes_written}, failed {failed}, waiting {}\n",
            self.waiting
        ));
        if self.write_back {
            text.push_str(&format!(
                "not flushed {}, taken back by power cuts {lost}\n",
                self.unflushed
            ));
        }
        text.push_str(&format!("{:<16}{:>9}", "", "count"));
        QUANTILES.iter().for_each(|(_, name)| text.push_str(&format!("{name:>10}")));
        text.push_str(&format!("{:>10}\n", "max"));
        text.push_str(&row("drive: reads", &self.served.reads));
        text.push_str(&row("drive: writes", &self.served.writes));
        text.push_str(&row("drive: flushes", &self.served.flushes));
        text.push_str(&row("late: answers", &self.late));
        for trouble in &self.troubles {
            text.push_str(&format!("fault: {trouble}\n"));
        }
        if let Some(order) = &self.last_order {
            text.push_str(&format!("last order: {order}\n"));
        }
        text
    }

    /// For a program.
    pub fn json(&self) -> Value {
        json!({
            "model": self.model,
            "capacity_bytes": self.capacity.get(),
            "depth": self.depth,
            "write_back": self.write_back,
            "bytes_read": self.served.bytes_read.get(),
            "bytes_written": self.served.bytes_written.get(),
            "failed": self.served.failed,
            "waiting": self.waiting,
            "unflushed_bytes": self.unflushed.get(),
            "lost_bytes": self.served.lost.get(),
            "drive": {
                "reads": times(&self.served.reads),
                "writes": times(&self.served.writes),
                "flushes": times(&self.served.flushes),
            },
            "late": times(&self.late),
            "faults": self.troubles,
            "last_order": self.last_order,
        })
    }
}
