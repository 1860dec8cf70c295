//! `slackline volume copy`: a part of a recording into a volume of its own, which stays.
//!
//! The copy has the name that it is to have only when it is whole and durable, and is known to have
//! been recorded when what it copies was.

use crate::Common;
use crate::contract::PlacementArgs;
use crate::failure::Failure;
use crate::interrupts::interruption;
use crate::moment::{self, Between, held_from};
use crate::progress::Progress;
use crate::unreadable;
use client::control::{Volume, VolumeCreate};
use client::{Client, Code, Durable, Replace};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use units::{Bytes, Duration};

/// Copy a part of a recording into a new volume, where it stays
///
/// What was recorded between two times, or all that the volume holds. A ring gives up its oldest
/// bytes; a copy of them stays until it is deleted. It is copied in what contracts leave, and the
/// times when it was recorded are copied with it. The new volume is there when all of it is; where
/// that fails, nothing is. What a disk cannot read are zeros in the copy: that is told, and ends it with 1.
#[derive(clap::Args)]
pub struct Args {
    /// The volume
    volume: String,
    /// The name of the copy; no volume has it yet
    #[arg(value_name = "COPY")]
    copy: String,
    #[command(flatten)]
    between: Between,
    #[command(flatten)]
    placement: PlacementArgs,
}

/// What is read with one request.
const PIECE: Bytes = Bytes::MIB;
/// So many are read at a time, and then written.
const PIECES: u64 = 16;
/// So often nothing more is known of the times before that is said.
const TRIES: u32 = 3;

/// What was copied.
#[derive(Serialize)]
struct Copied {
    volume: String,
    start_bytes: u64,
    bytes: u64,
    unread_bytes: u64,
    copy: Volume,
    elapsed_ns: u64,
}

/// Runs it.
pub fn run(args: &Args, common: &Common) -> Result<(), Failure> {
    let client = common.client()?;
    let volume = client.volume(&args.volume)?;
    let (start, end) = match args.between.is_given() {
        true => args.between.places(&client, &volume, moment::BY_PLAY)?,
        false => (held_from(&volume), volume.length_bytes),
    };
    if start >= end {
        let what = format!("{} holds nothing", volume.name);
        return Err(Failure::new(what, "name a volume that was recorded to"));
    }
    if client.volume(&args.copy).is_ok() {
        let what = format!("there is a volume {}", args.copy);
        return Err(Failure::new(what, "name one that is not there yet, or delete that one"));
    }
    let (began, stop) = (Instant::now(), interruption());
    // Under another name until it is whole: whoever finds it knows what it is.
    let part = format!("{}.copying", args.copy);
    let create = VolumeCreate {
        placement: args.placement.placement(),
        ..VolumeCreate::new(part.as_str(), end - start)
    };
    client.volume_create(&create).map_err(|error| match error.code() {
        Some(Code::VolumeExists) => {
            let (what, quoted) = (format!("there is a volume {part}"), ::report::quoted(&part));
            let next = format!(
                "another copy is under way, or one was killed: `slackline volume delete {quoted}`"
            );
            Failure::new(what, next)
        }
        _ => error.into(),
    })?;
    let progress = Progress::new(Some(end - start));
    let copied = copy(&client, &volume.name, &part, (start, end), &progress, &stop);
    progress.finish();
    let copied = copied.and_then(|unread| {
        take_times(&client, &part, (&volume.name, start))?;
        client.volume_rename(&*part, &args.copy, Replace::Nothing, Durable::Now)?;
        Ok(unread)
    });
    let unread = copied.inspect_err(|_| {
        if let Err(error) = client.volume_delete(&part) {
            eprintln!("slackline: warning: what was copied is left as {part}: {error}");
        }
    })?;
    let elapsed_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let (start_bytes, bytes) = (start.get(), (end - start).get());
    let copy = client.volume(&args.copy)?;
    let unread_bytes = unread.get();
    let told = Copied { volume: volume.name, start_bytes, bytes, unread_bytes, copy, elapsed_ns };
    common.output().result(&told, Copied::line)?;
    if unread.is_zero() { Ok(()) } else { Err(unreadable::zeros(unread)) }
}

impl Copied {
    fn line(&self) -> String {
        let (bytes, took) = (Bytes::new(self.bytes), Duration::from_nanos(self.elapsed_ns));
        let recorded = self.copy.recorded.as_ref().map(moment::span);
        let recorded = recorded.map_or_else(String::new, |span| format!(" ({span})"));
        format!("copied {bytes} of {}{recorded} to {} in {took}\n", self.volume, self.copy.name)
    }
}

/// Copies the bytes, durably: many at a time are read, and then written, so that a hard disk does not
/// go from the one place to the other and back for each piece. Gives how many of them could not be read, and
/// are zeros; where that is all of them, it fails.
fn copy(
    client: &Client,
    from: &str,
    to: &str,
    (start, end): (Bytes, Bytes),
    progress: &Progress,
    stop: &AtomicBool,
) -> Result<Bytes, Failure> {
    let (mut source, mut copy) = (client.best_effort(from)?, client.best_effort(to)?);
    let check = || match stop.load(Ordering::Relaxed) {
        true => Err(Failure::new("interrupted; nothing was copied", "begin again")),
        false => Ok(()),
    };
    let (mut at, mut unread, mut error) = (start, Bytes::ZERO, None);
    while at < end {
        check()?;
        let upto = end.min(at + PIECE * PIECES);
        let mut pieces = BTreeMap::new();
        while at < upto {
            let len = PIECE.min(upto - at);
            let tag = source.begin_read(at, len.round_up(Bytes::kib(4)))?;
            pieces.insert(tag, (at - start, len));
            at += len;
        }
        let (mut writes, mut failed) = (0, Vec::new());
        while !pieces.is_empty() {
            let read = source.take()?;
            let Some((place, len)) = pieces.remove(&read.tag) else { continue };
            match read.result {
                Err(why) if unreadable::is_of_medium(&why) => {
                    failed.push((place, len));
                    error = Some(why);
                }
                read => {
                    copy.begin_write(place, &read?[..len.as_usize()])?;
                    writes += 1;
                }
            }
        }
        for (place, len) in failed {
            check()?;
            let mut piece = vec![0; len.round_up(Bytes::kib(4)).as_usize()];
            unread += unreadable::read(&mut source, start + place, &mut piece)?.min(len);
            copy.begin_write(place, &piece[..len.as_usize()])?;
            writes += 1;
        }
        for _ in 0..writes {
            copy.take()?.result?;
        }
        progress.at(at - start);
    }
    match error.filter(|_| unread == end - start) {
        Some(error) => Err(error.into()),
        None => {
            copy.sync()?;
            Ok(unread)
        }
    }
}

/// What was copied was recorded when its source was.
fn take_times(client: &Client, copy: &str, (of, start): (&str, Bytes)) -> Result<(), Failure> {
    let (mut known, mut tries) = (Bytes::ZERO, 0);
    loop {
        let told = client.volume_copied(copy, of, start)?;
        if told.known_bytes >= told.of_bytes {
            return Ok(());
        }
        tries = if told.known_bytes > known { 0 } else { tries + 1 };
        known = told.known_bytes;
        if tries == TRIES {
            eprintln!(
                "slackline: warning: the pool has room for the times of the first {known} of the copy only"
            );
            return Ok(());
        }
    }
}
