//! What a contract promises, held against a mechanical disk and against the
//! worst that its bounds allow, with greedy programs beside.

use crate::common::*;
use disk::Profile;
use node::{Config, Error, Mode, Op, Policy, Reply, WriteRange};
use sim::{
    AnyOrder, Fault, Greedy, Ordering, Player, Random, Recorder, SimDisk, Timing, pattern_matches,
};
use units::{Bytes, Duration};

/// How long the disks take.
#[derive(Clone, Copy, Debug)]
enum Takes {
    /// As a drive does.
    Drive,
    /// All that their bounds allow.
    All,
    /// Any part of that.
    Part,
    /// They hold eight commands, serve them in any order, and take any part.
    AnyOrder,
}

struct Outcome {
    late: u64,
    underruns: u64,
    players: usize,
    best_effort: Bytes,
}

/// Random volumes and contracts up to the first refusal, greedy readers beside;
/// every byte is checked.
/// `heard`: how long after the end of a command the node hears of it, where the disk goes on
/// before; contracts allow for it as for a late host.
fn random_world(seed: u64, policy: Policy, timing: Takes, heard: Option<Duration>) -> Outcome {
    random_world_at(seed, policy, timing, heard, 100)
}

/// The same where programs that write go at up to `speed` percent of their rates.
fn random_world_at(
    seed: u64,
    policy: Policy,
    timing: Takes,
    heard: Option<Duration>,
    speed: u64,
) -> Outcome {
    let mut speeds = Random::new(seed + 1_000_000);
    let mut random = Random::new(seed);
    let disks = random.between(1, 3) as usize;
    let host_latency = heard.unwrap_or_default();
    let mut config = Config { host_latency, ..config(policy) };
    if policy.admission != Policy::SLACK.admission && policy.keeps_contracts() {
        // The shortest deadline binds all of them, and that is the log's.
        config.commit_interval = Duration::from_secs(8);
    }
    let model = model(Bytes::GIB);
    let profile =
        Profile::of(&model).with_queue(if matches!(timing, Takes::AnyOrder) { 8 } else { 1 });
    let of_disk = |index| Random::new(seed + index as u64);
    let mut world = world_of(config, disks, (&model, profile), |model, profile, index| {
        let whole = Box::new(profile.clone());
        match timing {
            Takes::Drive => drive(model, profile, index),
            Takes::All => Timing::Percent(whole, 100),
            Takes::Part => Timing::WithinBound(whole, of_disk(index)),
            Takes::AnyOrder => {
                let any = AnyOrder::new(profile, of_disk(index));
                Timing::Ordering(Ordering::Any(Box::new(any)))
            }
        }
    });
    world.told_after = heard;
    let size = Bytes::mib(12);
    for volume in 0..4 {
        create(&mut world, &format!("r{volume}"), size);
        fill(&mut world, &format!("r{volume}"), volume, size);
    }
    let mut tallies = Vec::new();
    let mut refused = 0;
    for number in 0..24u64 {
        let contract = random_contract(&mut random);
        let piece = Bytes::new(random.between(1, contract.block.get()));
        // Late by no more than the burst makes good.
        let jitter = contract.rate.time_for(contract.burst);
        let tally = if random.chance(30) {
            let name = format!("w{number}");
            create(&mut world, &name, size);
            let recorder = Recorder::new(&name, 100 + number, contract, piece, size)
                .jitter(jitter)
                .speed(speeds.between(100, speed));
            let tally = recorder.tally();
            world.add(recorder);
            tally
        } else {
            let volume = random.below(4);
            let player = Player::new(&format!("r{volume}"), volume, contract, piece, size);
            let player = player.jitter(jitter).speed(speeds.between(100, speed));
            let tally = player.tally();
            world.add(player);
            tally
        };
        match tally.borrow().error.clone() {
            Some(Error::Refused(_) | Error::NoMemory { .. }) => refused += 1,
            Some(error) => panic!("seed {seed}: {error}"),
            None => {}
        }
        if tally.borrow().error.is_none() {
            tallies.push(tally);
        }
        if refused > 2 {
            break;
        }
        world.run_for(random.span(Duration::from_secs(2)));
    }
    let greedy: Vec<_> = (0..4)
        .map(|number| Greedy::new("r0", size, Bytes::kib(64), 8, 1000 + number))
        .map(|greedy| {
            let tally = greedy.tally();
            world.add(greedy);
            tally
        })
        .collect();
    let mut waited = 0;
    while tallies.iter().any(|tally| !tally.borrow().done) {
        world.run_for(Duration::from_secs(1));
        waited += 1;
        assert!(waited < 1000, "seed {seed}: a stream that never ends");
    }
    for tally in &tallies {
        let tally = tally.borrow();
        assert_eq!(tally.error, None, "seed {seed}");
        assert_eq!((tally.bytes + tally.gaps, tally.wrong), (size, Bytes::ZERO), "seed {seed}");
        // Only a schedule that promises nothing may end in gaps.
        assert!(policy == policies::FCFS || tally.gaps.is_zero(), "seed {seed}");
    }
    if matches!(timing, Takes::AnyOrder) {
        let deepest = world.disks.iter().map(SimDisk::deepest).max();
        assert_eq!(deepest, Some(8), "seed {seed}: as many as they may");
    }
    Outcome {
        late: late(&world),
        underruns: tallies.iter().map(|tally| tally.borrow().underruns).sum(),
        players: tallies.len(),
        best_effort: greedy.iter().map(|tally| tally.borrow().bytes).sum(),
    }
}

