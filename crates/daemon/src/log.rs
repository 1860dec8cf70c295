//! What the daemon says to whoever runs it: lines of text, JSON, or entries of the journal with
//! their fields.
//!
//! Whoever has something to say says it by `tracing`, with the names that the table in
//! docs/daemon.md has. A thread of its own writes it: a terminal, a pipe or a journal that takes nothing
//! keeps nobody waiting. What waits is bounded, and what is left out is counted and said. What a panic
//! says goes to standard error past all this, and waits for that two seconds at most.
//!
//! Invariants: an entry is one line, whatever the names in it are; nothing waits for the journal.

use serde_json::{Map, Value};
use std::fmt::{self, Write as _};
use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Entries that wait to be written.
const WAITING_MAX: usize = 1_024;
/// Bytes of a value; what is longer is cut.
const VALUE_MAX: usize = 4_096;
/// How long the end of the daemon waits for what was said.
const FLUSH_WITHIN: Duration = Duration::from_secs(1);
/// Where the journal listens.
const JOURNAL: &str = "/run/systemd/journal/socket";

/// In which form entries are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Lines on standard error.
    Text,
    /// Lines on standard error, each an object.
    Json,
    /// To systemd's journal, with fields.
    Journal,
}

impl FromStr for Format {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            "journal" => Ok(Self::Journal),
            _ => Err("no form of a log; write text, json or journal"),
        }
    }
}

impl Format {
    /// The journal where standard error leads there, as the service manager says; else text.
    fn by_default() -> Self {
        let stream = std::env::var("JOURNAL_STREAM").ok();
        let is_journal = rustix::fs::fstat(io::stderr()).is_ok_and(|error| {
            stream.is_some_and(|stream| stream == format!("{}:{}", error.st_dev, error.st_ino))
        });
        if is_journal { Self::Journal } else { Self::Text }
    }
}

/// How much is said: this, and what is more urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level(tracing::Level);

impl FromStr for Level {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "error" => Ok(Self(tracing::Level::ERROR)),
            "warn" => Ok(Self(tracing::Level::WARN)),
            "info" => Ok(Self(tracing::Level::INFO)),
            "debug" => Ok(Self(tracing::Level::DEBUG)),
            _ => Err("no level of a log; write error, warn, info or debug"),
        }
    }
}

