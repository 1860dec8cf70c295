//! The drive at work: queue, bytes and faults, with time as an argument.
//!
//! A request waits until the drive's own queue has room, is served when the queue
//! says, and is answered at the end that the model gives. Its bytes move shortly
//! before that end. No clock and no thread here: the server and the tests bring
//! the time along.
//!
//! Invariants: requests are given to the queue in the order in which they came;
//! bytes move in the order in which the drive ends; a flush that has ended covers
//! every write that had ended before it came.

use crate::limits::{BAD_SECTORS_MAX, PLACES_MAX};
use crate::medium::Medium;
use crate::order::{Failure, Later, Order, Place, Wrong};
use crate::status::Served;
use disk::{CommandQueue, Model};
use std::collections::{HashMap, VecDeque};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, SECTOR};

/// What is asked for, within the disk.
#[derive(Debug)]
pub(crate) enum Work {
    Read { offset: Bytes, len: Bytes },
    Write { offset: Bytes, bytes: Vec<u8>, forced: bool },
    Flush,
}

impl Work {
    /// Where, how much and which way; none for a flush.
    fn transfer(&self) -> Option<(Bytes, Bytes, Direction)> {
        match self {
            Self::Read { offset, len } => Some((*offset, *len, Direction::Read)),
            Self::Write { offset, bytes, .. } => {
                Some((*offset, Bytes::new(bytes.len() as u64), Direction::Write))
            }
            Self::Flush => None,
        }
    }

    /// What the drive is asked to do: whole sectors.
    fn command(&self) -> Command {
        let Some((offset, len, direction)) = self.transfer() else { return Command::Flush };
        let end = (offset + len).round_up(SECTOR);
        let len = end - offset.round_down(SECTOR);
        Command::Transfer(Access { lba: Lba::containing(offset), len, direction })
    }
}

/// The drive could not do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failed(pub Failure);

/// What a drive says that cannot read or write a place, or has no power.
const FAILED: Failed = Failed(Failure::Io);

/// The end of a request; `R` is how its sender is told.
#[derive(Debug)]
pub(crate) struct Answer<R> {
    pub reply: R,
    /// The bytes of a read or write, nothing for a flush; [`Device::give_back`] them.
    pub result: Result<Vec<u8>, Failed>,
    /// When the drive was done.
    pub end: Instant,
}

#[derive(Debug)]
struct Inside<R> {
    work: Work,
    /// Where, how much and which way; none for a flush.
    transfer: Option<(Bytes, Bytes, Direction)>,
    reply: R,
    arrived: Instant,
    /// What goes wrong with it, since it was waited for.
    wrong: Option<Wrong>,
    /// The bytes have moved, or could not.
    result: Option<Result<Vec<u8>, Failed>>,
}

/// Whether there is power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Power {
    On,
    /// Until then, or until it is switched on.
    Off(Option<Instant>),
}

/// An emulated drive with its requests.
pub(crate) struct Device<R> {
    queue: CommandQueue,
    capacity: Bytes,
    medium: Medium,
    inside: HashMap<u64, Inside<R>>,
    /// Those for which the drive's queue has no room yet.
    waiting: VecDeque<u64>,
    next_tag: u64,
    power: Power,
    errors: Vec<(Place, Option<Direction>)>,
    slow: Vec<(Place, u64)>,
    /// What goes wrong later.
    later: Vec<Later>,
    /// No transfer moves more than this; reads, writes.
    short: [Option<Bytes>; 2],
    bad_sectors: u64,
    served: Served,
    /// Memory of answers that were sent.
    buffers: Vec<Vec<u8>>,
}

impl<R> Device<R> {
    /// A drive of that model, that takes in `depth` commands at once.
    pub fn new(model: &Model, depth: usize, medium: Medium) -> Self {
        Self {
            queue: CommandQueue::new(model, depth, CommandQueue::PATIENCE),
            capacity: model.capacity(),
            medium,
            inside: HashMap::new(),
            waiting: VecDeque::new(),
            next_tag: 0,
            power: Power::On,
            errors: Vec::new(),
            slow: Vec::new(),
            later: Vec::new(),
            short: [None; 2],
            bad_sectors: 0,
            served: Served::default(),
            buffers: Vec::new(),
        }
    }

