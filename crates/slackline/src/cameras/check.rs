//! `slackline cameras --check`: whether all of them fit, before one is started.

use super::camera::Room;
use super::file::{File, Spec};
use crate::contract::{planned_run, thin_placement};
use crate::failure::{Failure, REFUSED};
use crate::output::{Output, counted};
use client::control::{Mode, Placement, Plan, PlanRequest, PlanStream, Volume};
use client::{Client, Code, Problem};
use report::Table;
use serde::Serialize;
use std::collections::BTreeSet;
use store::RING_GRAIN;
use units::{Bytes, Rate};

/// What was found.
#[derive(Serialize)]
struct Found {
    /// All are admitted, and have room.
    fits: bool,
    cameras: Vec<Checked>,
    /// Room that volumes would take which are to be made, and what the pool has.
    needed_bytes: u64,
    free_bytes: u64,
    /// The disk with the least room, where its share of them is more.
    full: Option<Full>,
    /// Memory of all buffers in the supervisor at the most, and of all windows in the daemon.
    buffer_bytes: u64,
    window_bytes: u64,
    plan: Plan,
}

/// A volume lies on all disks, with the same share on each: it is full where one of them is.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Full {
    disk: u16,
    free_bytes: u64,
    share_bytes: u64,
    /// Disks that together have room for all that has to be made; none where there are none.
    instead: Vec<u16>,
}

impl Full {
    /// Of disks with so much free, for volumes of so much.
    fn of(free: &[(u16, Bytes)], needed: Bytes) -> Option<Self> {
        let share = |disks: usize| (needed / disks as u64).round_up(Bytes::MIB);
        let mut free = free.to_vec();
        free.sort_by_key(|&(disk, free)| (std::cmp::Reverse(free), disk));
        let &(disk, least) = free.last()?;
        if share(free.len()) <= least {
            return None;
        }
        let holds = |count: &usize| share(*count) <= free[count - 1].1;
        let count = (1..free.len()).rev().find(holds).unwrap_or(0);
        let mut instead: Vec<u16> = free[..count].iter().map(|&(disk, _)| disk).collect();
        instead.sort_unstable();
        let share_bytes = share(free.len()).get();
        Some(Self { disk, free_bytes: least.get(), share_bytes, instead })
    }
}

#[derive(Serialize)]
struct Checked {
    name: String,
    volume: String,
    /// There is one already, which has so much that was recorded; else it would be made.
    recorded_bytes: Option<u64>,
    size_bytes: u64,
    /// Its `keep` comes to less, and its contract needs so much.
    is_enlarged: bool,
    rate_bytes_per_second: u64,
    block_bytes: u64,
    /// None of a ring.
    seconds_left: Option<u64>,
    /// Of a ring: how old its oldest byte becomes.
    seconds_kept: Option<u64>,
    /// Its `keep`, where its size has no room for that.
    keep_seconds_wanted: Option<u64>,
    /// Of a ring: the smallest that the daemon takes for the contract.
    ring_least_bytes: Option<u64>,
    /// A stream writes it now, and is in the plan already.
    open: bool,
    /// The program of its command was found.
    program: bool,
    /// What that program is called.
    #[serde(skip)]
    called: String,
}

impl Checked {
    /// A ring to which the daemon would take no such stream.
    fn is_too_small(&self) -> bool {
        self.ring_least_bytes.is_some_and(|least| self.size_bytes < least)
    }
}