/// Something that was said.
#[derive(Clone, Debug)]
struct Entry {
    level: tracing::Level,
    at: Duration,
    message: String,
    fields: Vec<(&'static str, String)>,
}

enum Sent {
    Entry(Entry),
    Flush(Sender<()>),
}

static WRITER: OnceLock<SyncSender<Sent>> = OnceLock::new();
static LEFT_OUT: AtomicU64 = AtomicU64::new(0);

/// What this process says goes there from now on. Once in a process; what is said before is not written.
///
/// # Errors
/// Where there is no thread for it.
pub fn start(format: Option<Format>, level: Option<Level>) -> io::Result<()> {
    let format = format.unwrap_or_else(Format::by_default);
    let (waits, waiting) = sync_channel(WAITING_MAX);
    let output = Output::new(format, Path::new(JOURNAL));
    let thread = std::thread::Builder::new().name("slackline-log".into());
    thread.spawn(move || write_all(&waiting, output))?;
    engine::say_panics_in_time();
    let level = level.map_or(tracing::Level::INFO, |level| level.0);
    if WRITER.set(waits).is_ok() {
        // Nobody else sets one in this program.
        let _ = tracing::subscriber::set_global_default(Sink { level });
    }
    Ok(())
}

/// Waits until all that was said is written: for a second at most, and not where so much waits that
/// nobody seems to take it.
pub fn flush() {
    let Some(writer) = WRITER.get() else { return };
    let (done, is_done) = channel();
    if writer.try_send(Sent::Flush(done)).is_ok() {
        let _ = is_done.recv_timeout(FLUSH_WITHIN);
    }
}

fn write_all(waiting: &Receiver<Sent>, mut output: Output) {
    for sent in waiting {
        match sent {
            Sent::Entry(entry) => {
                if !output.write(&entry) {
                    LEFT_OUT.fetch_add(1, Ordering::Relaxed);
                }
                output.tell_left_out(&LEFT_OUT);
            }
            Sent::Flush(done) => drop(done.send(())),
        }
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Takes what the crates of the daemon say, and no spans.
struct Sink {
    level: tracing::Level,
}

impl Subscriber for Sink {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_own =
            ["daemon", "slackline"].contains(&metadata.target().split(':').next().unwrap_or(""));
        metadata.is_event() && is_own && *metadata.level() <= self.level
    }
    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::from_level(self.level))
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let (level, at) = (*event.metadata().level(), now());
        let mut entry = Entry { level, at, message: String::new(), fields: Vec::new() };
        event.record(&mut entry);
        let sent = WRITER.get().map(|writer| writer.try_send(Sent::Entry(entry)));
        if !matches!(sent, Some(Ok(()))) {
            LEFT_OUT.fetch_add(1, Ordering::Relaxed);
        }
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

impl Visit for Entry {
    fn record_str(&mut self, field: &Field, value: &str) {
        let end = value.floor_char_boundary(VALUE_MAX);
        match field.name() {
            "message" => self.message = value[..end].into(),
            name => self.fields.push((name, value[..end].into())),
        }
    }
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

/// Where entries go.
enum Output {
    Text,
    Json,
    Journal(UnixDatagram),
}

impl Output {
    /// Text on standard error where there is no journal.
    fn new(format: Format, journal: &Path) -> Self {
        let connected = || {
            let socket = UnixDatagram::unbound()?;
            socket.connect(journal)?;
            socket.set_nonblocking(true)?;
            io::Result::Ok(socket)
        };
        match format {
            Format::Text => Self::Text,
            Format::Json => Self::Json,
            Format::Journal => connected().map_or(Self::Text, Self::Journal),
        }
    }

    /// False where it was not taken.
    fn write(&mut self, entry: &Entry) -> bool {
        let mut lines = io::stderr();
        match self {
            Self::Text => lines.write_all(text(entry).as_bytes()).is_ok(),
            Self::Json => lines.write_all(json(entry).as_bytes()).is_ok(),
            Self::Journal(socket) => socket.send(&journal(entry)).is_ok(),
        }
    }

    /// Says how many entries were left out since this was said last; they stay counted where that is
    /// not taken either.
    fn tell_left_out(&mut self, count: &AtomicU64) {
        let left_out = count.swap(0, Ordering::Relaxed);
        if left_out == 0 {
            return;
        }
        let message =
            format!("entries of the log that nobody took in time, and are lost: {left_out}");
        let fields = vec![("left_out", left_out.to_string())];
        if !self.write(&Entry { level: tracing::Level::WARN, at: now(), message, fields }) {
            count.fetch_add(left_out, Ordering::Relaxed);
        }
    }
}

fn text(entry: &Entry) -> String {
    let warning = if entry.level == tracing::Level::WARN { "warning: " } else { "" };
    let mut line = format!("slackline: {warning}");
    for char in entry.message.chars() {
        match char.is_control() {
            true => _ = write!(line, "{}", char.escape_default()),
            false => line.push(char),
        }
    }
    line.push('\n');
    line
}

fn json(entry: &Entry) -> String {
    let mut object = Map::new();
    for (name, value) in &entry.fields {
        object.insert((*name).into(), Value::from(value.as_str()));
    }
    let at = u64::try_from(entry.at.as_millis()).unwrap_or(u64::MAX);
    object.insert("at_ms".into(), at.into());
    object.insert("level".into(), entry.level.as_str().to_lowercase().into());
    object.insert("message".into(), entry.message.as_str().into());
    format!("{}\n", Value::Object(object))
}

/// An entry by the journal's own protocol: a value that has more than one line is told with its length.
fn journal(entry: &Entry) -> Vec<u8> {
    let priority = match entry.level {
        tracing::Level::ERROR => "3",
        tracing::Level::WARN => "4",
        tracing::Level::INFO => "6",
        _ => "7",
    };
    let mut bytes = Vec::new();
    let mut put = |name: &str, value: &str| {
        bytes.extend_from_slice(name.as_bytes());
        match value.contains('\n') {
            true => {
                bytes.push(b'\n');
                bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
            }
            false => bytes.push(b'='),
        }
        bytes.extend_from_slice(value.as_bytes());
        bytes.push(b'\n');
    };
    put("MESSAGE", &entry.message);
    put("PRIORITY", priority);
    put("SYSLOG_IDENTIFIER", "slackline");
    for (name, value) in &entry.fields {
        put(&format!("SLACKLINE_{}", name.to_uppercase()), value);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry {
            level: tracing::Level::WARN,
            at: Duration::from_millis(1_790_000_000_123),
            message: "volume a\nPRIORITY=0\u{1b}[2J is full".into(),
            fields: vec![("volume", "a\nPRIORITY=0".into()), ("event", "found".into())],
        }
    }

    /// What the journal makes of it, as its protocol is described.
    fn parsed(mut bytes: &[u8]) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let end = bytes.iter().position(|&byte| byte == b'=' || byte == b'\n').expect("a name");
            let name = String::from_utf8(bytes[..end].to_vec()).expect("text");
            let (value, rest) = match bytes[end] {
                b'=' => {
                    let value = &bytes[end + 1..];
                    let len = value.iter().position(|&byte| byte == b'\n').expect("an end");
                    (&value[..len], &value[len..])
                }
                _ => {
                    let (len, value) = bytes[end + 1..].split_first_chunk::<8>().expect("a length");
                    value.split_at(u64::from_le_bytes(*len) as usize)
                }
            };
            fields.push((name, String::from_utf8(value.to_vec()).expect("text")));
            bytes = rest.strip_prefix(b"\n").expect("an end");
        }
        fields
    }

    #[test]
    fn a_name_forges_no_line_and_no_field() {
        let entry = entry();
        let line = text(&entry);
        assert_eq!(line, "slackline: warning: volume a\\nPRIORITY=0\\u{1b}[2J is full\n");
        let line = json(&entry);
        assert_eq!(line.lines().count(), 1);
        let object: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(
            (&object["message"], &object["level"]),
            (&entry.message.as_str().into(), &"warn".into())
        );
        assert_eq!(object["volume"], "a\nPRIORITY=0");
        assert_eq!(object["at_ms"], 1_790_000_000_123_u64);
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let fields = [
            ("MESSAGE", entry.message.as_str()),
            ("PRIORITY", "4"),
            ("SYSLOG_IDENTIFIER", "slackline"),
            ("SLACKLINE_VOLUME", "a\nPRIORITY=0"),
            ("SLACKLINE_EVENT", "found"),
        ];
        assert_eq!(parsed(&journal(&entry)), fields.map(owned));
    }

    /// A journal that takes nothing keeps nobody waiting. What it did not take is counted, and said when
    /// it takes something again.
    #[test]
    fn what_the_journal_does_not_take_is_counted_and_said() {
        let dir = tempfile::tempdir().expect("there is room");
        let path = dir.path().join("journal");
        let listener = UnixDatagram::bind(&path).expect("a socket");
        listener.set_nonblocking(true).expect("a socket");
        let mut output = Output::new(Format::Journal, &path);
        let mut taken = vec![0; 4_096];
        let mut next = || listener.recv(&mut taken).ok().map(|len| parsed(&taken[..len]));
        assert!(output.write(&entry()));
        assert_eq!(next(), Some(parsed(&journal(&entry()))));

        let left_out = AtomicU64::new(0);
        for _ in 0..5_000 {
            left_out.fetch_add(u64::from(!output.write(&entry())), Ordering::Relaxed);
            output.tell_left_out(&left_out);
        }
        let count = left_out.load(Ordering::Relaxed);
        assert!(count > 0, "it took all");
        let read = std::iter::from_fn(&mut next).count() as u64;
        assert_eq!(read + count, 5_000);
        output.tell_left_out(&left_out);
        let said = next().expect("an entry");
        assert!(said.contains(&("SLACKLINE_LEFT_OUT".into(), count.to_string())), "{said:?}");
        assert_eq!(left_out.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn without_a_journal_it_is_text() {
        let nowhere = Path::new("/nonexistent/journal");
        assert!(matches!(Output::new(Format::Journal, nowhere), Output::Text));
    }
}
