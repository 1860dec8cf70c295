//! What is known of all cameras at one instant: for programs, and as a table.

use report::Table;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Rate};

/// All cameras.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// The file that names them.
    pub file: String,
    /// The supervisor's process.
    pub pid: u32,
    /// When this was so.
    pub time: String,
    /// In the order of the file.
    pub cameras: Vec<Seen>,
}

/// One camera.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Seen {
    /// Its name.
    pub name: String,
    /// Where its bytes go.
    pub volume: String,
    /// `recording`, `starting`, `down`, or why the daemon does not take its bytes: `no daemon`,
    /// `stream closed` (by another program, or for silence), `refused`, `full`, `busy`, `stuck`, `failed`.
    pub state: String,
    /// Since when it has been in this state.
    pub since: String,
    /// The same, in seconds up to now.
    pub for_seconds: u64,
    /// Why, where it is not recording.
    pub why: Option<String>,
    /// Since when its command gives nothing, whatever the state.
    pub down_since: Option<String>,
    /// The rate of the file.
    pub asked_bytes_per_second: u64,
    /// The rate of the contract in force.
    pub contract_bytes_per_second: Option<u64>,
    /// What the command gave over the last window.
    pub measured_bytes_per_second: Option<u64>,
    /// The stream, where there is one.
    pub stream: Option<u64>,
    /// Everything before this offset of the volume is on the medium.
    pub durable_bytes: u64,
    /// The size of the volume.
    pub size_bytes: u64,
    /// How long the rest of the volume lasts at the measured rate; none of a ring.
    pub seconds_left: Option<u64>,
    /// Of a ring: how old its oldest byte becomes at the measured rate.
    #[serde(default)]
    pub seconds_kept: Option<u64>,
    /// Of a ring: what was recorded so long ago is given up, as the daemon has it now.
    #[serde(default)]
    pub keep_seconds: Option<u64>,
    /// Where what it has now differs from what its file says.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What the command gave since the supervisor began.
    pub given_bytes: u64,
    /// What is in memory, and on no medium yet.
    pub buffer_bytes: u64,
    /// The most that may be.
    pub buffer_max_bytes: u64,
    /// How often the command was started.
    pub starts: u64,
    /// What was lost since the supervisor began.
    pub lost_bytes: u64,
    /// The last losses.
    pub losses: Vec<Loss>,
    /// Since when bytes are lost, where they are now.
    #[serde(default)]
    pub losing_since: Option<String>,
    /// The last loss, where it ended within the last hour.
    #[serde(default)]
    pub lost_lately: Option<Loss>,
    /// What its command gives, and players will not know.
    #[serde(default)]
    pub unplayable: Vec<Told>,
}

/// What is the case, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// The one.
    pub what: String,
    /// The other.
    pub next_step: String,
}

/// Bytes that are in no volume.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Loss {
    /// When they began to be lost.
    pub from: String,
    /// When no more were lost.
    pub to: String,
    /// How many.
    pub bytes: u64,
    /// Why.
    pub why: String,
}

impl Seen {
    /// What a person should know of this camera of a file now, each with a word for it; nothing of one
    /// that records, and loses nothing. What says more is `command`.
    pub fn troubles(&self, file: &str, command: &str) -> Vec<(&'static str, Told)> {
        let name = format!("camera {} of {file}", self.name);
        let why = self.why.as_deref().unwrap_or("it does not say why");
        let more = |what: String| Told { what, next_step: format!("{command} says more") };
        let mut told = Vec::new();
        match (self.state.as_str(), &self.down_since) {
            ("recording" | "starting", None) => {}
            ("recording" | "starting", Some(down)) => {
                told.push(("state", more(format!("{name} gives nothing since {down}"))));
            }
            (state, _) => {
                let what = format!("{name} is {state} since {}: {why}", self.since);
                told.push(("state", more(what)));
            }
        }
        if let Some(since) = &self.losing_since {
            let what =
                format!("{name} loses bytes since {since}: its buffer is full, and the oldest go");
            told.push(("lost", more(what)));
        } else if let Some(Loss { from, to, bytes, why }) = &self.lost_lately {
            let (bytes, all) = (Bytes::new(*bytes), Bytes::new(self.lost_bytes));
            let what = format!(
                "{name} lost {bytes} between {from} and {to}: {why}; {all} since its supervisor began"
            );
            told.push(("lost", more(what)));
        }
        told.extend(self.unplayable.iter().map(|Told { what, next_step }| {
            let what = format!("{name}: {what}");
            ("unplayable", Told { what, next_step: next_step.clone() })
        }));
        told
    }
}

