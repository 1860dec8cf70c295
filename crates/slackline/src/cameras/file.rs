//! The file of `slackline cameras`: what it says, and what is wrong with it.
//!
//! Invariants: what is wrong is told with its line, and with what to do; every number is within its
//! bounds behind this door.

use super::limits::{
    BUFFER_LASTS, BUFFER_MAX, BUFFER_MIN, BUFFERS_MAX, CAMERAS_MAX, PACKET_MAX, PIECE,
};
use crate::failure::Failure;
use crate::plan::list::from_text;
use client::control::Contract;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use toml::Spanned;
use units::{Bytes, Duration, Outside, Rate};

/// The pool looks so often for what is older.
const KEEP_MIN: Duration = Duration::from_secs(10);
/// The packet of MPEG-TS, which the default command makes.
const TS_PACKET: Bytes = Bytes::new(188);
/// What a camera may ask for at the most unless the file says otherwise: so many times its rate.
const RATE_MAX: u64 = 4;

/// The size of a ring is a multiple of it.
const RING_OF: Bytes = Bytes::mib(16);

/// What the file says.
#[derive(Debug)]
pub struct File {
    /// In its order.
    pub cameras: Vec<Spec>,
    /// Where the status socket is, if it says so.
    pub status: Option<PathBuf>,
}

/// One camera.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// What it is called.
    pub name: String,
    /// Where its bytes go.
    pub volume: String,
    /// The size of that, where it has to be made.
    pub size: Bytes,
    /// The file names no size, and that is what the rate comes to in the time that is kept.
    pub is_size_by_keep: bool,
    /// How large that may grow as it fills.
    pub grow_to: Option<Bytes>,
    /// It is a ring, which gives up its oldest bytes.
    pub ring: bool,
    /// It takes its space when it is written, where it has to be made.
    pub thin: bool,
    /// What was recorded so long ago is given up also where there is room for it.
    pub keep: Option<Duration>,
    /// The command that gives its bytes, with its arguments.
    pub command: Vec<String>,
    /// What it asks for.
    pub rate: Rate,
    /// What it may ask for when it is seen to need more.
    pub rate_max: Rate,
    /// The block of its contract; none where the daemon chooses.
    pub block: Option<Bytes>,
    /// The burst; none for one block.
    pub burst: Option<Bytes>,
    /// Memory between the command and the medium, at the most, under a contract of `rate`.
    pub buffer: usize,
    /// The same under a larger one.
    pub buffer_max: usize,
    /// Its bytes come in whole packets of so many.
    pub packet: usize,
    /// The command is ended when it gives no byte for so long.
    pub stall: std::time::Duration,
    /// Over how long its rate is measured.
    pub window: Duration,
    /// The shortest and the longest wait before the command is started again.
    pub retry: (std::time::Duration, std::time::Duration),
}

impl Spec {
    /// The size of its ring, where the daemon takes none of less than `least` for its contract: what
    /// the file says; or what its `keep` comes to, and twice the least, since the daemon's windows
    /// are longer for some minutes where its host was late. Half of the least is given up ahead, so
    /// that so much more than `keep` comes to holds it.
    pub fn ring_size(&self, least: Bytes) -> Bytes {
        if !self.is_size_by_keep {
            return self.size;
        }
        let kept = self.keep.map_or(Bytes::ZERO, |keep| self.rate.bytes_in(keep));
        let room = least.saturating_add(least.max(kept)).min(Bytes::OUTSIDE_MAX);
        self.size.max(room.round_up(RING_OF))
    }

    /// Its buffer under a contract of this rate.
    pub fn buffer_for(&self, rate: Rate) -> usize {
        buffer_for(rate).as_usize().min(self.buffer_max).max(self.buffer)
    }

