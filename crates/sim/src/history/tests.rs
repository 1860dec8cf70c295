//! The checker on histories that are right, and on each kind that is not.

use super::*;
use crate::Random;

fn event(client: u32, at_invoke: u64, at_return: u64, kind: Kind) -> Event {
    let at_return = (at_return > 0).then_some(at_return);
    Event { client, at_invoke, at_return, kind, volume: 1, cells: 0..1 }
}

fn write(at: u64, until: u64, stamp: u64) -> Event {
    event(1, at, until, Kind::Write { stamp })
}

fn durable(at: u64, until: u64, stamp: u64) -> Event {
    event(1, at, until, Kind::Durable { stamp })
}

fn read(at: u64, until: u64, stamp: u64) -> Event {
    event(2, at, until, Kind::Read { stamps: vec![stamp] })
}

fn sync(at: u64, until: u64) -> Event {
    event(1, at, until, Kind::SyncAll)
}

fn crash(at: u64, until: u64) -> Event {
    event(0, at, until, Kind::Crash)
}

fn right(events: &[Event]) {
    if let Err(violation) = check(events) {
        panic!("{violation}");
    }
}

/// The read of this place in the history is the one that is not explained.
fn wrong(events: &[Event], read: usize) {
    let violation = check(events).expect_err("it was taken for right");
    assert_eq!(violation.read, Some(read), "{violation}");
}

#[test]
fn what_was_answered_is_read_from_then_on() {
    right(&[read(1, 2, ZEROS), write(3, 4, 7), read(5, 6, 7)]);
    wrong(&[write(1, 2, 7), read(3, 4, ZEROS)], 1);
    wrong(&[write(1, 2, 7), write(3, 4, 8), read(5, 6, 7)], 2);
    wrong(&[write(1, 2, 7), read(3, 4, FOREIGN)], 1);
    wrong(&[write(1, 2, 7), read(3, 4, TORN)], 1);
    wrong(&[write(1, 2, 7), read(3, 4, 9)], 1);
}

#[test]
fn a_write_under_way_is_read_or_not_but_does_not_come_and_go() {
    right(&[write(1, 10, 7), read(2, 3, ZEROS), read(4, 5, 7), read(6, 7, 7)]);
    wrong(&[write(1, 10, 7), read(2, 3, 7), read(4, 5, ZEROS)], 2);
    wrong(&[read(1, 2, 7), write(3, 4, 7)], 0);
    // Of two that overlap either is the last, but all see the same.
    let two = [write(1, 10, 7), write(2, 9, 8)];
    for last in [7, 8] {
        right(&[two[0].clone(), two[1].clone(), read(11, 12, last), read(13, 14, last)]);
    }
    wrong(&[two[0].clone(), two[1].clone(), read(11, 12, 7), read(13, 14, 8)], 3);
}

#[test]
fn a_write_without_an_answer_may_happen_at_any_time_or_never() {
    let lost = [write(1, 2, 7), write(3, 0, 8)];
    right(&[lost[0].clone(), lost[1].clone(), read(4, 5, 7), read(6, 7, 8), read(8, 9, 8)]);
    right(&[lost[0].clone(), lost[1].clone(), read(4, 5, 7), read(6, 7, 7)]);
    wrong(&[lost[0].clone(), lost[1].clone(), read(4, 5, 8), read(6, 7, 7)], 3);
    // Not after the process that had it is dead and its successor has been seen.
    wrong(&[lost[0].clone(), lost[1].clone(), crash(10, 20), read(21, 22, 7), read(23, 24, 8)], 4);
}

#[test]
fn what_was_synced_survives_and_what_was_not_may() {
    let before = [write(1, 2, 7), sync(3, 4), write(5, 6, 8)];
    for survivor in [7, 8] {
        let mut events = before.to_vec();
        events.extend([crash(7, 8), read(9, 10, survivor), read(11, 12, survivor)]);
        right(&events);
    }
    for (survivor, later) in [(ZEROS, ZEROS), (7, 8), (8, 7)] {
        let mut events = before.to_vec();
        events.extend([crash(7, 8), read(9, 10, survivor), read(11, 12, later)]);
        wrong(&events, if survivor == ZEROS { 4 } else { 5 });
    }
    // A sync covers what was answered when it was asked for, and no more.
    right(&[write(1, 4, 7), sync(2, 5), crash(6, 7), read(8, 9, ZEROS)]);
    wrong(&[write(1, 2, 7), sync(3, 4), crash(6, 7), read(8, 9, ZEROS)], 3);
    // One that was not answered promises nothing.
    right(&[write(1, 2, 7), sync(3, 0), crash(6, 7), read(8, 9, ZEROS)]);
}

#[test]
fn what_a_pool_found_when_it_opened_does_not_go_at_the_next_cut() {
    let events = [write(1, 2, 7), crash(3, 4), read(5, 6, 7), crash(7, 8)];
    let with = |stamp| [&events[..], &[read(9, 10, stamp)]].concat();
    right(&with(7));
    wrong(&with(ZEROS), 4);
}

