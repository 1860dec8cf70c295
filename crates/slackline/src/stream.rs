//! `slackline stream`: show, change and close streams.

use crate::Common;
use crate::contract;
use crate::failure::Failure;
use crate::output::Table;
use client::Client;
use client::control::{Mode, Stream, StreamClosed, Streams};
use units::{Bytes, Rate};

/// Streams.
#[derive(clap::Subcommand)]
pub enum Command {
    /// List all streams
    List,
    /// Show one stream
    Show {
        /// Its number, or its volume
        #[arg(value_name = "STREAM")]
        id: String,
    },
    /// Give an open stream another rate or burst, also another program's (of the same user)
    ///
    /// Admission decides; a refusal changes nothing. The program may go faster as soon
    /// as its window can follow, about a window's time later.
    Set {
        /// Its number, or its volume: the stream that writes that, or else the only one that reads it.
        /// A stream that is opened again has another number
        #[arg(value_name = "STREAM")]
        id: String,
        /// Bytes per second to keep from now on [default: as before]
        #[arg(long, short, value_name = "RATE", required_unless_present = "burst")]
        rate: Option<Rate>,
        /// How far the program may run past its playout point at once [default: as before]
        #[arg(long, value_name = "SIZE")]
        burst: Option<Bytes>,
    },
    /// Close a stream, also another program's (of the same user); a writer is synced first
    Close {
        /// Its number, or its volume: the stream that writes that, or else the only one that reads it
        #[arg(value_name = "STREAM")]
        id: String,
    },
}

/// Runs it.
pub fn run(command: Command, common: &Common) -> Result<(), Failure> {
    let (client, output) = (common.client()?, common.output());
    match command {
        Command::List => {
            let streams = Streams { streams: client.streams()? };
            output.result(&streams, |all| table(&all.streams))
        }
        Command::Show { id } => output.result(&client.stream(meant(&client, &id)?)?, shown),
        Command::Set { id, rate, burst } => {
            let id = meant(&client, &id)?;
            let mut contract = client.stream(id)?.contract;
            contract.rate_bytes_per_second = rate.unwrap_or(contract.rate_bytes_per_second);
            contract.burst_bytes = burst.unwrap_or(contract.burst_bytes);
            output.result(&client.stream_change(id, contract)?, |stream| {
                let words = contract::words(&stream.contract);
                format!("stream {id} has {words} now, a window of {}\n", stream.window_bytes)
            })
        }
        Command::Close { id } => {
            let id = meant(&client, &id)?;
            output.result(&client.stream_close(id)?, closed)
        }
    }
}

/// The number of the stream that is meant by `asked`.
fn meant(client: &Client, asked: &str) -> Result<u64, Failure> {
    if let Ok(id) = asked.parse() {
        return Ok(id);
    }
    let mut on_it = client.streams()?;
    on_it.retain(|stream| stream.volume == asked);
    if on_it.iter().any(|stream| stream.mode != Mode::Read) {
        on_it.retain(|stream| stream.mode != Mode::Read);
    }
    let next = "`slackline stream list` shows the streams with their numbers";
    match &on_it[..] {
        [one] => Ok(one.id),
        [] => Err(Failure::new(format!("no stream is open on a volume \"{asked}\""), next)),
        several => {
            let numbers: Vec<_> = several.iter().map(|stream| stream.id.to_string()).collect();
            let what = format!("volume {asked} has several streams: {}", numbers.join(", "));
            Err(Failure::new(what, "name one of these numbers"))
        }
    }
}

/// Which way, in a word.
pub fn direction(mode: Mode) -> &'static str {
    match mode {
        Mode::Read => "read",
        Mode::Write => "write",
        Mode::Update => "update",
    }
}

/// The streams as a table.
pub fn table(streams: &[Stream]) -> String {
    if streams.is_empty() {
        return "no streams are open\n".into();
    }
    let headings = [
        "stream",
        "volume",
        "user",
        "mode",
        ">rate",
        ">block",
        ">at",
        ">moved",
        ">late",
        ">underruns",
        ">slowed",
    ];
    let mut table = Table::new(&headings);
    for stream in streams {
        table.row(vec![
            stream.id.to_string(),
            stream.volume.clone(),
            stream.user.clone(),
            direction(stream.mode).into(),
            format!("{}{}", stream.contract.rate_bytes_per_second, no_promise(stream.promised)),
            stream.contract.block_bytes.to_string(),
            stream.position_bytes.to_string(),
            stream.moved_bytes.to_string(),
            stream.late_requests.to_string(),
            stream.underruns.to_string(),
            stream.throttled.to_string(),
        ]);
    }
    table.text("")
}

/// What stands behind a contract that is none.
pub fn no_promise(promised: bool) -> &'static str {
    if promised { "" } else { ", no promise" }
}

fn shown(stream: &Stream) -> String {
    let Stream { id, volume, requests, underruns, throttled, .. } = stream;
    let durable = match stream.mode {
        Mode::Read => String::new(),
        Mode::Write | Mode::Update => {
            format!("durable    up to offset {}\n", stream.durable_bytes.get())
        }
    };
    let carried = if stream.attached { "" } else { ", without its program so far" };
    let excess = match stream.excess_bytes {
        Bytes::ZERO => String::new(),
        excess => format!(", {excess} beyond its rate"),
    };
    let late = match stream.late_requests {
        0 => "none late".into(),
        late => format!("{late} late, by {} at the most", stream.late_max_ns),
    };
    let late = match stream.miss_per_billion {
        Some(parts) if parts > 0 => {
            format!("{late} (once in {} may be)", 1_000_000_000 / parts)
        }
        _ => late,
    };
    let from_memory = match stream.from_memory_bytes {
        Bytes::ZERO => String::new(),
        bytes => format!("; {bytes} from memory, not from a disk"),
    };
    let overtaken = match stream.overtaken_bytes {
        Bytes::ZERO => String::new(),
        gone => format!("; {gone} of it the ring had given up before"),
    };
    let burst = stream.contract.burst_bytes;
    format!(
        "stream     {id}, {} {volume}, open for {}{carried}\n\
         user       {}\n\
         contract   {}, bursts of {burst}{}\n\
         window     {} of memory\n\
         position   offset {}, {} moved\n{durable}\
         requests   {requests}, {late}; longest {}{from_memory}\n\
         program    {underruns} times not ready for it, {throttled} times slowed to its rate{excess}\n\
         gaps       {}{overtaken}\n",
        direction(stream.mode),
        stream.open_ns,
        stream.user,
        contract::words(&stream.contract),
        no_promise(stream.promised),
        stream.window_bytes,
        stream.position_bytes.get(),
        stream.moved_bytes,
        stream.latency_max_ns,
        stream.gap_bytes,
    )
}

fn closed(closed: &StreamClosed) -> String {
    match closed.durable_bytes {
        Some(upto) => {
            format!("closed stream {}; durable up to offset {}\n", closed.id, upto.get())
        }
        None => format!("closed stream {}\n", closed.id),
    }
}