    /// The contract of this rate, in blocks that are chosen where the file names none.
    pub fn contract(&self, rate: Rate, chosen: Bytes) -> Contract {
        let block_bytes = self.block.unwrap_or(chosen);
        let burst_bytes = self.burst.unwrap_or(block_bytes);
        Contract { rate_bytes_per_second: rate, block_bytes, burst_bytes }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    #[serde(default)]
    status: Option<PathBuf>,
    #[serde(default)]
    defaults: Settings,
    #[serde(default)]
    camera: Vec<Spanned<Entry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    volume: Option<String>,
    source: Option<String>,
    // What `defaults` may say as well. (`flatten` would lose the lines of what is wrong.)
    command: Option<Vec<String>>,
    input: Option<Vec<String>>,
    output: Option<Vec<String>>,
    #[serde(default, deserialize_with = "from_text")]
    rate: Option<Rate>,
    #[serde(default, deserialize_with = "from_text")]
    rate_max: Option<Rate>,
    #[serde(default, deserialize_with = "from_text")]
    size: Option<Bytes>,
    #[serde(default, deserialize_with = "from_text")]
    grow_to: Option<Bytes>,
    ring: Option<bool>,
    thin: Option<bool>,
    #[serde(default, deserialize_with = "from_text")]
    keep: Option<Duration>,
    #[serde(default, deserialize_with = "from_text")]
    block: Option<Bytes>,
    #[serde(default, deserialize_with = "from_text")]
    burst: Option<Bytes>,
    #[serde(default, deserialize_with = "from_text")]
    buffer: Option<Bytes>,
    #[serde(default, deserialize_with = "from_text")]
    packet: Option<Bytes>,
    #[serde(default, deserialize_with = "from_text")]
    stall: Option<Duration>,
    #[serde(default, deserialize_with = "from_text")]
    window: Option<Duration>,
    #[serde(default, deserialize_with = "from_text")]
    retry: Option<Duration>,
    #[serde(default, deserialize_with = "from_text")]
    retry_max: Option<Duration>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    command: Option<Vec<String>>,
    input: Option<Vec<String>>,
    output: Option<Vec<String>>,
    #[serde(default, deserialize_with = "from_text")]
    rate: Option<Rate>,
    #[serde(default, deserialize_with = "from_text")]
    rate_max: Option<Rate>,
    #[serde(default, deserialize_with = "from_text")]
    size: Option<Bytes>,
    #[serde(default, deserialize_with = "from_text")]
    grow_to: Option<Bytes>,
    ring: Option<bool>,
    thin: Option<bool>,
    #[serde(default, deserialize_with = "from_text")]
    keep: Option<Duration>,
    #[serde(default, deserialize_with = "from_text")]
    block: Option<Bytes>,
    #[serde(default, deserialize_with = "from_text")]
    burst: Option<Bytes>,
    #[serde(default, deserialize_with = "from_text")]
    buffer: Option<Bytes>,
    #[serde(default, deserialize_with = "from_text")]
    packet: Option<Bytes>,
    #[serde(default, deserialize_with = "from_text")]
    stall: Option<Duration>,
    #[serde(default, deserialize_with = "from_text")]
    window: Option<Duration>,
    #[serde(default, deserialize_with = "from_text")]
    retry: Option<Duration>,
    #[serde(default, deserialize_with = "from_text")]
    retry_max: Option<Duration>,
}

/// What is wrong, and what to do about it.
struct Wrong(String, String);

fn wrong<T>(what: impl Into<String>, next: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong(what.into(), next.into()))
}

impl File {
    /// The file at this path.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path).map_err(|error| Failure::file(path, &error))?;
        Self::parse(path, &text)
    }

    /// The same, of a text that was read from `path`.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Failure> {
        let at = path.display();
        let parsed: Text = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(text, span.start));
            let what = error.message().replace('\n', ", ");
            let next = how_to_write(&what);
            Failure::usage(format!("{at}: line {line}: {what}"), next)
        })?;
        if parsed.camera.is_empty() {
            let next = "add a camera: [[camera]], and below it name, source and rate";
            return Err(Failure::usage(format!("{at} names no camera"), next));
        }
        let (mut names, mut volumes) = (BTreeSet::new(), BTreeSet::new());
        let mut cameras = Vec::new();
        for entry in parsed.camera {
            let line = line_of(text, entry.span().start);
            let entry = entry.into_inner();
            let name = entry.name.clone();
            let told = |Wrong(what, next)| {
                Failure::usage(format!("{at}: line {line}: camera {name:?}: {what}"), next)
            };
            let spec = entry.spec(&parsed.defaults).map_err(told)?;
            if !names.insert(spec.name.clone()) {
                return Err(told(Wrong(
                    "another one has this name".into(),
                    "give it its own".into(),
                )));
            }
            if !volumes.insert(spec.volume.clone()) {
                let what = format!("another one records into volume {}", spec.volume);
                return Err(told(Wrong(what, "give each a volume of its own".into())));
            }
            cameras.push(spec);
        }
        let buffers = cameras.iter().map(|spec| spec.buffer as u64).sum();
        let most = if cameras.len() > CAMERAS_MAX {
            Some(format!("{} cameras, and {CAMERAS_MAX} are the most", cameras.len()))
        } else if Bytes::new(buffers) > BUFFERS_MAX {
            Some(format!(
                "buffers of {} together, and {BUFFERS_MAX} are the most",
                Bytes::new(buffers)
            ))
        } else {
            None
        };
        if let Some(what) = most {
            return Err(Failure::usage(format!("{at}: {what}"), "make two files of it"));
        }
        share(&mut cameras, BUFFERS_MAX.get() - buffers);
        Ok(Self { cameras, status: parsed.status })
    }

    /// Memory of all buffers, at the most.
    pub fn buffers(&self) -> Bytes {
        Bytes::new(self.cameras.iter().map(|spec| spec.buffer_max as u64).sum())
    }
}

