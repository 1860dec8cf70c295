//! Random histories of readers close behind one another on a volume that others write to, jump
//! about in, make longer, and whose memory others take: what comes from memory is what the disk
//! has at that moment, each 4 KiB of it is what somebody wrote to that place, and none is older
//! than what was acknowledged before the reader opened its stream.
//!
//! `SLACKLINE_HISTORIES` says how many.

#![allow(clippy::print_stdout)] // what was measured

use crate::common::*;
use node::{Error, Mode, Op, Policy, Region, Reply, Span, StreamId, WriteRange};
use sim::{Context, Fault, Program, Random, Timing, World};
use std::cell::RefCell;
use std::rc::Rc;
use units::{Bytes, Duration};

const PAGE: Bytes = Bytes::kib(4);
const SIZE: Bytes = Bytes::mib(3);
const LARGER: Bytes = Bytes::mib(4);

/// What all of them know of the volume.
#[derive(Default)]
struct Truth {
    version: u64,
    /// Of each page, the newest version whose write was answered.
    answered: Vec<u64>,
    /// Devices fail.
    fails: bool,
    /// What was found wrong.
    wrong: Vec<String>,
    pages_read: u64,
    changed: u64,
}

type Shared = Rc<RefCell<Truth>>;

fn words(page: u64, version: u64) -> impl Iterator<Item = u64> {
    (0..512).map(move |at| match at {
        0 => page,
        1 => version,
        at => (page << 40 ^ version << 8 ^ at).wrapping_mul(0x9e37_79b9_7f4a_7c15),
    })
}

fn fill_page(bytes: &mut [u8], page: u64, version: u64) {
    for (into, word) in bytes.chunks_exact_mut(8).zip(words(page, version)) {
        into.copy_from_slice(&word.to_le_bytes());
    }
}

/// The version of a page; none where it is no page of this place.
fn version_of(bytes: &[u8], page: u64) -> Option<u64> {
    if bytes.iter().all(|&byte| byte == 0) {
        return Some(0);
    }
    let word = |at: usize| u64::from_le_bytes(bytes[at * 8..][..8].try_into().expect("8 bytes"));
    let is_it = word(0) == page
        && bytes
            .chunks_exact(8)
            .zip(words(page, word(1)))
            .all(|(is, shall)| *is == shall.to_le_bytes());
    is_it.then(|| word(1))
}

/// Who acts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Reader {
        shared: bool,
    },
    /// Writes without a stream.
    BestEffort,
    /// Writes, or reads and writes, with a stream; closes it again and again.
    Writer(Mode, bool),
    /// Takes memory and gives it back.
    Hoarder,
    /// Makes the volume longer, once.
    Grower,
}

struct Actor {
    role: Role,
    number: u32,
    block: Bytes,
    truth: Shared,
    random: Random,
    stream: Option<StreamId>,
    region: u32,
    at: Bytes,
    /// What was answered when the reader opened its stream.
    since: Vec<u64>,
    held: Vec<Span>,
    /// Pages on their way to the disk, with their versions.
    writing: Vec<(u64, u64)>,
    closing: bool,
}

const OPEN: u64 = 1;
const DATA: u64 = 2;
const GIVE: u64 = 3;
const SEEK: u64 = 4;
const CLOSE: u64 = 5;
const ROOM: u64 = 6;
const WRITE: u64 = 7;
const OTHER: u64 = 8;

impl Actor {
    fn rest(&mut self, context: &mut Context<'_>) {
        let millis = match self.random.below(4) {
            0 => 0,
            1 => self.random.below(20),
            _ => self.random.below(300),
        };
        context.alarm_at(context.now + Duration::from_millis(millis));
    }

    fn open(&mut self, context: &mut Context<'_>) {
        self.closing = false;
        let (mode, shared) = match self.role {
            Role::Reader { shared } => (Mode::Read, shared),
            Role::Writer(mode, shared) => (mode, shared),
            _ => unreachable!("it has no stream"),
        };
        self.at = match mode {
            Mode::Read => self.block * self.random.below(4),
            _ => self.block * self.random.below(SIZE / self.block),
        };
        self.since = self.truth.borrow().answered.clone();
        let (volume, contract, start) =
            ("v".into(), contract(self.block.get() * 4, self.block, self.block), self.at);
        let op = match shared {
            true => {
                // A number may belong to one that is being closed.
                self.region += 8;
                let region = Region(self.number + self.region % 64);
                Op::WindowOpen { volume, mode, contract, start, region }
            }
            false => Op::StreamOpen { volume, mode, contract, start },
        };
        context.ask(OPEN, op);
    }

    fn is_shared(&self) -> bool {
        matches!(self.role, Role::Reader { shared: true } | Role::Writer(_, true))
    }