/// Asks the daemon, and starts nothing.
pub fn run(file: &File, client: &Client, output: Output) -> Result<(), Failure> {
    let status = client.status()?;
    let written = status.streams.iter().filter(|stream| stream.mode != Mode::Read);
    let written: BTreeSet<&str> = written.map(|stream| &*stream.volume).collect();
    let (mut cameras, mut streams) = (Vec::new(), Vec::new());
    // Where the daemon chooses the block, of a volume that is not there yet: which stream of the
    // plan, and which camera.
    let mut unknown = Vec::new();
    for spec in &file.cameras {
        let volume = match client.volume(&spec.volume) {
            Ok(volume) => Some(volume),
            Err(error) if error.code() == Some(Code::NoSuchVolume) => None,
            Err(error) => return Err(error.into()),
        };
        let chosen = match (&volume, spec.block) {
            (_, Some(block)) => block,
            (Some(_), None) => client.block_for(&spec.volume, Mode::Write, spec.rate)?,
            (None, None) => {
                unknown.push((streams.len(), cameras.len()));
                client::Contract::at(spec.rate).terms().block_bytes
            }
        };
        let contract = spec.contract(spec.rate, chosen);
        let placement = match &volume {
            Some(volume) => volume.placement.clone(),
            None if spec.thin => thin_placement(true),
            None => Placement { run_bytes: planned_run(None, chosen), ..Placement::default() },
        };
        let open = written.contains(&*spec.volume);
        if !open {
            streams.push(PlanStream {
                name: spec.name.clone(),
                count: 1,
                mode: Some(Mode::Write),
                contract: Some(contract),
                service: None,
                placement,
            });
        }
        let length = volume.as_ref().map_or(Bytes::ZERO, |volume| volume.length_bytes);
        let held = volume.as_ref().map(Volume::held);
        let room = match &volume {
            Some(volume) => Room::of(spec, volume),
            None => made(spec, spec.size),
        };
        let Room { size, is_ring, .. } = room;
        let lasts = Room { keep: spec.keep.filter(|_| is_ring), ..room }.lasts(length, spec.rate);
        cameras.push(Checked {
            name: spec.name.clone(),
            volume: spec.volume.clone(),
            recorded_bytes: held.map(Bytes::get),
            size_bytes: size.get(),
            is_enlarged: false,
            rate_bytes_per_second: spec.rate.get(),
            block_bytes: contract.block_bytes.get(),
            seconds_left: (!is_ring).then_some(lasts),
            seconds_kept: is_ring.then_some(lasts),
            keep_seconds_wanted: None,
            ring_least_bytes: None,
            open,
            program: is_there(spec),
            called: spec.command[0].clone(),
        });
    }
    choose_blocks(client, &mut streams, &mut cameras, &unknown)?;
    let plan = client.plan(&PlanRequest { streams, alternatives: false })?;
    let is_ring = |camera: &Checked| camera.seconds_kept.is_some();
    let mut needed = Bytes::ZERO;
    for (camera, spec) in cameras.iter_mut().zip(&file.cameras) {
        let planned = plan.streams.iter().find(|stream| stream.name == camera.name);
        let planned = planned.filter(|_| is_ring(camera));
        camera.ring_least_bytes = planned.map(|stream| stream.ring_least_bytes.get());
        if camera.recorded_bytes.is_none() {
            let size = spec.ring_size(Bytes::new(camera.ring_least_bytes.unwrap_or_default()));
            camera.is_enlarged = size > spec.size;
            camera.size_bytes = made(spec, size).size.get();
            needed = needed.saturating_add(rounded(spec, size));
        }
        // Of one that is recorded to the daemon has said it.
        if let Some(planned) = planned {
            let (size, keep) = (Bytes::new(camera.size_bytes), spec.keep);
            let room = Room { size, is_ring: true, keep, ahead: planned.ring_ahead_bytes };
            camera.seconds_kept = Some(room.lasts(Bytes::ZERO, spec.rate));
        }
    }
    for (camera, spec) in cameras.iter_mut().zip(&file.cameras) {
        let wanted = spec.keep.map(|keep| keep.as_secs());
        camera.keep_seconds_wanted =
            wanted.filter(|wanted| camera.seconds_kept.is_some_and(|kept| kept < *wanted));
    }
    let free =
        status.disks.iter().fold(Bytes::ZERO, |sum, disk| sum.saturating_add(disk.free_bytes));
    let each: Vec<_> = status.disks.iter().map(|disk| (disk.disk, disk.free_bytes)).collect();
    let full = Full::of(&each, needed);
    let found = Found {
        fits: plan.fits && full.is_none() && cameras.iter().all(|camera| !camera.is_too_small()),
        cameras,
        needed_bytes: needed.get(),
        free_bytes: free.get(),
        full,
        buffer_bytes: file.buffers().get(),
        window_bytes: plan.window_bytes.get(),
        plan,
    };
    output.result(&found, text)?;
    verdict(found)
}