/// What lasts for [`BUFFER_LASTS`] at this rate.
fn buffer_for(rate: Rate) -> Bytes {
    rate.bytes_in(BUFFER_LASTS).max(Bytes::mib(4)).min(BUFFER_MAX)
}

/// Larger contracts make buffers larger by `spare` in all at the most.
fn share(cameras: &mut [Spec], spare: u64) {
    let more = |spec: &Spec| (spec.buffer_max - spec.buffer) as u64;
    let all: u64 = cameras.iter().map(more).sum();
    if all > spare {
        for spec in cameras {
            let part = u128::from(more(spec)) * u128::from(spare) / u128::from(all);
            spec.buffer_max = spec.buffer + part as usize;
        }
    }
}

/// What to write in place of what TOML did not take.
fn how_to_write(what: &str) -> &'static str {
    match what {
        _ if what.starts_with("invalid type: map, expected a sequence") => {
            "write [[camera]], with two brackets on each side"
        }
        _ if what.starts_with("invalid type: string") && what.ends_with("expected a sequence") => {
            "write the program and each of its arguments for itself: [\"program\", \"argument\"]"
        }
        _ if what.starts_with("invalid type: integer") && what.ends_with("a string") => {
            "write it in quotation marks, with its unit: \"1MB/s\", \"200GiB\", \"14d\""
        }
        _ => "correct that line; docs/cameras.md and examples/recorder.toml have every setting",
    }
}

/// Lines count from 1.
fn line_of(text: &str, offset: usize) -> usize {
    let before = &text.as_bytes()[..offset.min(text.len())];
    before.iter().filter(|&&byte| byte == b'\n').count() + 1
}