fn keeps_its_promises(policy: Policy, timing: Takes, heard: Option<Duration>) {
    keeps_in_worlds(policy, timing, heard, (12, 3));
}

/// In so many worlds, with more than so many streams each.
fn keeps_in_worlds(
    policy: Policy,
    timing: Takes,
    heard: Option<Duration>,
    (worlds, each): (u64, u64),
) {
    let (mut players, mut best_effort) = (0, Bytes::ZERO);
    for seed in 0..worlds {
        let outcome = random_world(seed, policy, timing, heard);
        assert_eq!((outcome.late, outcome.underruns), (0, 0), "{policy:?}, seed {seed}");
        players += outcome.players;
        best_effort += outcome.best_effort;
    }
    assert!(players as u64 > each * worlds, "too few streams for a test: {players}");
    assert!(best_effort > Bytes::mib(worlds), "best effort must move: {best_effort}");
}

#[test]
fn no_admitted_request_is_late_on_a_mechanical_disk_under_slack() {
    keeps_its_promises(Policy::SLACK, Takes::Drive, None);
}

#[test]
fn no_admitted_request_is_late_at_worst_cost_under_slack() {
    keeps_its_promises(Policy::SLACK, Takes::All, None);
}

#[test]
fn no_admitted_request_is_late_whatever_order_the_disks_like() {
    for after in [None, Some(Duration::ZERO), Some(Duration::from_millis(2))] {
        keeps_its_promises(Policy::SLACK, Takes::AnyOrder, after);
    }
}

/// Programs that write and read up to three times as fast as their contracts say: what goes beyond
/// their rate costs them nothing of what they have within it, nor anybody else.
#[test]
fn who_runs_ahead_has_all_that_the_rate_allows() {
    for timing in [Takes::All, Takes::Part, Takes::Drive, Takes::AnyOrder] {
        for seed in 10..34 {
            let outcome = random_world_at(seed, Policy::SLACK, timing, None, 300);
            assert_eq!((outcome.late, outcome.underruns), (0, 0), "{timing:?}, seed {seed}");
        }
    }
}

#[test]
fn no_admitted_request_is_late_where_disks_go_on_before_the_node_hears() {
    for after in [Duration::ZERO, Duration::from_millis(2), Duration::from_millis(20)] {
        keeps_its_promises(Policy::SLACK, Takes::All, Some(after));
        keeps_its_promises(Policy::SLACK, Takes::Drive, Some(after));
    }
}

#[test]
fn no_admitted_request_is_late_at_any_cost_within_bounds_under_delta_l() {
    keeps_its_promises(Policy::DELTA_L, Takes::Part, None);
}

/// What these policies admit by their own analysis they keep in a pool, with all that a pool
/// does beside streams: its log, best effort that always waits, readers behind writers.
#[test]
fn no_contract_is_broken_under_policies_that_admit_by_cycles() {
    for policy in [policies::TIME_CYCLE, policies::UCSB] {
        keeps_in_worlds(policy, Takes::Drive, None, (6, 1));
        keeps_in_worlds(policy, Takes::All, None, (6, 1));
    }
}