/// The blocks that the daemon will choose for these, in place of those that suit the rate alone.
fn choose_blocks(
    client: &Client,
    streams: &mut [PlanStream],
    cameras: &mut [Checked],
    unknown: &[(usize, usize)],
) -> Result<(), Failure> {
    if unknown.is_empty() {
        return Ok(());
    }
    let plan = client.plan(&PlanRequest { streams: streams.to_vec(), alternatives: true })?;
    let now = plan.modes.into_iter().find(|mode| mode.now);
    let chosen = now.map(|mode| mode.block_bytes).unwrap_or_default();
    for &(stream, camera) in unknown {
        let block = chosen.get(stream).copied().flatten().map(Bytes::new);
        if let (Some(block), Some(contract)) = (block, &mut streams[stream].contract) {
            // A burst that the file names stays.
            if contract.burst_bytes == contract.block_bytes {
                contract.burst_bytes = block;
            }
            contract.block_bytes = block;
            let placement = &mut streams[stream].placement;
            if !placement.thin {
                placement.run_bytes = planned_run(None, block);
            }
            cameras[camera].block_bytes = block.get();
        }
    }
    Ok(())
}

/// All that is in the way, told at once: who mended the rate alone would next be refused for the
/// room.
fn verdict(found: Found) -> Result<(), Failure> {
    let (room, ring, program) = (no_room(&found), ring_too_small(&found), no_program(&found));
    let rate = found.plan.stops.map(|stop| beyond_rate(stop.name, stop.problem));
    let failures = [rate, room, ring, program].into_iter().flatten();
    failures.reduce(Failure::and).map_or(Ok(()), Err)
}

/// The first camera that the disks have no time for.
fn beyond_rate(camera: String, problem: Problem) -> Failure {
    let failure = Failure::from(problem);
    let what = format!("camera {camera}: {}", failure.what);
    let refusal = failure.problem.as_ref().and_then(|problem| problem.refusal.as_ref());
    let fits = refusal.map(|refusal| refusal.rate_max_bytes_per_second);
    let next_step = match fits.filter(|fits| !fits.is_zero()) {
        Some(fits) => format!(
            "the largest rate that fits in these blocks is {fits}: make `rate` smaller or \
             `block` larger in the file, or close a stream"
        ),
        None => failure.next_step.clone(),
    };
    Failure { what, next_step, exit_code: REFUSED, ..failure }
}

fn no_room(found: &Found) -> Option<Failure> {
    let full = found.full.as_ref()?;
    let (needed, free) = (Bytes::new(found.needed_bytes), Bytes::new(found.free_bytes));
    let mut what = format!("the volumes that have to be made take {needed}, ");
    let mut next =
        String::from("make `size` or `keep` smaller in the file, remove what nobody needs");
    if needed > free {
        what += &format!("and the pool has {free}");
        next += ", or make a larger pool";
    } else {
        let (share, free) = (Bytes::new(full.share_bytes), Bytes::new(full.free_bytes));
        what += &format!("{share} on each disk, and disk {} has {free} free", full.disk);
        let disks: Vec<String> = full.instead.iter().map(u16::to_string).collect();
        if !disks.is_empty() {
            let disks = disks.join(",");
            next += &format!(
                ", or make them before on disks that have room: `slackline volume create NAME --size \
                 SIZE --disks {disks}`, with --ring for a ring"
            );
        }
    }
    Some(Failure { exit_code: REFUSED, ..Failure::new(what, next) })
}

fn ring_too_small(found: &Found) -> Option<Failure> {
    let camera = found.cameras.iter().find(|camera| camera.is_too_small())?;
    let (size, least) = (camera.size_bytes, camera.ring_least_bytes.unwrap_or_default());
    let (size, least) = (Bytes::new(size), Bytes::new(least));
    let what = format!(
        "camera {}: for its contract a ring of {size} is too small: more than half of it would be \
         given up ahead of the camera",
        camera.name
    );
    let next = match camera.recorded_bytes {
        None => format!("make its `size` {least} at least, or its `rate` or `block` smaller"),
        Some(0) => format!(
            "nothing is recorded in it: `slackline volume delete {}`, and make its `size` {least} at \
             least; or make its `rate` or `block` smaller",
            report::quoted(&camera.volume)
        ),
        Some(_) => format!(
            "record to a new ring of {least} at least (another `volume`), or make its `rate` or \
             `block` smaller"
        ),
    };
    Some(Failure { exit_code: REFUSED, ..Failure::new(what, next) })
}

fn no_program(found: &Found) -> Option<Failure> {
    let camera = found.cameras.iter().find(|camera| !camera.program)?;
    let called = &camera.called;
    let what = format!("camera {}: the program {called} of its command was not found", camera.name);
    // What `source` is read by.
    let next = match &**called {
        "ffmpeg" => "install it (`apt install ffmpeg`), or correct the command",
        _ => "install it, or correct `command` in the file",
    };
    Some(Failure::new(what, next))
}

