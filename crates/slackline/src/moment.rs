//! Times as people write them, and what of a recording lies between two of them.
//!
//! A time without a zone is one of the local zone, which is that of `TZ` or of the system. Where
//! the clocks are set back and a time comes twice, it is the first one; one that is left out when
//! they are set forward is as much later.

use crate::failure::Failure;
use client::Client;
use client::control::{Moment, Recorded, Volume};
use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, Span, Timestamp, ToSpan, Zoned};
use units::Bytes;

const FORMS: &str = "write it as 14:30, \"yesterday 14:30\", \"2026-11-24 14:30:05\", \"10m ago\" or \
                     2026-11-24T14:30:05Z";

/// A time that somebody named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When {
    at: Timestamp,
    /// It came twice, or was left out, when the clocks were set.
    is_doubtful: bool,
}

/// Reads a time, for the line of arguments.
pub fn when(text: &str) -> Result<When, String> {
    parse(text, &Zoned::now()).ok_or_else(|| format!("this is no time: {FORMS}"))
}

fn parse(text: &str, now: &Zoned) -> Option<When> {
    let text = text.trim();
    let certain = |at| When { at, is_doubtful: false };
    if text == "now" {
        return Some(certain(now.timestamp()));
    }
    if text.ends_with(" ago") {
        let span: Span = text.parse().ok()?;
        return Some(certain(now.checked_add(span).ok()?.timestamp()));
    }
    let (day, time) = text.split_once(' ').unwrap_or((text, "00:00"));
    let back = match day {
        "today" => Some(0),
        "yesterday" => Some(1),
        _ => None,
    };
    if let Some(back) = back {
        let day = now.date().checked_sub(back.days()).ok()?;
        return local(day, time.trim().parse().ok()?, now);
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(certain(at));
    }
    // Before a time alone, which is read out of one with a date as well.
    if let Ok(time) = text.parse::<DateTime>() {
        return local(time.date(), time.time(), now);
    }
    // The last time that it was so late.
    let time: Time = text.parse().ok()?;
    let today = local(now.date(), time, now)?;
    let is_past = today.at <= now.timestamp();
    if is_past { Some(today) } else { local(now.date().yesterday().ok()?, time, now) }
}

fn local(date: Date, time: Time, now: &Zoned) -> Option<When> {
    let found = now.time_zone().to_ambiguous_zoned(date.to_datetime(time));
    let is_doubtful = found.is_ambiguous();
    Some(When { at: found.compatible().ok()?.timestamp(), is_doubtful })
}

/// A length of time, for the line of arguments.
pub fn length(text: &str) -> Result<SignedDuration, String> {
    let read = text.parse::<SignedDuration>().ok().filter(SignedDuration::is_positive);
    read.ok_or_else(|| "this is no length of time: write it as 90s, 5m or 1h30m".into())
}

fn nanos(at: Timestamp) -> i64 {
    i64::try_from(at.as_nanosecond()).unwrap_or(if at > Timestamp::UNIX_EPOCH {
        i64::MAX
    } else {
        i64::MIN
    })
}