#[test]
fn what_was_cut_off_stays_cut_off_also_after_a_crash() {
    let cut = [write(1, 2, 7), sync(3, 4), durable(5, 6, ZEROS)];
    let then = |more: &[Event]| [&cut[..], more].concat();
    right(&then(&[read(7, 8, ZEROS), crash(9, 10), read(11, 12, ZEROS)]));
    wrong(&then(&[read(7, 8, 7)]), 3);
    wrong(&then(&[crash(9, 10), read(11, 12, 7)]), 4);
    // What is written behind it may come or go, to the zeros and not to what was before.
    right(&then(&[write(7, 8, 9), crash(9, 10), read(11, 12, ZEROS)]));
    right(&then(&[write(7, 8, 9), crash(9, 10), read(11, 12, 9)]));
    wrong(&then(&[write(7, 8, 9), crash(9, 10), read(11, 12, 7)]), 5);
    // Without an answer, either.
    for stamp in [7, ZEROS] {
        right(&[
            cut[0].clone(),
            cut[1].clone(),
            durable(5, 0, ZEROS),
            crash(9, 10),
            read(11, 12, stamp),
        ]);
    }
}

#[test]
fn cells_are_by_themselves_and_ranges_are_the_drivers() {
    let mut long = write(1, 2, 7);
    long.cells = 4..8;
    let mut back = read(3, 4, 0);
    back.cells = 3..9;
    back.kind = Kind::Read { stamps: vec![ZEROS, 7, 7, 7, 7, ZEROS] };
    let checked = check(&[long.clone(), back.clone()]).unwrap();
    assert_eq!((checked.cells, checked.reads, checked.stamped, checked.stories), (6, 6, 4, 2));
    let mut cut = durable(5, 6, ZEROS);
    cut.cells = 6..u64::MAX;
    let mut later = back.clone();
    (later.at_invoke, later.at_return) = (7, Some(8));
    wrong(&[long.clone(), back.clone(), cut.clone(), later.clone()], 3);
    later.kind = Kind::Read { stamps: vec![ZEROS, 7, 7, ZEROS, ZEROS, ZEROS] };
    right(&[long.clone(), back, cut, later]);
    let mut elsewhere = read(3, 4, 7);
    (elsewhere.volume, elsewhere.cells) = (2, 4..5);
    wrong(&[long, elsewhere], 1);
}

#[test]
fn bytes_tell_their_place_and_their_write() {
    let mut cell = [0; 512];
    assert_eq!(stamp_in(&cell, 1, 2), ZEROS);
    fill(&mut cell, 1, 2, 77);
    assert_eq!(stamp_in(&cell, 1, 2), 77);
    assert_eq!(stamp_in(&cell, 1, 3), FOREIGN);
    assert_eq!(stamp_in(&cell, 2, 2), FOREIGN);
    let mut other = [0; 512];
    fill(&mut other, 1, 2, 78);
    for from in [32, 24, 500] {
        let mut mixed = cell;
        mixed[from..].copy_from_slice(&other[from..]);
        assert_eq!(stamp_in(&mixed, 1, 2), TORN, "from {from}");
        mixed[from..].fill(0);
        assert_eq!(stamp_in(&mixed, 1, 2), TORN, "zeros from {from}");
    }
    // Units in another order are no cell.
    cell.copy_within(0..32, 32);
    assert_eq!(stamp_in(&cell, 1, 2), TORN);
}

/// A cell as it is, with all that happens at a point of time: right by construction.
struct Real {
    random: Random,
    tick: u64,
    stamp: u64,
    current: u64,
    held: Vec<u64>,
}

impl Real {
    /// A history of `clients` that overlap, over some crashes.
    fn history(seed: u64, clients: u32, steps: u64) -> Vec<Event> {
        let random = Random::new(seed);
        let mut real = Self { random, tick: 0, stamp: 0, current: ZEROS, held: vec![ZEROS] };
        let mut events = Vec::new();
        // Under way: the event, and whether it has happened.
        let mut busy: BTreeMap<u32, (Event, bool)> = BTreeMap::new();
        for _ in 0..steps {
            real.tick += 1;
            let client = real.random.between(1, u64::from(clients)) as u32;
            if real.random.chance(2) {
                real.crash(&mut busy, &mut events);
                continue;
            }
            match busy.remove(&client) {
                None => drop(busy.insert(client, (real.ask(client), false))),
                Some((mut event, false)) => {
                    if real.random.chance(5) && !matches!(event.kind, Kind::Read { .. }) {
                        events.push(event); // never answered, never happened
                    } else {
                        real.happen(&mut event);
                        busy.insert(client, (event, true));
                    }
                }
                Some((mut event, true)) => {
                    let unanswered = real.random.chance(5);
                    event.at_return = (!unanswered).then_some(real.tick);
                    if unanswered && matches!(event.kind, Kind::Read { .. }) {
                        continue;
                    }
                    real.answered(&event);
                    events.push(event);
                }
            }
        }
        real.crash(&mut busy, &mut events);
        real.tick += 2;
        events.push(read(real.tick - 1, real.tick, real.current));
        events
    }