    fn looked(&mut self, context: &mut Context<'_>, span: &Span, offset: Bytes) {
        let bytes = context.arena.bytes(span);
        let mut truth = self.truth.borrow_mut();
        for (number, bytes) in bytes.chunks_exact(4096).enumerate() {
            let page = offset / PAGE + number as u64;
            let oldest = self.since.get(page as usize).copied().unwrap_or(0);
            truth.pages_read += 1;
            match version_of(bytes, page) {
                Some(version) if version >= oldest => {}
                _ if truth.fails => {}
                found => truth
                    .wrong
                    .push(format!("page {page} is {found:?}, and {oldest} was answered before")),
            }
        }
    }

    fn fill(&mut self, context: &mut Context<'_>, span: &Span, offset: Bytes, all: bool) {
        for number in 0..span.len / PAGE {
            if !all && self.random.chance(60) {
                continue;
            }
            let page = offset / PAGE + number;
            let mut truth = self.truth.borrow_mut();
            truth.version += 1;
            self.writing.push((page, truth.version));
            let span = Span { offset: span.offset + PAGE * number, len: PAGE };
            fill_page(context.arena.bytes(&span), page, truth.version);
        }
    }

    fn written(&mut self) {
        let mut truth = self.truth.borrow_mut();
        for (page, version) in self.writing.drain(..) {
            let known = &mut truth.answered[page as usize];
            *known = version.max(*known);
            truth.changed += 1;
        }
    }

    fn step(&mut self, context: &mut Context<'_>) {
        let stream = self.stream;
        match (self.role, stream) {
            (Role::Reader { .. } | Role::Writer(..), None) => self.open(context),
            (Role::Reader { .. }, Some(stream)) => match self.random.below(24) {
                0 => {
                    self.at = PAGE * self.random.below(SIZE / PAGE);
                    // What both windows have stays, and may be older than the jump.
                    context.ask(SEEK, Op::StreamSeek { stream, to: self.at });
                }
                1 => self.close(context, stream),
                _ if self.is_shared() => context.ask(DATA, Op::WindowNext { stream }),
                _ => context.ask(DATA, Op::StreamRead { stream, len_max: self.block }),
            },
            (Role::Writer(..), Some(stream)) => match self.random.below(12) {
                0 => self.close(context, stream),
                1 => context.ask(OTHER, Op::StreamSync { stream }),
                _ if self.is_shared() => context.ask(DATA, Op::WindowNext { stream }),
                _ => context.ask(DATA, Op::StreamRoom { stream, len_max: self.block }),
            },
            (Role::BestEffort | Role::Hoarder, _) => {
                let most = if self.role == Role::Hoarder { 256 } else { 24 };
                let len = PAGE * self.random.between(1, most);
                match self.role == Role::Hoarder && self.held.len() > 12 {
                    true => {
                        let at = self.random.below(self.held.len() as u64) as usize;
                        let span = self.held.swap_remove(at);
                        context.ask(OTHER, Op::Release { span });
                    }
                    false => context.ask(ROOM, Op::Room { len, target: None }),
                }
            }
            (Role::Grower, _) => {
                let (name, size) = ("v".into(), LARGER);
                context.ask(OTHER, Op::VolumeResize { name, size, may_cut: false });
            }
        }
    }

    fn close(&mut self, context: &mut Context<'_>, stream: StreamId) {
        self.closing = true;
        context.ask(CLOSE, Op::StreamClose { stream });
    }
}

impl Program for Actor {
    fn start(&mut self, context: &mut Context<'_>) {
        self.rest(context);
    }
    fn alarm(&mut self, context: &mut Context<'_>) {
        self.step(context);
    }
    fn answer(&mut self, context: &mut Context<'_>, tag: u64, result: Result<Reply, Error>) {
        let stream = self.stream;
        match (tag, result) {
            (OPEN, Ok(Reply::Stream { stream, .. })) => self.stream = Some(stream),
            (DATA, Ok(Reply::Data { bytes: span, offset })) => {
                self.at = offset; // a jump may have been refused
                let upto = span.len.round_down(PAGE);
                if offset.is_multiple_of(PAGE) {
                    self.looked(context, &Span { len: upto, ..span }, offset);
                }
                self.at += span.len;
                let (stream, len) = (stream.expect("open"), span.len);
                return match self.is_shared() {
                    true => context.ask(GIVE, Op::WindowMoved { stream, len }),
                    false => context.ask(GIVE, Op::StreamAdvance { stream, len }),
                };
            }
            (DATA, Ok(Reply::Gap { len, .. })) => self.at += len,
            (DATA, Ok(Reply::Room { room: span })) => {
                let all = self.role != Role::Writer(Mode::Update, true);
                self.fill(context, &span, self.at, all);
                self.at += span.len;
                let (stream, len) = (stream.expect("open"), span.len);
                return match self.is_shared() {
                    true => context.ask(GIVE, Op::WindowMoved { stream, len }),
                    false => context.ask(GIVE, Op::StreamWrite { stream, len }),
                };
            }
            (DATA, Ok(Reply::End) | Err(Error::VolumeFull { .. })) => {
                if let Some(stream) = stream.filter(|_| !self.closing) {
                    return self.close(context, stream);
                }
            }
            (CLOSE, result) => {
                if result.is_ok() {
                    self.written();
                }
                (self.stream, self.closing) = (None, false);
            }
            (ROOM, Ok(Reply::Room { room: span })) if self.role == Role::Hoarder => {
                self.held.push(span)
            }
            (ROOM, Ok(Reply::Room { room: span })) => {
                let pages = span.len / PAGE;
                let page = match self.random.chance(50) {
                    true => self.random.below(64),
                    false => self.random.below(SIZE / PAGE - pages),
                };
                self.fill(context, &span, PAGE * page, true);
                let range = WriteRange::new(PAGE * page, span.len);
                let op = Op::Write { volume: "v".into(), range, span, priority: None };
                return context.ask(WRITE, op);
            }
            (WRITE, Ok(_)) => self.written(),
            (WRITE, Err(_)) => self.writing.clear(),
            (OTHER, _) if self.role == Role::Grower => return,
            // Refused, busy, or closed meanwhile: something else next.
            (_, _) => {}
        }
        if !self.closing {
            self.rest(context);
        }
    }
}