impl Entry {
    fn spec(self, all: &Settings) -> Result<Spec, Wrong> {
        let volume = self.volume.clone().unwrap_or_else(|| self.name.clone());
        for (what, name) in [("name", &self.name), ("volume", &volume)] {
            if name.is_empty()
                || name.len() > client::VOLUME_NAME_MAX
                || name.contains(char::is_control)
            {
                let next =
                    format!("use 1 to {} bytes and no control characters", client::VOLUME_NAME_MAX);
                return wrong(format!("{name:?} is no {what}"), next);
            }
        }
        let Some(rate) = self.rate.or(all.rate) else {
            return wrong(
                "it has no rate",
                "add rate = \"2MB/s\" to it or to [defaults]: what it gives",
            );
        };
        let (keep, is_ring) = (self.keep.or(all.keep), self.ring.or(all.ring));
        if keep.is_some() && is_ring == Some(false) {
            let next = "remove one of the two: only a ring gives up what is old";
            return wrong("it has keep, and ring = false", next);
        }
        if keep.is_some_and(|keep| keep < KEEP_MIN) {
            let next = format!(
                "use {KEEP_MIN} at least, or leave it out: a ring of a `size` keeps what it has room for"
            );
            return wrong(format!("keep = {}", keep.unwrap_or_default()), next);
        }
        let by_age = keep.map(|keep| {
            let bytes = rate.bytes_in(keep.saturating_mul(11) / 10);
            bytes.min(Bytes::OUTSIDE_MAX).round_up(RING_OF)
        });
        let stated = self.size.or(all.size);
        let Some(size) = stated.or(by_age) else {
            let next = "add size = \"200GiB\" to it or to [defaults]: the room that its volume gets; or \
                        keep = \"14d\", for as much as it gives in that time";
            return wrong("it has no size", next);
        };
        let grow_to = self.grow_to.or(all.grow_to);
        if grow_to.is_some() && (keep.is_some() || is_ring == Some(true)) {
            let next = "remove one of the two: a ring keeps the size that it was made with";
            return wrong("it is a ring, and has grow_to", next);
        }
        let rate_max = self.rate_max.or(all.rate_max);
        let rate_max =
            rate_max.unwrap_or_else(|| Rate::per_second(rate.get().saturating_mul(RATE_MAX)));
        if rate.is_zero() || rate_max < rate {
            let next = "a rate is more than nothing, and rate_max at least the rate: correct one of \
                        them, or leave rate_max out, for four times the rate";
            return wrong(format!("a rate of {rate} with a rate_max of {rate_max}"), next);
        }
        let block = self.block.or(all.block);
        if let Some(block) = block
            && !(block.get().is_power_of_two() && (Bytes::kib(4)..=Bytes::mib(16)).contains(&block))
        {
            return wrong(format!("a block of {block}"), "use a power of two from 4KiB to 16MiB");
        }
        let named = self.buffer.or(all.buffer);
        let buffer = named.unwrap_or_else(|| buffer_for(rate));
        let buffer_max = named.unwrap_or_else(|| buffer_for(rate_max));
        if !(BUFFER_MIN..=BUFFER_MAX).contains(&buffer) {
            return wrong(
                format!("a buffer of {buffer}"),
                format!("use {BUFFER_MIN} to {BUFFER_MAX}"),
            );
        }
        let between = |what: &str, time: Duration, least: u64, most: u64| {
            let (least, most) = (Duration::from_millis(least), Duration::from_secs(most));
            match (least..=most).contains(&time) {
                true => Ok(time),
                false => wrong(format!("{what} = {time}"), format!("use {least} to {most}")),
            }
        };
        let or = |own: Option<Duration>, all: Option<Duration>, by_default| {
            own.or(all).unwrap_or(Duration::from_secs(by_default))
        };
        let stall = between("stall", or(self.stall, all.stall, 15), 100, 3_600)?;
        let window = between("window", or(self.window, all.window, 10), 100, 600)?;
        let retry = between("retry", or(self.retry, all.retry, 1), 10, 3_600)?;
        let retry_max = between("retry_max", or(self.retry_max, all.retry_max, 60), 10, 86_400)?;
        let (command, by_default) = self.command(all)?;
        let packet = self.packet.or(all.packet).unwrap_or(by_default);
        if packet.is_zero() || packet > PACKET_MAX || !(PIECE as u64).is_multiple_of(packet.get()) {
            let what = format!("a packet of {packet}, of which {PIECE} B are no whole number");
            return wrong(
                what,
                "use 188B for MPEG-TS, a power of two up to 16B, or 1B for any other bytes",
            );
        }
        let time = |time: Duration| std::time::Duration::from_nanos(time.as_nanos());
        Ok(Spec {
            volume,
            size,
            is_size_by_keep: stated.is_none(),
            grow_to,
            ring: is_ring.unwrap_or(keep.is_some()),
            thin: self.thin.or(all.thin).unwrap_or(false),
            keep,
            command,
            rate,
            rate_max,
            block,
            burst: self.burst.or(all.burst),
            buffer: buffer.as_usize(),
            buffer_max: buffer_max.as_usize(),
            packet: packet.as_usize(),
            stall: time(stall),
            window,
            retry: (time(retry), time(retry_max.max(retry))),
            name: self.name,
        })
    }