    fn ask(&mut self, client: u32) -> Event {
        self.stamp += 1;
        let kind = match self.random.below(10) {
            0..4 => Kind::Write { stamp: self.stamp },
            4..8 => Kind::Read { stamps: vec![ZEROS] },
            8 => Kind::SyncAll,
            _ => Kind::Durable { stamp: ZEROS },
        };
        event(client, self.tick, 0, kind)
    }

    fn happen(&mut self, event: &mut Event) {
        match &mut event.kind {
            Kind::Write { stamp } | Kind::Durable { stamp } => {
                self.current = *stamp;
                self.held.push(*stamp);
            }
            Kind::Read { stamps } => stamps[0] = self.current,
            Kind::Sync | Kind::SyncAll => self.held = vec![self.current],
            Kind::Crash => unreachable!("nobody asks for that"),
        }
    }

    /// What was cut off is gone for good when that is answered.
    fn answered(&mut self, event: &Event) {
        if matches!(event.kind, Kind::Durable { .. })
            && let Some(place) = self.held.iter().rposition(|&stamp| stamp == ZEROS)
        {
            self.held.drain(..place);
        }
    }

    fn crash(&mut self, busy: &mut BTreeMap<u32, (Event, bool)>, events: &mut Vec<Event>) {
        let lost = std::mem::take(busy).into_values().map(|(event, _)| event);
        events.extend(lost.filter(|event| !matches!(event.kind, Kind::Read { .. })));
        self.current = *self.random.pick(&self.held);
        self.held = vec![self.current];
        self.tick += 2;
        events.push(crash(self.tick - 1, self.tick));
    }
}

#[test]
fn histories_of_a_real_register_are_explained() {
    for seed in 0..3_000 {
        let events = Real::history(seed, 2 + (seed % 5) as u32, 20 + seed % 100);
        if let Err(violation) = check(&events) {
            panic!("seed {seed}: {violation}");
        }
    }
}

/// Every order, tried out: slow, and as simple as the words at the top of the file.
fn by_hand(ops: &[Op], happened: u32, current: u64, held: &[(usize, u64)]) -> bool {
    let left = |at: usize| happened >> at & 1 == 0;
    let answered = (0..ops.len()).filter(|&at| left(at) && ops[at].at_return.is_some());
    let answered: Vec<usize> = answered.collect();
    if answered.is_empty() {
        return true;
    }
    (0..ops.len()).filter(|&at| left(at)).any(|at| {
        let op = &ops[at];
        let too_early = |&other: &usize| {
            let other = &ops[other];
            other.at_return < Some(op.at_invoke)
                || (op.what == What::Crash && other.at_invoke < op.at_invoke)
        };
        let unsettled = matches!(op.what, What::Settle(write) if left(write));
        if unsettled || answered.iter().any(too_early) {
            return false;
        }
        let happened = happened | 1 << at;
        match op.what {
            What::Write(stamp) => by_hand(ops, happened, stamp, &[held, &[(at, stamp)]].concat()),
            What::Read(stamp) => stamp == current && by_hand(ops, happened, current, held),
            What::Sync => by_hand(ops, happened, current, &[(usize::MAX, current)]),
            What::Settle(write) => {
                let from = held.iter().position(|&(by, _)| by == write).unwrap_or(0);
                by_hand(ops, happened, current, &held[from..])
            }
            What::Crash => held.iter().any(|&(_, stamp)| {
                let never = (0..ops.len()).filter(|&other| {
                    ops[other].at_return.is_none() && Some(ops[other].at_invoke) < op.at_return
                });
                let happened = never.fold(happened, |happened, other| happened | 1 << other);
                by_hand(ops, happened, stamp, &[(usize::MAX, stamp)])
            }),
        }
    })
}

/// Small histories whose reads find anything: the search says what trying every order does.
#[test]
fn the_search_agrees_with_trying_every_order() {
    let (mut right, mut wrong) = (0, 0);
    for seed in 0..20_000 {
        let mut events = Real::history(seed, 2 + (seed % 3) as u32, 6 + seed % 14);
        let mut random = Random::new(!seed);
        let stamps: Vec<u64> = events.iter().filter_map(|event| event.kind.stamp()).collect();
        for event in &mut events {
            if let Kind::Read { stamps: found } = &mut event.kind
                && random.chance(20)
                && !stamps.is_empty()
            {
                found[0] = *random.pick(&stamps);
            }
        }
        let runs = runs(&events);
        let ops = story(&events, &runs[&(1, 0)].touching, 1, 0);
        if ops.len() > 10 {
            continue;
        }
        let found = explain(&ops).is_ok();
        assert_eq!(found, by_hand(&ops, 0, ZEROS, &[(usize::MAX, ZEROS)]), "seed {seed}");
        (right, wrong) = (right + u32::from(found), wrong + u32::from(!found));
    }
    assert!(right > 2_000 && wrong > 500, "{right} right, {wrong} wrong");
}