impl Snapshot {
    /// What says all that the supervisor knows.
    pub fn command(&self) -> String {
        format!("`slackline cameras {} --status`", report::quoted(&self.file))
    }

    /// A line for a screen that has more than cameras.
    pub fn line(&self) -> String {
        let (recording, rest): (Vec<_>, Vec<_>) =
            self.cameras.iter().partition(|seen| seen.state == "recording");
        let mut text = format!("cameras of {}: {} recording", self.file, recording.len());
        for seen in &rest {
            text += &format!(", {} {}", seen.name, seen.state);
        }
        let lost: u64 = self.cameras.iter().map(|seen| seen.lost_bytes).sum();
        if lost > 0 {
            text += &format!("; {} lost", Bytes::new(lost));
        }
        text + &format!(" ({})\n", self.command())
    }

    /// A table, and below it what is wrong.
    pub fn text(&self) -> String {
        let headings = [
            "camera",
            "state",
            ">for",
            ">gives",
            ">contract",
            ">recorded",
            ">left",
            ">waits",
            ">lost",
        ];
        let mut table = Table::new(&headings);
        for seen in &self.cameras {
            table.row(vec![
                seen.name.clone(),
                seen.state.clone(),
                report::span(Duration::from_secs(seen.for_seconds)),
                rate(seen.measured_bytes_per_second),
                rate(seen.contract_bytes_per_second),
                Bytes::new(seen.durable_bytes).to_string(),
                left(seen.seconds_left, seen.seconds_kept),
                Bytes::new(seen.buffer_bytes).to_string(),
                Bytes::new(seen.lost_bytes).to_string(),
            ]);
        }
        let mut text = table.text("");
        // What is so of many is said once.
        let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
        for (seen, note) in
            self.cameras.iter().flat_map(|seen| seen.notes.iter().map(move |note| (seen, note)))
        {
            match notes.iter_mut().find(|(other, _)| other == note) {
                Some((_, names)) => names.push(&seen.name),
                None => notes.push((note, vec![&seen.name])),
            }
        }
        for seen in &self.cameras {
            if let Some(why) = &seen.why {
                text += &format!("{}: {} since {}: {why}\n", seen.name, seen.state, seen.since);
            }
            if let (Some(down), true) = (&seen.down_since, seen.state != "down") {
                text += &format!("{}: gives nothing since {down}\n", seen.name);
            }
            for loss in &seen.losses {
                let Loss { from, to, bytes, why } = loss;
                let bytes = Bytes::new(*bytes);
                text += &format!("{}: lost {bytes} between {from} and {to}: {why}\n", seen.name);
            }
        }
        for (note, names) in notes {
            text += &format!("{}: {note}\n", names.join(", "));
        }
        text
    }
}

fn rate(bytes: Option<u64>) -> String {
    bytes.map_or("-".into(), |bytes| Rate::per_second(bytes).to_string())
}

/// How long a volume lasts, or how much of the past a ring has.
pub fn left(seconds_left: Option<u64>, seconds_kept: Option<u64>) -> String {
    match (seconds_left, seconds_kept) {
        (_, Some(kept)) => format!("ring of {}", days(kept)),
        (Some(left), None) => days(left),
        (None, None) => "-".into(),
    }
}

/// A time as the days that people plan in.
pub fn days(seconds: u64) -> String {
    let tenths = seconds / 8_640;
    match tenths {
        0..10 => report::span(Duration::from_secs(seconds)),
        10..1_000 => format!("{}.{} days", tenths / 10, tenths % 10),
        _ => format!("{} days", tenths / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_told_to_the_tenth_where_they_are_few() {
        let told: Vec<_> = [7_260, 86_400, 220_000, 8_640_000].map(days).into();
        assert_eq!(told, ["2 h 1 min", "1.0 days", "2.5 days", "100 days"]);
    }
}