fn text(found: &Found) -> String {
    let headings = ["camera", "volume", ">recorded", ">of", ">rate", ">block", ">lasts", "now"];
    let mut table = Table::new(&headings);
    for camera in &found.cameras {
        let now = match (camera.open, camera.recorded_bytes) {
            (true, _) => "is recorded",
            (false, Some(_)) => "will go on",
            (false, None) => "will be made",
        };
        table.row(vec![
            camera.name.clone(),
            camera.volume.clone(),
            Bytes::new(camera.recorded_bytes.unwrap_or(0)).to_string(),
            Bytes::new(camera.size_bytes).to_string(),
            Rate::per_second(camera.rate_bytes_per_second).to_string(),
            Bytes::new(camera.block_bytes).to_string(),
            super::shown::left(camera.seconds_left, camera.seconds_kept),
            now.into(),
        ]);
    }
    let (needed, free) = (Bytes::new(found.needed_bytes), Bytes::new(found.free_bytes));
    let (buffers, windows) = (Bytes::new(found.buffer_bytes), Bytes::new(found.window_bytes));
    let cameras = counted(found.cameras.len() as u64, "camera");
    let verdict = if found.fits { "all fit" } else { "not all fit" };
    let enlarged = found.cameras.iter().filter(|camera| camera.is_enlarged).map(|camera| {
        let size = Bytes::new(camera.size_bytes);
        format!("{}: its ring will be made with {size}, since its contract needs more than what `rate` comes to \
                 in `keep`\n", camera.name)
    });
    let short = found.cameras.iter().filter_map(|camera| {
        let (wanted, kept) = camera.keep_seconds_wanted.zip(camera.seconds_kept)?;
        let (name, wanted, kept) = (&camera.name, super::shown::days(wanted), super::shown::days(kept));
        Some(format!(
            "{name}: its `keep` is {wanted}, and at its `rate` its `size` has room for {kept}: make the size larger, or leave it out\n"
        ))
    });
    table.text("")
        + &short.collect::<String>()
        + &enlarged.collect::<String>()
        + &format!(
            "{cameras}: {verdict}; new volumes take {needed} of {free} that are free; memory {buffers} \
             for buffers here at the most, {windows} for windows of those that are not recorded yet\n"
        )
}

/// The size that its volume gets: a ring is rounded up, on one disk to this.
fn rounded(spec: &Spec, size: Bytes) -> Bytes {
    if spec.ring { size.round_up(RING_GRAIN) } else { size }
}

/// The room of a volume that is made with this size.
fn made(spec: &Spec, size: Bytes) -> Room {
    let size = rounded(spec, size);
    let size = spec.grow_to.map_or(size, |limit| limit.max(size));
    Room { size, is_ring: spec.ring, keep: spec.keep, ahead: Bytes::ZERO }
}

/// The smallest ring that the daemon takes for a camera whose volume is to be made.
pub fn ring_least(spec: &Spec, client: &Client) -> client::Result<Bytes> {
    let stream = |block: Bytes| PlanStream {
        name: spec.name.clone(),
        count: 1,
        mode: Some(Mode::Write),
        contract: Some(spec.contract(spec.rate, block)),
        service: None,
        placement: match spec.thin {
            true => thin_placement(true),
            false => Placement { run_bytes: planned_run(None, block), ..Placement::default() },
        },
    };
    let plan = |stream: PlanStream, alternatives| {
        client.plan(&PlanRequest { streams: vec![stream], alternatives })
    };
    let by_rate = client::Contract::at(spec.rate).terms().block_bytes;
    let block = match spec.block {
        Some(block) => block,
        None => {
            let now = plan(stream(by_rate), true)?.modes.into_iter().find(|mode| mode.now);
            let chosen = now.and_then(|mode| mode.block_bytes.first().copied().flatten());
            chosen.map_or(by_rate, Bytes::new)
        }
    };
    let planned = plan(stream(block), false)?.streams;
    Ok(planned.first().map_or(Bytes::ZERO, |stream| stream.ring_least_bytes))
}

/// Whether the program of its command is where it would be looked for.
fn is_there(spec: &Spec) -> bool {
    let program = std::path::Path::new(&spec.command[0]);
    if program.components().count() > 1 {
        return program.is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}