/// The canary: the same worlds without admission and without deadlines must be
/// late, or the tests above test nothing.
#[test]
fn without_admission_and_deadlines_requests_are_late() {
    let late: u64 =
        (0..4).map(|seed| random_world(seed, policies::FCFS, Takes::Drive, None).late).sum();
    assert!(late > 100, "only {late} late requests");
}

/// A camera writes 1.6 times its rate. On an idle disk it never waits; beside contracts that have
/// most of the disk and a greedy program nobody is late for it, and what it has under contract
/// it has.
#[test]
fn a_camera_at_more_than_its_rate_loses_nothing_while_the_disk_has_time() {
    for busy in [false, true] {
        let mut world = world(config(Policy::SLACK), 1, Bytes::GIB, drive);
        let (size, film) = (Bytes::mib(64), Bytes::mib(32));
        create(&mut world, "camera", size);
        let contract = contract(1_000_000, Bytes::kib(256), Bytes::ZERO);
        let camera = Recorder::new("camera", 7, contract, Bytes::kib(64), size).speed(160);
        let seen = camera.tally();
        let mut players = Vec::new();
        if busy {
            for number in 0..3 {
                let name = format!("film{number}");
                create(&mut world, &name, film);
                fill(&mut world, &name, number, film);
            }
            for number in 0..3 {
                let contract =
                    node::Contract { rate: units::Rate::per_second(1_200_000), ..contract };
                let player =
                    Player::new(&format!("film{number}"), number, contract, Bytes::kib(64), film);
                players.push(player.tally());
                world.add(player);
            }
            world.add(Greedy::new("film0", film, Bytes::kib(256), 4, 3));
        }
        world.add(camera);
        let mut account = node::StreamAccount::default();
        while !seen.borrow().done {
            world.run_for(Duration::from_millis(500));
            assert_eq!(seen.borrow().error, None);
            let streams = world.node.status(world.now()).streams;
            let own = streams.iter().find(|stream| Some(stream.stream) == seen.borrow().stream);
            account = own.map_or(account, |stream| stream.account);
        }
        assert_eq!(late(&world), 0);
        assert_eq!(account.underruns, 0);
        assert!(players.iter().all(|player| player.borrow().wait_max.is_zero()));
        if !busy {
            assert_eq!((account.throttled, seen.borrow().wait_max), (0, Duration::ZERO));
            let beyond = size / 16 * 6;
            assert!(account.excess > beyond / 10 * 8 && account.excess < beyond / 10 * 12);
        }
    }
}