    /// The command, and in which packets its bytes come unless the file says so.
    fn command(&self, all: &Settings) -> Result<(Vec<String>, Bytes), Wrong> {
        let words = self.command.as_ref().or(all.command.as_ref());
        let source = self.source.as_deref();
        if let Some(words) = words {
            if words.is_empty() || words[0].is_empty() {
                return wrong(
                    "its command is empty",
                    "write command = [\"program\", \"argument\"]",
                );
            }
            let needs_source = words.iter().any(|word| word.contains("{source}"));
            if needs_source && source.is_none() {
                return wrong("its command has {source}, and it has none", "add source = \"...\"");
            }
            if source.is_some() && !needs_source && self.command.is_some() {
                let next = "remove the source, or write {source} where the command takes it";
                return wrong("its command does not use its source", next);
            }
            let with = |word: &String| {
                word.replace("{source}", source.unwrap_or_default()).replace("{name}", &self.name)
            };
            return Ok((words.iter().map(with).collect(), Bytes::new(1)));
        }
        let Some(source) = source.filter(|source| !source.is_empty()) else {
            let next = "add source = \"rtsp://...\", or command = [\"program\", \"argument\"]";
            return wrong("it has neither a source nor a command", next);
        };
        let list = |own: &Option<Vec<String>>, all: &Option<Vec<String>>, by_default: &[&str]| {
            let given = own.clone().or_else(|| all.clone());
            given.unwrap_or_else(|| by_default.iter().map(ToString::to_string).collect())
        };
        // Over UDP, which ffmpeg tries first, a busy network loses packets.
        let rtsp = source.starts_with("rtsp://") || source.starts_with("rtsps://");
        let input: &[&str] = if rtsp { &["-rtsp_transport", "tcp"] } else { &[] };
        let words = ["ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "warning"];
        let mut words: Vec<String> = words.map(Into::into).into();
        words.extend(list(&self.input, &all.input, input));
        words.extend(["-i".into(), source.into()]);
        words.extend(list(&self.output, &all.output, &["-c", "copy"]));
        words.extend(["-f", "mpegts", "-flush_packets", "1", "-"].map(Into::into));
        Ok((words, TS_PACKET))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<Spec>, Failure> {
        File::parse(Path::new("c.toml"), text).map(|file| file.cameras)
    }

    #[test]
    fn a_camera_has_the_defaults_but_where_it_says_otherwise() {
        let text = "[defaults]\nrate = '2MB/s'\nsize = '10GiB'\nstall = '5s'\n\
                    [[camera]]\nname = 'gate'\nsource = 'rtsp://10.0.0.1/main'\n\
                    [[camera]]\nname = 'yard'\nrate = '4MB/s'\nvolume = 'outside/yard'\n\
                    command = ['cat', '/dev/{name}']\nbuffer = '8MiB'\n";
        let cameras = parse(text).unwrap();
        let (gate, yard) = (&cameras[0], &cameras[1]);
        assert_eq!((&*gate.volume, gate.rate.get(), gate.packet), ("gate", 2_000_000, 188));
        assert_eq!(gate.buffer, 40_000_000, "twenty seconds");
        assert_eq!(gate.stall, std::time::Duration::from_secs(5));
        let line = gate.command.join(" ");
        assert!(line.starts_with("ffmpeg -nostdin"), "{line}");
        assert!(line.contains("-rtsp_transport tcp -i rtsp://10.0.0.1/main -c copy -f mpegts"));
        assert_eq!((&*yard.volume, yard.rate_max.get()), ("outside/yard", 16_000_000));
        assert_eq!((yard.command.join(" "), yard.packet), ("cat /dev/yard".into(), 1));
        assert_eq!(yard.buffer, 8 << 20);
        // A larger contract has a larger buffer, unless the file says how large it is.
        let at =
            |spec: &Spec, megabytes: u64| spec.buffer_for(Rate::per_second(megabytes * 1_000_000));
        assert_eq!([1, 2, 5, 8, 9].map(|rate| at(gate, rate) / 1_000_000), [40, 40, 100, 160, 160]);
        assert_eq!((at(yard, 4), at(yard, 16)), (8 << 20, 8 << 20));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_with_what_to_do() {
        let camera = "[[camera]]\nname = 'a'\nsource = 'x'\nrate = '1MB/s'\nsize = '1GiB'\n";
        for (text, said, next) in [
            ("", "names no camera", "[[camera]]"),
            ("[[camera]]\nname = 'a'\nrate = 2\n", "line 3:", "in quotation marks"),
            ("[camera]\nname = 'a'\n", "line 1:", "[[camera]], with two brackets"),
            (&format!("{camera}command = 'cat x'\n"), "line 6:", "[\"program\", \"argument\"]"),
            (&format!("{camera}keep = '0s'\n"), "keep = 0", "use 10 s at least"),
            ("[[camera]]\nname = 'a'\nrate = 'quick'\n", "line 3:", "correct that line"),
            ("[[camera]]\nname = 'a'\nrats = '1MB/s'\n", "line 3: unknown field `rats`", "correct"),
            ("\n[[camera]]\nsource = 'x'\n", "line 2: missing field `name`", "correct"),
            ("\n\n[[camera]]\nname = 'a'\n", "line 3: camera \"a\": it has no rate", "rate = "),
            ("[[camera]]\nname = 'a'\nrate = '1MB/s'\n", "it has no size", "size = "),
            (&format!("{camera}keep = '2d'\nring = false\n"), "keep, and ring = false", "one of"),
            (&format!("{camera}ring = true\ngrow_to = '9GiB'\n"), "has grow_to", "one of"),
            (&format!("{camera}keep = '2 weeks'\n"), "line 6:", "correct that line"),
            (&camera.replace("source", "volume"), "neither a source nor a command", "source = "),
            (&format!("{camera}\n{camera}"), "line 7: camera \"a\": another one has", "its own"),
            (&format!("{camera}command = ['x']\n"), "does not use its source", "{source}"),
            (&format!("{camera}command = []\n"), "command is empty", "program"),
            (&format!("{camera}block = '3KiB'\n"), "a block of 3 KiB", "a power of two"),
            (&format!("{camera}buffer = '1KiB'\n"), "a buffer of 1 KiB", "use 1 MiB"),
            (&format!("{camera}buffer = '2GiB'\n"), "a buffer of 2 GiB", "1 GiB"),
            (&format!("{camera}packet = '100B'\n"), "a packet of 100 B", "188B"),
            (&format!("{camera}stall = '1ms'\n"), "stall = 1 ms", "use "),
            (&format!("{camera}rate_max = '1kB/s'\n"), "rate_max of 1 kB/s", "at least"),
            (&camera.replace("'a'", "''"), "\"\" is no name", "1 to 255"),
        ] {
            let failure = parse(text).unwrap_err();
            assert!(failure.what.contains(said), "{text}: {}", failure.what);
            assert!(failure.next_step.contains(next), "{text}: {}", failure.next_step);
            assert_eq!(failure.exit_code, crate::failure::USAGE);
        }
    }

    /// Room for what the rate comes to in that time, and a tenth more, since parts of a ring go as
    /// a whole.
    #[test]
    fn a_camera_that_keeps_for_a_time_has_a_ring_of_the_size_that_this_takes() {
        let text = "[defaults]\nrate = '1MB/s'\nkeep = '2d'\n[[camera]]\nname = 'a'\nsource = 'x'\n\
                    [[camera]]\nname = 'b'\nsource = 'x'\nsize = '1GiB'\nring = true\n";
        let cameras = parse(text).unwrap();
        let (a, b) = (&cameras[0], &cameras[1]);
        assert_eq!((a.ring, a.keep), (true, Some(Duration::from_secs(172_800))));
        let size = Bytes::new(190_080_000_000);
        assert!(a.size >= size && a.size - size < RING_OF, "{}", a.size);
        // A minute is less than its contract needs. A size that was named stays, and is refused.
        let (large, least) = (Bytes::new(300_000_000_000), Bytes::mib(48));
        assert_eq!(
            (a.ring_size(least), a.ring_size(large)),
            (a.size, (large * 2).round_up(RING_OF))
        );
        assert_eq!(b.ring_size(Bytes::mib(2_048)), Bytes::GIB);
        assert_eq!((b.ring, b.size), (true, Bytes::GIB));
        let plain = text.replace("keep = '2d'", "size = '1GiB'").replace("ring = true", "");
        assert!(parse(&plain).unwrap().iter().all(|spec| !spec.ring && spec.keep.is_none()));
    }

    #[test]
    fn all_together_stay_within_bounds() {
        let cameras = |n: usize, buffer: &str| {
            let one = |at| {
                format!(
                    "[[camera]]\nname = '{at}'\ncommand = ['x']\nrate = '1MB/s'\nsize = '1GiB'\n\
                     buffer = '{buffer}'\n"
                )
            };
            (0..n).map(one).collect::<String>()
        };
        assert_eq!(parse(&cameras(CAMERAS_MAX, "1MiB")).unwrap().len(), CAMERAS_MAX);
        assert!(parse(&cameras(CAMERAS_MAX + 1, "1MiB")).unwrap_err().what.contains("256"));
        assert!(parse(&cameras(17, "1GiB")).unwrap_err().what.contains("16 GiB"));
        // Also where all come to have the largest contract that they may ask for.
        let by_rate =
            cameras(CAMERAS_MAX, "1MiB").replace("buffer = '1MiB'", "rate_max = '40MB/s'");
        let file = File::parse(Path::new("c.toml"), &by_rate).unwrap();
        let buffers = file.buffers();
        assert!(buffers <= BUFFERS_MAX && buffers > Bytes::mib(16_383), "{buffers}");
        assert!(file.cameras.iter().all(|spec| spec.buffer == 20_000_000));
    }
}