    /// Memory for the bytes of a write.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.buffers.pop().unwrap_or_default()
    }

    /// Takes back the memory of an answer.
    pub fn give_back(&mut self, mut bytes: Vec<u8>) {
        bytes.clear();
        if self.buffers.len() < 64 {
            self.buffers.push(bytes);
        }
    }

    /// Takes a request that came at `now`; an answer where the drive has no power.
    pub fn submit(&mut self, now: Instant, work: Work, reply: R) -> Option<Answer<R>> {
        self.power_up(now);
        if self.power != Power::On {
            self.served.failed += 1;
            return Some(Answer { reply, result: Err(FAILED), end: now });
        }
        let tag = self.next_tag;
        self.next_tag += 1;
        let transfer = work.transfer();
        let wrong = self.count(transfer.map(|(_, _, direction)| direction));
        let inside = Inside { work, transfer, reply, arrived: now, wrong, result: None };
        self.inside.insert(tag, inside);
        self.waiting.push_back(tag);
        self.fill_queue(now);
        None
    }

    /// Counts a request that came; what goes wrong with it, if anything does.
    fn count(&mut self, kind: Option<Direction>) -> Option<Wrong> {
        let mut wrong = None;
        self.later.retain_mut(|later| {
            later.nth -= u64::from(later.kind == kind);
            if later.nth == 0 {
                wrong = Some(later.wrong);
            }
            later.nth > 0
        });
        wrong.or_else(|| Some(Wrong::Short(self.short[kind? as usize]?)))
    }

    /// Gives the drive's queue what it has room for, at `now`.
    fn fill_queue(&mut self, now: Instant) {
        while let Some(&tag) = self.waiting.front() {
            let inside = &self.inside[&tag];
            let (at, command) = (inside.arrived.max(now), inside.work.command());
            let given = match inside.work {
                Work::Write { forced: true, .. } => self.queue.submit_forced(at, tag, command),
                _ => self.queue.submit(at, tag, command),
            };
            if given.is_err() {
                break;
            }
            self.waiting.pop_front();
        }
    }

    /// When the drive ends its next request.
    pub fn next_end(&self) -> Option<Instant> {
        self.queue.next_completion()
    }

    /// Moves the bytes of the request that ends next, so that they are there when it
    /// does.
    pub fn prepare(&mut self) {
        if let Some((tag, _)) = self.queue.next() {
            self.transfer(tag);
        }
    }

    /// Appends what the drive has ended by `now`, in the order in which it did.
    pub fn advance(&mut self, now: Instant, answers: &mut Vec<Answer<R>>) {
        self.power_up(now);
        while let Some((tag, _)) = self.queue.next().filter(|&(_, end)| end <= now) {
            self.transfer(tag);
            let (done, end) = self.queue.complete(now).expect("it has ended");
            assert_eq!(done, tag, "the queue ends what it says is next");
            self.fill_queue(end);
            let inside = self.inside.remove(&tag).expect("what is in the queue is inside");
            let result = inside.result.expect("its bytes have moved");
            if matches!(inside.work, Work::Flush) && result.is_ok() {
                self.medium.flush();
            }
            let transfer = inside.transfer.map(|(_, len, direction)| (len, direction));
            self.served.count(transfer, result.is_ok(), end - inside.arrived);
            answers.push(Answer { reply: inside.reply, result, end });
        }
    }

    /// Moves the bytes of a request, once.
    fn transfer(&mut self, tag: u64) {
        let inside = self.inside.get_mut(&tag).expect("what is in the queue is inside");
        if inside.result.is_some() {
            return;
        }
        let fails = inside.transfer.is_some_and(|(offset, len, direction)| {
            let here = |&&(ref place, which): &&(Place, Option<Direction>)| {
                which.is_none_or(|which| which == direction) && place.touches(offset, len)
            };
            self.errors.iter().any(|error| here(&error))
        });
        let most = match inside.wrong {
            Some(Wrong::Short(most)) => most.as_usize(),
            _ => usize::MAX,
        };
        let moved = match &mut inside.work {
            _ if fails => Err(FAILED),
            _ if let Some(Wrong::Fails(failure)) = inside.wrong => Err(Failed(failure)),
            Work::Flush => Ok(Vec::new()),
            Work::Read { offset, len } => {
                let mut bytes = self.buffers.pop().unwrap_or_default();
                bytes.resize(len.as_usize().min(most), 0);
                let read = self.medium.read(*offset, &mut bytes);
                read.map(|()| bytes).map_err(|_| FAILED)
            }
            Work::Write { offset, bytes, forced } => {
                bytes.truncate(most);
                let written = self.medium.write(*offset, bytes, *forced);
                written.map(|()| std::mem::take(bytes)).map_err(|_| FAILED)
            }
        };
        inside.result = Some(moved);
    }

    fn power_up(&mut self, now: Instant) {
        if matches!(self.power, Power::Off(Some(until)) if until <= now) {
            self.power = Power::On;
        }
    }

    /// Does what it was told at `now`; says what came of it. Everything that had
    /// ended by then was fetched before.
    ///
    /// # Errors
    /// Says why not, and what would do.
    pub fn order(
        &mut self,
        now: Instant,
        order: &Order,
        answers: &mut Vec<Answer<R>>,
    ) -> Result<String, String> {
        match order {
            Order::Stall(time) => self.queue.stall(now, *time),
            Order::Slow(place, times) => {
                self.check_place(place, self.slow.len())?;
                self.slow.push((place.clone(), *times));
                self.queue.slow(place.from..place.to, *times);
            }
            Order::Error(place, direction) => {
                self.check_place(place, self.errors.len())?;
                self.errors.push((place.clone(), *direction));
            }
            Order::Bad(place, turns) => self.spoil(place, *turns)?,
            Order::Later(later) => {
                if self.later.len() == PLACES_MAX {
                    return Err(format!("{PLACES_MAX} are waited for; `heal` forgets them"));
                }
                self.later.push(later.clone());
            }
            Order::Short(direction, most) => self.short[*direction as usize] = Some(*most),
            Order::PowerCut { off, seed } => return self.cut_power(now, *off, *seed, answers),
            Order::PowerOn => self.power = Power::On,
            Order::Heal => {
                self.queue.slow_nowhere();
                self.slow.clear();
                self.errors.clear();
                self.later.clear();
                self.short = [None; 2];
            }
        }
        Ok(order.to_string())
    }

    fn check_place(&self, place: &Place, places: usize) -> Result<(), String> {
        if place.to.offset() > self.capacity {
            let capacity = disk::exact_size(self.capacity);
            return Err(format!("{place} is not on this disk, which ends at {capacity}"));
        }
        match places < PLACES_MAX {
            true => Ok(()),
            false => Err(format!("{PLACES_MAX} places are enough; `heal` forgets them")),
        }
    }

    fn spoil(&mut self, place: &Place, turns: Option<u64>) -> Result<(), String> {
        self.check_place(place, 0)?;
        let sectors = place.to.get() - place.from.get();
        if sectors > BAD_SECTORS_MAX {
            return Err(format!("{sectors} bad sectors; give at most {BAD_SECTORS_MAX} at once"));
        }
        let Some(disk) = self.queue.drive_mut().hard_disk_mut() else {
            return Err("a flash device has no bad sectors here; use `error` or `slow`".into());
        };
        (place.from.get()..place.to.get()).for_each(|lba| disk.spoil(Lba::new(lba), turns));
        self.bad_sectors += sectors;
        Ok(())
    }

    /// Ends every request in failure and drops what was not flushed, or a part of it.
    fn cut_power(
        &mut self,
        now: Instant,
        off: Option<Duration>,
        seed: Option<u64>,
        answers: &mut Vec<Answer<R>>,
    ) -> Result<String, String> {
        let until = off.map(|off| now + off);
        drop(self.queue.lose_power(now, off.unwrap_or(Duration::ZERO)));
        self.waiting.clear();
        let failed = self.inside.len();
        let failures = self.inside.drain();
        let failures = failures.map(|(_, inside)| Answer {
            reply: inside.reply,
            result: Err(FAILED),
            end: now,
        });
        answers.extend(failures);
        self.served.failed += failed as u64;
        self.power = Power::Off(until);
        let lost = self.medium.lose_power(seed);
        let lost = lost.map_err(|error| format!("the backing file: {error}"))?;
        self.served.lost += lost;
        Ok(format!("power cut: {lost} taken back, {failed} requests failed"))
    }

    /// What was served so far.
    pub fn served(&self) -> &Served {
        &self.served
    }

    /// How much a power cut would take back.
    pub fn unflushed(&self) -> Bytes {
        self.medium.unflushed()
    }

    /// How many requests have no answer yet.
    pub fn len(&self) -> usize {
        self.inside.len()
    }

    /// The trouble that was asked for and lasts, in words.
    pub fn troubles(&self, now: Instant) -> Vec<String> {
        let errors = self.errors.iter();
        let errors = errors.map(|(place, which)| Order::Error(place.clone(), *which).to_string());
        let slow = self.slow.iter().map(|(place, times)| Order::Slow(place.clone(), *times));
        let mut troubles: Vec<String> = errors.chain(slow.map(|slow| slow.to_string())).collect();
        troubles.extend(self.later.iter().map(|later| Order::Later(later.clone()).to_string()));
        for direction in [Direction::Read, Direction::Write] {
            let most = self.short[direction as usize];
            troubles.extend(most.map(|most| Order::Short(direction, most).to_string()));
        }
        if self.bad_sectors > 0 {
            troubles.push(format!("{} bad sectors", self.bad_sectors));
        }
        match self.power {
            Power::Off(None) => troubles.push("no power until power-on".into()),
            Power::Off(Some(until)) if until > now => {
                troubles.push(format!("no power for another {}", until - now));
            }
            _ => {}
        }
        troubles
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::tests::scratch;
    use disk::Drive;

    fn model(name: &str) -> Model {
        Model::named(name).unwrap().scaled(Bytes::GIB).unwrap()
    }

    fn device(model: &Model, depth: usize, volatile: bool) -> Device<u64> {
        Device::new(model, depth, Medium::new(scratch(), model.capacity(), volatile))
    }

    fn at(us: u64) -> Instant {
        Instant::from_nanos(1_000_000_000 + us * 1_000)
    }

    fn read(offset: u64, len: u64) -> Work {
        Work::Read { offset: Bytes::new(offset), len: Bytes::new(len) }
    }

    fn write(offset: u64, byte: u8, len: usize, forced: bool) -> Work {
        Work::Write { offset: Bytes::new(offset), bytes: vec![byte; len], forced }
    }

    /// Runs until nothing is asked for.
    fn drain(device: &mut Device<u64>) -> Vec<Answer<u64>> {
        let mut answers = Vec::new();
        while let Some(end) = device.next_end() {
            device.prepare();
            device.advance(end, &mut answers);
        }
        assert_eq!(device.len(), 0);
        answers
    }

    /// One request alone: its bytes, or none where it failed.
    fn alone(device: &mut Device<u64>, now: &mut Instant, work: Work) -> Option<Vec<u8>> {
        assert!(device.submit(*now, work, 9).is_none(), "there is power");
        let answer = drain(device).pop().expect("it was answered");
        *now = answer.end + Duration::from_millis(1);
        answer.result.ok()
    }

    /// What the emulator answers is what the model says, to the nanosecond, with
    /// requests one at a time and with several that wait for each other.
    #[test]
    fn answers_come_at_the_models_own_times() {
        for name in Model::names() {
            let model = model(name);
            let mut device = device(&model, 1, false);
            let mut drive = disk::Emulated::new(&model);
            let (mut free, mut wanted, mut answers) = (Instant::EPOCH, Vec::new(), Vec::new());
            for n in 0..200u64 {
                // By turns two close together, of which one waits, and a pause.
                let (now, offset) = (at(n / 2 * 60_000 + n % 2 * 50), n * 7_919 % 60_000 * 4_096);
                let work = match n % 3 {
                    0 => write(offset, 1, 8_192, false),
                    _ => read(offset, 4_096),
                };
                let started = now.max(free);
                free = started + drive.serve(started, &work.command());
                wanted.push((n, free));
                device.advance(now, &mut answers);
                assert!(device.submit(now, work, n).is_none());
            }
            answers.extend(drain(&mut device));
            let found: Vec<_> = answers.iter().map(|answer| (answer.reply, answer.end)).collect();
            assert_eq!(found, wanted, "{name}");
        }
    }

    #[test]
    fn a_drive_with_a_queue_takes_the_nearest_and_one_without_takes_them_as_they_came() {
        let model = model("seagate-st318437lw");
        let order = |depth: usize| -> (Vec<u64>, Instant) {
            let mut device = device(&model, depth, false);
            for n in 0..24 {
                device.submit(at(n), read(n * 37 % 24 * Bytes::mib(10).get(), 4_096), n);
            }
            let answers = drain(&mut device);
            let last = answers.last().expect("they ended").end;
            (answers.iter().map(|answer| answer.reply).collect(), last)
        };
        let ((as_they_came, long), (nearest, short)) = (order(1), order(24));
        assert_eq!(as_they_came, (0..24).collect::<Vec<_>>());
        assert!(!nearest.is_sorted(), "{nearest:?}");
        assert!(short - at(0) < (long - at(0)) * 7 / 10, "{short} after {long}");
    }

    #[test]
    fn a_power_cut_fails_what_waits_drops_what_is_not_flushed_and_keeps_the_rest() {
        for name in ["laptop-4200", "ssd-sata"] {
            let model = model(name).with_write_back(true);
            let (mut device, mut now) = (device(&model, model.depth(), true), at(0));
            alone(&mut device, &mut now, write(0, 1, 8_192, false)).unwrap();
            alone(&mut device, &mut now, Work::Flush).unwrap();
            alone(&mut device, &mut now, write(4_096, 2, 8_192, false)).unwrap();
            alone(&mut device, &mut now, write(65_536, 3, 4_096, true)).unwrap();
            assert_eq!(alone(&mut device, &mut now, read(4_096, 4)).unwrap(), [2; 4], "{name}");
            device.submit(now, write(0, 4, 4_096, false), 70);
            device.submit(now, read(0, 4_096), 71);
            device.prepare();
            let mut answers = Vec::new();
            let told = device
                .order(now, &Order::PowerCut { off: None, seed: None }, &mut answers)
                .unwrap();
            assert!(told.contains("2 requests failed"), "{told}");
            assert!(answers.iter().all(|answer| answer.result == Err(FAILED)));
            assert_eq!(answers.len(), 2);
            let dark = device.submit(now, read(0, 4_096), 72).expect("at once");
            assert_eq!((dark.result, dark.reply), (Err(FAILED), 72));
            device.order(now, &Order::PowerOn, &mut Vec::new()).unwrap();
            now += Duration::from_secs(1);
            let all = alone(&mut device, &mut now, read(0, 70_000)).unwrap();
            let mut wanted = vec![0; 70_000];
            wanted[..8_192].fill(1);
            wanted[65_536..69_632].fill(3);
            assert_eq!(all, wanted, "{name}");
        }
    }

    #[test]
    fn a_power_cut_of_a_drive_that_writes_through_loses_nothing_that_ended() {
        let model = model("laptop-4200");
        let (mut device, mut now) = (device(&model, 1, false), at(0));
        alone(&mut device, &mut now, write(512, 7, 1_024, false)).unwrap();
        let cut = Order::PowerCut { off: Some(Duration::from_millis(5)), seed: None };
        device.order(now, &cut, &mut Vec::new()).unwrap();
        assert!(device.submit(now, read(0, 512), 1).is_some(), "no power yet");
        now += Duration::from_millis(6);
        assert_eq!(alone(&mut device, &mut now, read(512, 1_024)).unwrap(), [7; 1_024]);
    }

    #[test]
    fn errors_are_where_they_were_asked_for_and_nowhere_else() {
        let model = model("quantum-atlas-ii");
        let (mut device, mut now) = (device(&model, 1, false), at(0));
        let order: Order = "error 1MiB..2MiB writes".parse().unwrap();
        device.order(now, &order, &mut Vec::new()).unwrap();
        let mib = Bytes::MIB.get();
        for (work, good) in [
            (write(mib - 4_096, 1, 4_096, false), true),
            (write(mib - 4_096, 2, 4_097, false), false),
            (write(2 * mib - 1, 2, 4_096, false), false),
            (write(2 * mib, 3, 4_096, false), true),
            (read(mib, 4_096), true),
        ] {
            let text = format!("{work:?}").chars().take(60).collect::<String>();
            assert_eq!(alone(&mut device, &mut now, work).is_some(), good, "{text}");
        }
        let around = alone(&mut device, &mut now, read(mib - 4_096, 8_192)).unwrap();
        assert!(
            around[..4_096] == [1; 4_096] && around[4_096..] == [0; 4_096],
            "failed, untouched"
        );
        assert_eq!(device.served().failed, 2);
        device.order(now, &Order::Heal, &mut Vec::new()).unwrap();
        assert!(alone(&mut device, &mut now, write(mib, 1, 4_096, false)).is_some());
    }

    #[test]
    fn the_nth_of_a_kind_goes_wrong_once_and_what_is_short_is_short_by_so_much() {
        let model = model("quantum-atlas-ii");
        let (mut device, mut now) = (device(&model, 1, true), at(0));
        let order = |device: &mut Device<u64>, text: &str| {
            device.order(at(0), &text.parse().unwrap(), &mut Vec::new()).unwrap()
        };
        order(&mut device, "fail 2 writes ENOSPC");
        order(&mut device, "fail 1 flushes");
        order(&mut device, "short 3 writes 1KiB");
        for (byte, moved) in [(1, Some(4_096)), (2, None), (3, Some(1_024)), (4, Some(4_096))] {
            let bytes = alone(&mut device, &mut now, write(byte * 4_096, byte as u8, 4_096, false));
            assert_eq!(bytes.map(|bytes| bytes.len()), moved, "write {byte}");
        }
        // A flush that failed flushed nothing; the next one does.
        assert!(alone(&mut device, &mut now, Work::Flush).is_none());
        assert_eq!(device.unflushed(), Bytes::kib(12));
        assert!(alone(&mut device, &mut now, Work::Flush).is_some());
        assert_eq!(device.unflushed(), Bytes::ZERO);
        order(&mut device, "short reads 512B");
        let short = alone(&mut device, &mut now, read(4_096, 4_096)).unwrap();
        assert_eq!(short, [1; 512]);
        assert_eq!(device.troubles(now), ["short reads 512B"]);
        order(&mut device, "heal");
        let all = alone(&mut device, &mut now, read(4_096, 16_384)).unwrap();
        let wanted = [[1; 4_096], [0; 4_096], [0; 4_096], [4; 4_096]].concat();
        assert_eq!(all[..8_192], wanted[..8_192]);
        assert!(all[8_192..9_216] == [3; 1_024] && all[9_216..] == wanted[9_216..]);
    }

    #[test]
    fn a_bad_sector_a_slow_place_and_a_stall_cost_what_they_say() {
        let model = model("laptop-4200");
        let time = |orders: &[&str]| {
            let mut device = device(&model, 1, false);
            for order in orders {
                device.order(at(0), &order.parse().unwrap(), &mut Vec::new()).unwrap();
            }
            device.submit(at(0), read(Bytes::mib(9).get(), 4_096), 0);
            drain(&mut device)[0].end - at(0)
        };
        let (good, turn) = (time(&[]), model.rotation());
        assert_eq!(time(&["bad 9MiB..9437696B retry 3"]), good + turn * 3);
        assert_eq!(time(&["slow 9MiB..10MiB 5"]), good * 5);
        assert_eq!(time(&["slow 8MiB..9MiB 5", "slow 10MiB..11MiB 5"]), good);
        assert!(time(&["stall 2s"]) >= Duration::from_secs(2));
    }

    #[test]
    fn orders_that_the_drive_cannot_follow_are_refused() {
        let model = model("ssd-nvme");
        let mut device = device(&model, 1, false);
        for (order, says) in [
            ("error 1000MiB..1100MiB", "ends at"),
            ("slow 3000MiB..3001MiB 2", "ends at"),
            ("bad 1MiB..2MiB", "no bad sectors"),
            ("bad 1MiB..9MiB", "at most 4096"),
        ] {
            let error = device.order(at(0), &order.parse().unwrap(), &mut Vec::new());
            assert!(error.as_ref().is_err_and(|error| error.contains(says)), "{order}: {error:?}");
        }
        let error: Order = "error 0..512B".parse().unwrap();
        for _ in 0..PLACES_MAX {
            device.order(at(0), &error, &mut Vec::new()).unwrap();
        }
        assert!(device.order(at(0), &error, &mut Vec::new()).unwrap_err().contains("heal"));
    }
}