/// A reader that wants three times its rate has it while the disk has time. Beside contracts that
/// have most of the disk and a greedy program it shares the slack, and has no less than its rate.
/// Those beside it never wait.
#[test]
fn an_over_eager_reader_has_what_the_disk_has_time_for_and_harms_nobody() {
    for busy in [false, true] {
        let mut world = world(config(Policy::SLACK), 1, Bytes::GIB, drive);
        let size = Bytes::mib(16);
        create(&mut world, "v", size);
        fill(&mut world, "v", 1, size);
        let others = if busy { 3 } else { 1 };
        for number in 0..others {
            create(&mut world, &format!("other{number}"), size);
            fill(&mut world, &format!("other{number}"), number, size);
        }
        let contract = contract(1_000_000, Bytes::kib(256), Bytes::ZERO);
        let piece = Bytes::kib(64);
        let eager = Player::new("v", 1, contract, piece, size).speed(300);
        let wants = eager.tally();
        world.add(eager);
        let beside: Vec<_> = (0..others)
            .map(|number| {
                let other = Player::new(&format!("other{number}"), number, contract, piece, size);
                let tally = other.tally();
                world.add(other);
                tally
            })
            .collect();
        if busy {
            for seed in 0..4 {
                world.add(Greedy::new("other0", size, Bytes::kib(256), 8, seed));
            }
        }
        for tally in beside.iter().chain([&wants]) {
            assert_eq!(tally.borrow().error, None, "it is admitted");
        }
        let began = world.now();
        let mut account = node::StreamAccount::default();
        let mut first = None;
        while !wants.borrow().done {
            world.step(units::Instant::MAX);
            // It is never behind where its rate alone would have brought it.
            let (now, bytes) = (world.now(), wants.borrow().bytes);
            first = first.or((!bytes.is_zero()).then_some(now));
            let at_rate = first.map_or(Bytes::ZERO, |first| contract.rate.bytes_in(now - first));
            assert!(bytes + piece >= at_rate.min(size), "busy: {busy}, {bytes} of {at_rate}");
            let streams = world.node.status(world.now()).streams;
            let own = streams.iter().find(|one| Some(one.stream) == wants.borrow().stream);
            account = own.map_or(account, |one| one.account);
        }
        let took = world.now() - began;
        let (at_rate, wanted) = (contract.rate.time_for(size), contract.rate.time_for(size / 3));
        if busy {
            assert!(took <= at_rate + Duration::from_secs(1) && took > wanted, "{took}");
            assert!(account.throttled > 0, "slowed, and counted");
        } else {
            assert!(took <= wanted + Duration::from_secs(1), "{took}");
            assert!(account.excess > size / 2, "{account:?}");
        }
        while beside.iter().any(|other| !other.borrow().done) {
            world.run_for(Duration::from_secs(1));
        }
        for other in &beside {
            let other = other.borrow();
            assert_eq!((other.bytes, other.wait_max), (size, Duration::ZERO), "busy: {busy}");
        }
        let all = beside.iter().chain([&wants]);
        let underruns: u64 = all.map(|tally| tally.borrow().underruns).sum();
        assert_eq!((late(&world), underruns), (0, 0), "busy: {busy}");
        assert_eq!((wants.borrow().bytes, wants.borrow().wrong), (size, Bytes::ZERO));
    }
}

/// A reader close behind a writer gets what was written, waits for what was
/// not, and comes to the end when the writer has closed.
#[test]
fn a_reader_follows_a_writer() {
    let mut world = world(config(Policy::SLACK), 2, Bytes::GIB, drive);
    let size = Bytes::mib(8) + Bytes::new(12_345);
    create(&mut world, "v", size);
    let contract = contract(1_000_000, Bytes::kib(256), Bytes::ZERO);
    let recorder = Recorder::new("v", 5, contract, Bytes::kib(50), size);
    let written = recorder.tally();
    world.add(recorder);
    world.run_for(Duration::from_millis(300));
    let player = Player::new("v", 5, contract, Bytes::kib(50), size);
    let read = player.tally();
    world.add(player);
    world.run_for(Duration::from_secs(30));
    assert!(
        written.borrow().done && read.borrow().done,
        "{written:?} {read:?} {:?}",
        world.node.status(world.now()).streams
    );
    assert_eq!((read.borrow().bytes, read.borrow().wrong), (size, Bytes::ZERO));
    assert_eq!(written.borrow().durable, size);
}

/// Unreadable places come as declared gaps of the bytes concerned, and all
/// other bytes come right.
#[test]
fn a_failing_place_is_a_declared_gap() {
    let mut world = world(config(Policy::SLACK), 1, Bytes::GIB, drive);
    let size = Bytes::mib(8);
    create(&mut world, "v", size);
    fill(&mut world, "v", 1, size);
    let offset = world_offset(&world, "v", 3);
    world.disks[0].faults.push(Fault::ReadError { from: offset, to: offset + Bytes::new(512) });
    let contract = contract(400_000, Bytes::kib(64), Bytes::ZERO);
    let player = Player::new("v", 1, contract, Bytes::kib(64), size);
    let tally = player.tally();
    world.add(player);
    world.run_for(Duration::from_secs(60));
    assert!(tally.borrow().done, "{tally:?} {:?}", world.node.status(world.now()).streams);
    assert_eq!(tally.borrow().gaps, Bytes::kib(64));
    assert_eq!(tally.borrow().bytes + tally.borrow().gaps, size);
    assert_eq!(tally.borrow().wrong, Bytes::ZERO);
}