/// A time of a recording, in the local zone.
pub fn told(nanos: i64) -> String {
    let zone = jiff::tz::TimeZone::system();
    let at = Timestamp::from_nanosecond(nanos.into());
    at.map_or_else(|_| "-".into(), |at| at.to_zoned(zone).strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// Begin and end of a recording, for people.
pub fn span(recorded: &Recorded) -> String {
    let within = match recorded.within_ns {
        ..1_000_000_000 => String::new(),
        within => format!(", times within {}", units::Duration::from_nanos(within.cast_unsigned())),
    };
    format!("{} to {}{within}", told(recorded.begins_ns), told(recorded.ends_ns))
}

/// Where what a volume holds begins.
pub fn held_from(volume: &Volume) -> Bytes {
    volume.ring.as_ref().map_or(Bytes::ZERO, |ring| ring.start_bytes)
}

/// For how long a ring keeps what is recorded, as it is written.
pub fn age(age: units::Duration) -> String {
    let nanos = age.as_nanos();
    const SECOND: u64 = 1_000_000_000;
    let units = [(86_400 * SECOND, "d"), (3_600 * SECOND, "h"), (60 * SECOND, "min")];
    let whole = units.into_iter().find(|(unit, _)| nanos.is_multiple_of(*unit));
    whole.map_or_else(|| age.to_string(), |(unit, name)| format!("{} {name}", nanos / unit))
}

/// What of a recording is wanted, by the time when it was recorded.
#[derive(clap::Args, Clone, Copy)]
pub struct Between {
    /// From what was recorded at this time on: 14:30, "yesterday 14:30", "2026-11-24 14:30:05", "10m
    /// ago", or with a zone 2026-11-24T14:30:05Z
    ///
    /// A time without a zone is local; 14:30 is the last time that it was so late. Where the clocks
    /// are set back in autumn and a time comes twice, it is the first one; name the other with its
    /// offset from UTC.
    #[arg(long, value_name = "TIME", value_parser = when)]
    from: Option<When>,
    /// Up to what was recorded at this time
    #[arg(long, value_name = "TIME", value_parser = when, conflicts_with = "for")]
    to: Option<When>,
    /// Up to so long after --from, for example 5m
    #[arg(long = "for", id = "for", value_name = "TIME", value_parser = length, requires = "from")]
    length: Option<SignedDuration>,
}

impl Between {
    /// Whether anything was asked for.
    pub fn is_given(&self) -> bool {
        self.from.is_some() || self.to.is_some()
    }

    /// Where that begins in the volume, and where it ends. What is not as it was asked for is told
    /// on standard error.
    /// `otherwise` says what can be done where the times are not known.
    pub fn places(
        &self,
        client: &Client,
        volume: &Volume,
        otherwise: &str,
    ) -> Result<(Bytes, Bytes), Failure> {
        if volume.length_bytes.is_zero() {
            let what = format!("nothing is recorded in {} yet", volume.name);
            return Err(Failure::new(what, "ask again when something is"));
        }
        let find = |at: Timestamp| client.recorded_at(&volume.name, nanos(at));
        let doubtful = [self.from, self.to].into_iter().flatten().filter(|when| when.is_doubtful);
        let mut notes = Vec::new();
        for When { at, .. } in doubtful {
            let at = at.to_zoned(jiff::tz::TimeZone::system());
            notes.push(format!("the clocks are set at that time: {at} is taken"));
        }
        let to = match (self.to, self.from, self.length) {
            (Some(to), ..) => Some(to.at),
            (None, Some(from), Some(length)) => {
                Some(from.at.checked_add(length).map_err(|_| {
                    Failure::usage("--for leads beyond all times", "give a shorter one")
                })?)
            }
            _ => None,
        };
        let start = match self.from {
            Some(from) => begins((&volume.name, otherwise), from.at, find(from.at)?, &mut notes)?,
            None => held_from(volume),
        };
        let end = match to {
            Some(to) => match is_behind(volume.recorded.as_ref(), to, &mut notes) {
                true => volume.length_bytes,
                false => {
                    let from = self.from.map(|from| from.at);
                    ends((&volume.name, otherwise), (from, to), find(to)?, &mut notes)?
                }
            },
            None => volume.length_bytes,
        };
        let end = end.min(volume.length_bytes);
        if start < end {
            // Where nothing is found, they would contradict what is said of that.
            notes.iter().for_each(|note| eprintln!("slackline: note: {note}"));
            return Ok((start, end));
        }
        let part = self.from.zip(to).map(|(from, to)| (nanos(from.at), nanos(to)));
        let begins = volume.recorded.as_ref().map(|recorded| recorded.begins_ns);
        let what = match part.zip(begins).filter(|((_, to), begins)| to <= begins) {
            Some(((from, to), begins)) => ends_before((told(from), told(to)), &told(begins)),
            None => format!("nothing of {} was recorded between these times", volume.name),
        };
        Err(Failure::new(what, shows(&volume.name)))
    }
}

/// Of a part that was asked for.
fn ends_before((from, to): (String, String), begins: &str) -> String {
    format!("the part asked for, {from} to {to}, ends before the recording begins at {begins}")
}

/// Whether what was recorded last was recorded before this time: then all of it was, also what was recorded
/// before that, while a clock was ahead.
fn is_behind(recorded: Option<&Recorded>, asked: Timestamp, notes: &mut Vec<String>) -> bool {
    let Some(ended) = recorded.map(|recorded| recorded.ends_ns) else { return false };
    let asked = nanos(asked);
    if asked > ended {
        notes.push(format!("the recording ends at {}, before {}", told(ended), told(asked)));
    }
    asked >= ended
}

fn shows(name: &str) -> String {
    format!("`slackline volume show {}` says when it was recorded", report::quoted(name))
}

/// What commands without --start say where times are not known.
pub const BY_PLAY: &str = "leave the times away for all of it, or have a part written to a file by \
                           `slackline play VOLUME FILE --start OFFSET --length SIZE --rate RATE`";

fn unknown(name: &str, otherwise: &str) -> Failure {
    let what = format!("when {name} was recorded is not known");
    Failure::new(what, format!("streams note it while they record; {otherwise}"))
}

fn begins(
    (name, otherwise): (&str, &str),
    asked: Timestamp,
    found: Moment,
    notes: &mut Vec<String>,
) -> Result<Bytes, Failure> {
    let asked = told(nanos(asked));
    match found {
        Moment::At { offset_bytes } => Ok(offset_bytes),
        Moment::Before { offset_bytes, begins_ns } => {
            let begins = told(begins_ns);
            notes.push(format!(
                "{asked} is before the recording: from {begins} on, where it begins"
            ));
            Ok(offset_bytes)
        }
        Moment::Pause { offset_bytes, ended_ns, resumes_ns } => {
            let (ended, resumes) = (told(ended_ns), told(resumes_ns));
            notes.push(format!(
                "nothing was recorded at {asked}, between {ended} and {resumes}: from {resumes} on"
            ));
            Ok(offset_bytes)
        }
        Moment::After { ended_ns, .. } => {
            let what = format!("{asked} is after the recording, which ends at {}", told(ended_ns));
            Err(Failure::new(what, shows(name)))
        }
        Moment::Unknown => Err(unknown(name, otherwise)),
    }
}

fn ends(
    (name, otherwise): (&str, &str),
    (from, asked): (Option<Timestamp>, Timestamp),
    found: Moment,
    notes: &mut Vec<String>,
) -> Result<Bytes, Failure> {
    let asked = told(nanos(asked));
    match found {
        Moment::At { offset_bytes } | Moment::Pause { offset_bytes, .. } => Ok(offset_bytes),
        Moment::After { offset_bytes, ended_ns } => {
            notes.push(format!("the recording ends at {}, before {asked}", told(ended_ns)));
            Ok(offset_bytes)
        }
        Moment::Before { begins_ns, .. } => {
            let begins = told(begins_ns);
            let what = match from {
                Some(from) => ends_before((told(nanos(from)), asked), &begins),
                None => format!("{asked} is before the recording, which begins at {begins}"),
            };
            Err(Failure::new(what, shows(name)))
        }
        Moment::Unknown => Err(unknown(name, otherwise)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, now: &str) -> Option<String> {
        let now: Zoned = now.parse().unwrap();
        parse(text, &now).map(|when| when.at.to_string())
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        let now = "2026-11-25T10:00:00+01:00[Europe/Berlin]";
        for (text, at) in [
            ("now", "2026-11-25T09:00:00Z"),
            ("10m ago", "2026-11-25T08:50:00Z"),
            ("1h30m ago", "2026-11-25T07:30:00Z"),
            ("2 days ago", "2026-11-23T09:00:00Z"),
            ("today 08:15", "2026-11-25T07:15:00Z"),
            ("yesterday 14:30", "2026-11-24T13:30:00Z"),
            ("yesterday", "2026-11-23T23:00:00Z"),
            ("08:15:30", "2026-11-25T07:15:30Z"),
            // Later than now: yesterday's.
            ("14:30", "2026-11-24T13:30:00Z"),
            ("2026-11-24 14:30:05", "2026-11-24T13:30:05Z"),
            ("2026-11-20 14:30:05", "2026-11-20T13:30:05Z"),
            ("2026-11-20 08:15", "2026-11-20T07:15:00Z"),
            ("2026-11-24T14:30", "2026-11-24T13:30:00Z"),
            ("2026-11-24", "2026-11-23T23:00:00Z"),
            ("2026-11-24T14:30:05Z", "2026-11-24T14:30:05Z"),
            ("2026-11-24T14:30:05+05:30", "2026-11-24T09:00:05Z"),
        ] {
            assert_eq!(read(text, now).as_deref(), Some(at), "{text}");
        }
        for text in ["", "soon", "25:00", "yesterday 9", "2026-13-01", "10 ago", "ago"] {
            assert_eq!(read(text, now), None, "{text}");
        }
    }

    /// Where a clock was ahead for a minute, the last byte is not the one with the latest time.
    #[test]
    fn up_to_now_is_up_to_the_end() {
        let recorded = Recorded { begins_ns: 0, ends_ns: 5_000_000_000, within_ns: 1 };
        let behind = |seconds, notes: &mut Vec<String>| {
            is_behind(Some(&recorded), Timestamp::from_second(seconds).unwrap(), notes)
        };
        let mut notes = Vec::new();
        assert!(!behind(4, &mut notes) && behind(5, &mut notes) && notes.is_empty());
        assert!(behind(6, &mut notes) && notes[0].contains("the recording ends at"), "{notes:?}");
        assert!(!is_behind(None, Timestamp::MAX, &mut notes));
    }

    /// On 25 October 2026, 02:00 to 03:00 comes twice; on 28 March 2027 not at all.
    #[test]
    fn a_time_that_comes_twice_is_the_first_one() {
        let now = "2027-04-01T10:00:00+02:00[Europe/Berlin]".parse().unwrap();
        let twice = parse("2026-10-25 02:30", &now).unwrap();
        assert_eq!(
            (twice.at.to_string().as_str(), twice.is_doubtful),
            ("2026-10-25T00:30:00Z", true)
        );
        let never = parse("2027-03-28 02:30", &now).unwrap();
        assert_eq!(
            (never.at.to_string().as_str(), never.is_doubtful),
            ("2027-03-28T01:30:00Z", true)
        );
        assert!(!parse("2026-10-25 04:30", &now).unwrap().is_doubtful);
        assert!(length("5m").is_ok() && length("-5m").is_err() && length("long").is_err());
    }
}