/// One history. Gives what was had from memory, and the truth at its end.
fn history(seed: u64) -> (Bytes, Shared) {
    let mut random = Random::new(seed);
    let policies = [Policy::SLACK, Policy::SLACK, Policy::DELTA_L, Policy::EDF];
    let mut config = config(policies[random.below(4) as usize]);
    // In little memory what is kept is often taken away.
    config.memory = Bytes::mib(16 + 8 * random.below(2));
    let disks = 1 + random.below(2) as usize;
    let mut world: World = world(config, disks, Bytes::mib(64), |_, profile, index| {
        Timing::WithinBound(Box::new(profile.clone()), Random::new(seed + index as u64))
    });
    world.node.share_reads();
    if random.chance(30) {
        world.told_after = Some(Duration::from_micros(random.below(3_000)));
    }
    create(&mut world, "v", SIZE);
    let truth: Shared = Rc::default();
    truth.borrow_mut().answered = vec![0; (LARGER / PAGE) as usize];
    if random.chance(20) {
        // What a device that fails leaves of a write may be anything.
        truth.borrow_mut().fails = true;
        let errors = Fault::Errors { ppm: random.below(10_000), seed };
        let from = Bytes::mib(1 + random.below(8));
        let bad = Fault::ReadError { from, to: from + PAGE * random.between(1, 300) };
        world.disks[0].faults.extend([errors, bad]);
    }
    // Some of it is there at first; the rest was never written.
    let there = PAGE * random.between(1, SIZE / PAGE);
    let op = Op::VolumeExtend { name: "v".into(), length: there };
    let extended = world.call(op);
    assert!(extended == Ok(Reply::Done) || truth.borrow().fails, "{extended:?}");
    let block = Bytes::kib(32) * (1 << random.below(4));
    let readers = random.between(2, 4);
    let mut roles: Vec<Role> =
        (0..readers).map(|_| Role::Reader { shared: random.chance(50) }).collect();
    roles.push(match random.below(4) {
        0 => Role::Writer(Mode::Write, false),
        1 => Role::Writer(Mode::Write, true),
        2 => Role::Writer(Mode::Update, true),
        _ => Role::BestEffort,
    });
    if random.chance(60) {
        roles.push(Role::BestEffort);
    }
    if random.chance(60) {
        roles.push(Role::Hoarder);
    }
    if random.chance(30) {
        roles.push(Role::Grower);
    }
    for (number, role) in roles.into_iter().enumerate() {
        // Some read in other blocks than the rest.
        let block = if random.chance(25) { block * 2 } else { block };
        world.add(Actor {
            role,
            number: number as u32,
            block,
            truth: truth.clone(),
            random: Random::new(seed << 8 | number as u64),
            stream: None,
            region: 0,
            at: Bytes::ZERO,
            since: Vec::new(),
            held: Vec::new(),
            writing: Vec::new(),
            closing: false,
        });
    }
    world.run_for(Duration::from_secs(8));
    (world.node.status(world.now()).memory.from_memory, truth)
}

#[test]
fn what_comes_from_memory_is_what_the_disk_has() {
    let histories = std::env::var("SLACKLINE_HISTORIES").ok().and_then(|it| it.parse().ok());
    let (mut had, mut with, mut changed, mut read) = (Bytes::ZERO, 0, 0, 0);
    let histories: u64 = histories.unwrap_or(100);
    for seed in 0..histories {
        let (from_memory, truth) = history(seed);
        let truth = truth.borrow();
        assert!(
            truth.wrong.is_empty(),
            "seed {seed}: {:?}",
            &truth.wrong[..truth.wrong.len().min(3)]
        );
        had += from_memory;
        with += u64::from(!from_memory.is_zero());
        changed += truth.changed;
        read += truth.pages_read;
    }
    println!(
        "{histories} histories, {with} with {had} from memory; {read} pages read, {changed} changed"
    );
    assert!(with * 2 > histories, "{with} of {histories} have anything from memory");
}