/// Where the bytes of a volume's extent lie: found by what they are.
fn world_offset(world: &sim::World, _volume: &str, extent: u64) -> Bytes {
    let disk = &world.disks[0];
    let mut at = Bytes::ZERO;
    let mut block = vec![0; 4096];
    while at < disk.capacity() {
        disk.read(at, &mut block);
        if pattern_matches(1, Bytes::MIB * extent, &block) {
            return at;
        }
        at += Bytes::MIB;
    }
    panic!("the pattern is not on the disk");
}

/// A disk that turns slower than its profile says: the overruns and the late
/// requests are counted and attributed, no byte is wrong, nothing hangs.
#[test]
fn a_disk_that_breaks_its_promise_is_reported_and_every_byte_still_comes() {
    let mut world = world(config(Policy::SLACK), 1, Bytes::GIB, |_, profile, _| {
        Timing::Percent(Box::new(profile.clone()), 400)
    });
    let size = Bytes::mib(8);
    create(&mut world, "v", size);
    fill(&mut world, "v", 1, size);
    let contract = contract(1_500_000, Bytes::mib(1), Bytes::ZERO);
    let tallies: Vec<_> = (0..6)
        .map(|_| {
            let player = Player::new("v", 1, contract, Bytes::kib(256), size);
            let tally = player.tally();
            world.add(player);
            tally
        })
        .collect();
    world.run_for(Duration::from_secs(120));
    let status = world.node.status(world.now());
    assert!(status.disks[0].account.overruns > 0 && status.disks[0].account.late_requests > 0);
    for tally in tallies {
        let tally = tally.borrow();
        if tally.error.is_none() {
            assert!(tally.done, "hangs");
            assert_eq!((tally.bytes + tally.gaps, tally.wrong), (size, Bytes::ZERO));
        }
    }
}

/// When metadata cannot be written any more, nothing is acknowledged that is
/// not on the medium, readers go on, and everybody hears why.
#[test]
fn a_failing_log_makes_the_pool_read_only() {
    let mut world = world(config(Policy::SLACK), 1, Bytes::GIB, drive);
    let size = Bytes::mib(8);
    create(&mut world, "v", size);
    fill(&mut world, "v", 1, size);
    create(&mut world, "w", size);
    let contract = contract(1_000_000, Bytes::kib(256), Bytes::ZERO);
    let recorder = Recorder::new("w", 2, contract, Bytes::kib(64), size);
    let written = recorder.tally();
    world.add(recorder);
    world.run_for(Duration::from_secs(4));
    let durable = written.borrow().durable;
    assert!(durable > Bytes::ZERO);
    let after = world.disks[0].served();
    world.disks[0].faults.push(Fault::WriteError { after });
    world.run_for(Duration::from_secs(8));
    let error = written.borrow().error.clone();
    assert!(
        matches!(error, Some(Error::ReadOnly { .. } | Error::Device { .. })),
        "the writer hears {error:?}"
    );
    let op = Op::VolumeDelete { name: "v".into(), only: None, keep_directory: false };
    assert!(world.call(op).is_err());
    let op = Op::StreamOpen { volume: "v".into(), mode: Mode::Read, contract, start: Bytes::ZERO };
    assert!(matches!(world.call(op), Ok(Reply::Stream { .. })));
}

/// Over-commitment is refused with figures that are true: one byte per second
/// more than the named rate is refused, the named rate is admitted.
#[test]
fn a_refusal_names_the_largest_rate_that_fits() {
    let mut world = world(config(Policy::SLACK), 1, Bytes::GIB, drive);
    create(&mut world, "v", Bytes::mib(64));
    let open = |rate| Op::StreamOpen {
        volume: "v".into(),
        mode: Mode::Read,
        contract: contract(rate, Bytes::mib(1), Bytes::ZERO),
        start: Bytes::ZERO,
    };
    for _ in 0..3 {
        assert!(matches!(world.call(open(2_000_000)), Ok(Reply::Stream { .. })));
    }
    let Err(Error::Refused(refusal)) = world.call(open(50_000_000)) else {
        panic!("50 MB/s from a laptop disk")
    };
    assert!(refusal.utilisation_ppm > 1_000_000);
    let best = refusal.rate_max.get();
    assert!(best > 100_000, "{refusal}");
    assert!(matches!(world.call(open(best + 1)), Err(Error::Refused(_))));
    let Ok(Reply::Stream { stream, .. }) = world.call(open(best)) else { panic!("not admitted") };
    assert!(matches!(world.call(open(best)), Err(Error::Refused(_))), "the disk is full now");
    assert_eq!(world.call(Op::StreamClose { stream }), Ok(Reply::Done));
    assert!(matches!(world.call(open(best)), Ok(Reply::Stream { .. })), "and has room again");
}

/// A program that syncs all the time is slowed to the log's own contract: the
/// others' bytes become durable in a few intervals, greedy readers or not.
#[test]
fn a_program_that_syncs_all_the_time_does_not_hold_up_the_others() {
    let config = config(Policy::SLACK);
    let mut world = world(config, 1, Bytes::GIB, drive);
    let size = Bytes::mib(24);
    for name in ["a", "b", "g"] {
        create(&mut world, name, size);
    }
    fill(&mut world, "g", 9, size);
    for number in 0..4 {
        world.add(Greedy::new("g", size, Bytes::kib(64), 8, number));
    }
    let contract = contract(500_000, Bytes::kib(256), Bytes::ZERO);
    let piece = Bytes::kib(64);
    let syncs = Recorder::new("a", 1, contract, piece, size).sync_every(piece);
    let quiet = Recorder::new("b", 2, contract, piece, size);
    let (first, second) = (syncs.tally(), quiet.tally());
    world.add(syncs);
    world.add(quiet);
    let lag_max = contract.rate.bytes_in(config.commit_interval * 3) + contract.block * 3;
    for _ in 0..40 {
        world.run_for(Duration::from_secs(1));
        let second = second.borrow();
        let lag = second.bytes.saturating_sub(second.durable);
        assert!(lag <= lag_max, "{lag} not durable at {}", world.now());
    }
    assert_eq!((first.borrow().error.clone(), late(&world)), (None, 0));
}

/// While a stream records a volume nobody else writes to it: zeros before
/// another's write could fall on what is recorded. Once it has closed they may.
#[test]
fn a_volume_that_is_being_recorded_takes_no_other_writes() {
    let mut world = world(config(Policy::SLACK), 1, Bytes::GIB, drive);
    create(&mut world, "v", Bytes::mib(4));
    let contract = contract(500_000, Bytes::kib(256), Bytes::ZERO);
    let open =
        Op::StreamOpen { volume: "v".into(), mode: Mode::Write, contract, start: Bytes::ZERO };
    let Ok(Reply::Stream { stream, .. }) = world.call(open.clone()) else { panic!("not admitted") };
    let write = |world: &mut sim::World| {
        let Ok(Reply::Room { room: span }) =
            world.call(Op::Room { len: Bytes::kib(64), target: None })
        else {
            panic!("no room")
        };
        world.call(Op::Write {
            volume: "v".into(),
            range: WriteRange::new(Bytes::kib(512), span.len),
            span,
            priority: None,
        })
    };
    let free = world.node.status(world.now()).memory.free;
    assert!(matches!(write(&mut world), Err(Error::VolumeBusy { .. })));
    assert!(matches!(world.call(open), Err(Error::VolumeBusy { .. })), "nor a second stream");
    assert_eq!(world.node.status(world.now()).memory.free, free, "the memory came back");
    assert!(world.call(Op::StreamClose { stream }).is_ok());
    assert_eq!(write(&mut world), Ok(Reply::Done));
}

/// A stream begins in the middle of an extent of which nothing was written, and the disk
/// fails on the zeros before it: nobody has a stream that he was not told of.
#[test]
fn a_stream_that_cannot_begin_where_it_shall_leaves_nothing_behind() {
    let mut world = world(config(Policy::SLACK), 1, Bytes::GIB, drive);
    create(&mut world, "v", Bytes::mib(4));
    world.disks[0].faults.push(sim::Fault::WriteError { after: 0 });
    let (volume, mode, start) = ("v".into(), Mode::Write, Bytes::kib(512));
    let contract = contract(300_000, Bytes::kib(64), Bytes::ZERO);
    let opened = world.call(Op::StreamOpen { volume, mode, contract, start });
    assert!(matches!(opened, Err(Error::Device { .. })), "{opened:?}");
    let status = world.node.status(world.now());
    assert!(status.streams.is_empty(), "{:?}", status.streams);
    assert_eq!(status.memory.windows, Bytes::ZERO);
}
