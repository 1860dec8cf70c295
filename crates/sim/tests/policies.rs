//! The policy of a pool: what is refused under one that keeps nothing, and how it changes
//! while the pool serves.

use crate::common::*;
use node::{Config, Error, Mode, Op, Policy, Reply, Service};
use sim::{Greedy, Player, Random, Recorder, World};
use units::{Bytes, Duration, Rate};

const SIZE: Bytes = Bytes::mib(12);

fn pool(config: Config) -> World {
    let mut world = world(config, 1, Bytes::GIB, drive);
    create(&mut world, "v", SIZE);
    fill(&mut world, "v", 1, SIZE);
    world
}

fn open(volume: &str) -> Op {
    let contract = contract(400_000, Bytes::kib(256), Bytes::ZERO);
    Op::StreamOpen { volume: volume.into(), mode: Mode::Read, contract, start: Bytes::ZERO }
}

fn rate(name: &str) -> Op {
    let (rate, block) = (Rate::per_second(200_000), Bytes::kib(64));
    let service = Service::Rate { rate, block, period: Duration::from_secs(2) };
    Op::VolumeService { name: name.into(), service }
}

/// A policy that keeps no contract takes none: neither of a stream nor of a volume. Best
/// effort is served and made durable under it, by the contracts of the pool's own log.
#[test]
fn under_a_policy_that_keeps_nothing_contracts_are_refused_and_best_effort_is_served() {
    for policy in [policies::ABISS, Policy::EDF, policies::CFQ] {
        let mut world = pool(Config { admission: true, ..config(policy) });
        let keeps_nothing = Error::KeepsNothing { policy: policy.into() };
        let refused = Err(keeps_nothing.clone());
        assert_eq!(world.call(open("v")), refused);
        assert_eq!(world.call(rate("v")), refused);
        assert_eq!(world.call(Op::Plan).err(), refused.clone().err());
        let text = keeps_nothing.to_string();
        assert!(text.contains("--policy slack") && text.contains("--no-admission"), "{text}");
        let free = Service::BestEffort(node::Priority::Background);
        let free = Op::VolumeService { name: "v".into(), service: free };
        assert_eq!(world.call(free), Ok(Reply::Done));
        fill(&mut world, "v", 2, SIZE);
        assert_eq!(world.call(Op::Sync), Ok(Reply::Done));
        assert!(!world.node.status(world.now()).promised);
    }
}

/// Without admission everything is taken, and nowhere shown as a promise.
#[test]
fn without_admission_a_stream_is_taken_and_shown_as_no_promise() {
    for policy in [policies::ABISS, Policy::SLACK] {
        let mut world = pool(Config { admission: false, ..config(policy) });
        assert!(matches!(world.call(open("v")), Ok(Reply::Stream { .. })));
        assert_eq!(world.call(rate("v")), Ok(Reply::Done));
        let status = world.node.status(world.now());
        assert!(!status.promised && !status.streams[0].promised && !status.volumes[0].promised);
    }
    let mut world = pool(config(Policy::SLACK));
    assert!(matches!(world.call(open("v")), Ok(Reply::Stream { .. })));
    let status = world.node.status(world.now());
    assert!(status.promised && status.streams[0].promised);
}

fn set(world: &mut World, policy: Policy) -> Result<Reply, Error> {
    world.call(Op::PolicySet { policy: policy.into(), keep: false })
}

/// Policies of one analysis take over from each other while readers, a writer and greedy
/// programs are at work. Nobody is late, before or after.
#[test]
fn a_change_between_policies_that_keep_contracts_makes_nobody_late() {
    for seed in 0..4 {
        let mut world = pool(config(Policy::SLACK));
        let mut tallies = Vec::new();
        for number in 0..4 {
            let contract = contract(250_000, Bytes::kib(256), Bytes::kib(256));
            let player = Player::new("v", 1, contract, Bytes::kib(50 + number), SIZE);
            tallies.push(player.tally());
            world.add(player);
        }
        create(&mut world, "w", SIZE);
        let contract = contract(300_000, Bytes::kib(256), Bytes::ZERO);
        let recorder = Recorder::new("w", 5, contract, Bytes::kib(50), SIZE);
        tallies.push(recorder.tally());
        world.add(recorder);
        (0..3).for_each(|number| world.add(Greedy::new("v", SIZE, Bytes::kib(64), 8, number)));
        let mut random = Random::new(seed);
        let (all, mut changes) = ([Policy::SLACK, Policy::EDL, Policy::DELTA_L], 0);
        while tallies.iter().any(|tally| !tally.borrow().done) {
            world.run_for(random.span(Duration::from_millis(700)));
            let policy = all[random.below(3) as usize];
            assert_eq!(set(&mut world, policy), Ok(Reply::Done));
            let status = world.node.status(world.now());
            assert_eq!(status.policy, policy);
            assert_eq!(late(&world), 0, "seed {seed}, {policy}");
            changes += 1;
        }
        assert!(changes > 60, "{changes}");
        for tally in &tallies {
            let tally = tally.borrow();
            assert_eq!((&tally.error, tally.gaps, tally.wrong), (&None, Bytes::ZERO, Bytes::ZERO));
        }
    }
}

/// A policy that admits less names who does not fit, and is not followed; when they have gone
/// it is, and keeps what there is.
#[test]
fn a_policy_that_cannot_keep_what_is_open_says_who_does_not_fit_and_nothing_changes() {
    let mut world =
        pool(Config { commit_interval: Duration::from_secs(8), ..config(Policy::SLACK) });
    let mut streams = Vec::new();
    while let Ok(Reply::Stream { stream, .. }) = world.call(open("v")) {
        streams.push(stream);
    }
    assert!(streams.len() > 3, "{}", streams.len());
    // Their windows fill.
    world.run_for(Duration::from_secs(30));
    let Err(Error::PolicyRefused { streams: named, refusal: Some(refusal), .. }) =
        set(&mut world, policies::UCSB)
    else {
        panic!("more than a cycle holds")
    };
    assert!(!named.is_empty() && named.iter().all(|one| streams.contains(one)), "{named:?}");
    assert!(named.len() < streams.len() && refusal.deadline.is_some(), "{refusal:?}");
    assert_eq!(world.node.status(world.now()).policy, Policy::SLACK);
    for stream in named {
        assert_eq!(world.call(Op::StreamClose { stream }), Ok(Reply::Done));
        streams.retain(|&other| other != stream);
    }
    assert_eq!(set(&mut world, policies::UCSB), Ok(Reply::Done));
    assert!(matches!(world.call(open("v")), Err(Error::Refused(_))), "the cycle is full");
    assert_eq!(set(&mut world, Policy::EDL), Ok(Reply::Done));
    // One that keeps nothing is followed by no pool that has promised.
    let refused = set(&mut world, policies::CFQ).unwrap_err();
    let Error::PolicyRefused { streams: named, refusal: None, .. } = &refused else { panic!() };
    assert_eq!(*named, streams);
    assert!(refused.to_string().contains("keeps no contracts"), "{refused}");
    for stream in streams {
        assert_eq!(world.call(Op::StreamClose { stream }), Ok(Reply::Done));
    }
    assert_eq!(set(&mut world, policies::CFQ), Ok(Reply::Done));
    assert_eq!(world.call(open("v")), Err(Error::KeepsNothing { policy: policies::CFQ.into() }));
    assert_eq!(set(&mut world, Policy::SLACK), Ok(Reply::Done));
    assert!(matches!(world.call(open("v")), Ok(Reply::Stream { .. })));
    assert_eq!(late(&world), 0);
}

/// Settings are changed while the streams of a pool are at work: they are admitted again first,
/// and whoever does not fit is named.
#[test]
fn other_settings_admit_what_is_open_again_and_nobody_is_late() {
    let with = |name, text| policies::UCSB.with(name, text).unwrap();
    let long = Config { commit_interval: Duration::from_secs(30), ..config(policies::UCSB) };
    let mut world = pool(long);
    let contract = contract(250_000, Bytes::kib(256), Bytes::kib(256));
    let player = Player::new("v", 1, contract, Bytes::kib(50), SIZE);
    let tally = player.tally();
    world.add(player);
    (0..3).for_each(|number| world.add(Greedy::new("v", SIZE, Bytes::kib(64), 8, number)));
    world.run_for(Duration::from_secs(2));
    let Err(Error::PolicyRefused { streams, refusal: Some(_), policy, .. }) =
        set(&mut world, with("register-least", "10s"))
    else {
        panic!("no cycle of this contract is so long")
    };
    assert_eq!((streams.len(), *policy), (1, with("register-least", "10s")));
    assert_eq!(world.node.status(world.now()).policy, policies::UCSB, "nothing has changed");
    let mut values = ["5ms", "0ns", "1s", "80ms"].iter().cycle();
    let mut changes = 0;
    while !tally.borrow().done {
        world.run_for(Duration::from_millis(900));
        let policy = with("register-most", values.next().unwrap());
        // What waits may have to go first.
        if set(&mut world, policy) == Ok(Reply::Done) {
            changes += 1;
            assert_eq!(world.node.status(world.now()).policy, policy);
        }
        assert_eq!(late(&world), 0, "{policy:?}");
    }
    assert!(changes > 10, "{changes}");
    assert_eq!((&tally.borrow().error, tally.borrow().gaps), (&None, Bytes::ZERO));
}

/// The pool keeps what was chosen, as it was chosen, until it is told to forget it.
#[test]
fn what_was_chosen_is_kept_with_its_settings_until_it_is_for_now_only() {
    let mut world = pool(config(Policy::SLACK));
    let cfq = policies::CFQ.with("slice", "20ms").unwrap();
    assert_eq!(world.call(Op::PolicySet { policy: cfq.into(), keep: true }), Ok(Reply::Done));
    let status = world.node.status(world.now());
    assert_eq!((status.policy, status.policy_kept), (cfq, true));
    let kept = node::kept_policy(cfq);
    assert_eq!(kept.settings, [("slice".to_string(), 20_000_000)]);
    let settings = kept.settings.iter().map(|(name, value)| (&name[..], *value));
    assert_eq!(policies::chosen(&kept.name, settings), Ok(cfq));
    let beyond = policies::chosen("cfq", [("slice", 1)]).unwrap_err();
    assert!(beyond.contains("from 1 ms to 10 s"), "{beyond}");
    assert!(policies::chosen("fair", []).unwrap_err().contains("no such policy"));
    // For now only: of the same policy it is forgotten, too.
    assert_eq!(world.call(Op::PolicySet { policy: cfq.into(), keep: false }), Ok(Reply::Done));
    let status = world.node.status(world.now());
    assert_eq!((status.policy, status.policy_kept), (cfq, false));
}

fn sweeps(cycle: &str) -> Policy {
    policies::SWEEPS.with("cycle", cycle).unwrap()
}

/// With a log that commits every eight seconds.
fn seldom(policy: Policy) -> Config {
    Config { commit_interval: Duration::from_secs(8), ..config(policy) }
}

/// Readers and a writer in sweeps beside a volume's contract and greedy programs: no window is
/// empty, nobody is late, and best effort is served. More readers are admitted than by bounds.
#[test]
fn in_sweeps_more_readers_than_by_bounds_play_on_beside_a_writer_a_service_and_greedy_programs() {
    let of = || contract(400_000, Bytes::kib(256), Bytes::kib(256));
    let admitted = |policy: Policy| {
        let mut world = pool(seldom(policy));
        (0..100).take_while(|_| world.call(open("v")).is_ok()).count()
    };
    let cycle = "3932ms"; // what six blocks last
    let (bounds, swept) = (admitted(Policy::SLACK), admitted(sweeps(cycle)));
    assert!(swept > bounds, "{bounds} by bounds, {swept} by sweeps");
    let mut world = pool(seldom(sweeps(cycle)));
    let mut tallies = Vec::new();
    create(&mut world, "s", SIZE);
    fill(&mut world, "s", 2, SIZE);
    assert_eq!(world.call(rate("s")), Ok(Reply::Done));
    create(&mut world, "w", SIZE);
    let recorder = Recorder::new("w", 5, of(), Bytes::kib(50), SIZE);
    tallies.push(recorder.tally());
    world.add(recorder);
    for number in 0..swept as u64 - 11 {
        let player = Player::new("v", 1, of(), Bytes::kib(50 + number), SIZE);
        tallies.push(player.tally());
        world.add(player);
    }
    (0..3).for_each(|number| world.add(Greedy::new("v", SIZE, Bytes::kib(64), 8, number)));
    world.add(Greedy::new("s", SIZE, Bytes::kib(64), 2, 9));
    world.run_for(Duration::from_secs(60));
    assert_eq!(late(&world), 0);
    for (number, tally) in tallies.iter().enumerate() {
        let tally = tally.borrow();
        assert_eq!((&tally.error, tally.done), (&None, true), "{number}");
        assert_eq!((tally.gaps, tally.wrong), (Bytes::ZERO, Bytes::ZERO), "{number}");
    }
}

/// Each writer adds to what the log has to write, whose contracts grow while streams are open. In sweeps
/// what asks for more waits for the next cycle, which is longer than the log waits by bounds: its writes
/// come later, and a sync is stated to take as much longer.
#[test]
fn in_sweeps_writers_are_opened_one_after_another_and_syncs_keep_their_time() {
    let mut world = pool(config(sweeps("3932ms")));
    let stated = world.node.sync_time_max(None).unwrap();
    let mut tallies = Vec::new();
    let mut longest = Duration::ZERO;
    for number in 0..8 {
        let name = format!("w{number}");
        create(&mut world, &name, SIZE);
        let contract = contract(200_000, Bytes::kib(256), Bytes::kib(256));
        let opens = Op::StreamOpen {
            volume: name.clone(),
            mode: Mode::Write,
            contract,
            start: Bytes::ZERO,
        };
        // What cannot be decided for the moment can be soon.
        let begun = world.now();
        let Reply::Stream { stream, .. } = (loop {
            match world.call(opens.clone()) {
                Ok(reply) => break reply,
                Err(Error::LogRefused { refusal, .. }) if refusal.undecided => {
                    assert!(world.now() - begun < Duration::from_secs(12), "writer {number}");
                    world.run_for(Duration::from_millis(500));
                }
                Err(error) => panic!("writer {number}: {error}"),
            }
        }) else {
            panic!("a stream")
        };
        let nothing = Ok(Reply::Durable { upto: Bytes::ZERO });
        assert_eq!(world.call(Op::StreamClose { stream }), nothing);
        let recorder = Recorder::new(&name, 5, contract, Bytes::kib(50), SIZE);
        tallies.push(recorder.tally());
        world.add(recorder);
        world.run_for(Duration::from_millis(100));
        let asked = world.now();
        assert_eq!(world.call(Op::Sync), Ok(Reply::Done));
        longest = longest.max(world.now() - asked);
    }
    world.add(Greedy::new("v", SIZE, Bytes::kib(64), 8, 1));
    for _ in 0..60 {
        let asked = world.now();
        assert_eq!(world.call(Op::Sync), Ok(Reply::Done));
        longest = longest.max(world.now() - asked);
        world.run_for(Duration::from_millis(700));
    }
    assert!(longest <= stated, "{longest} of {stated}");
    assert_eq!(late(&world), 0);
    for (number, tally) in tallies.iter().enumerate() {
        let tally = tally.borrow();
        assert_eq!((&tally.error, tally.gaps), (&None, Bytes::ZERO), "{number}");
    }
}

/// Windows are made for the time after which a block is there: a pool goes to sweeps, from
/// them and to those of another cycle only when no stream is open. Volumes' contracts go with it.
#[test]
fn a_pool_goes_to_sweeps_and_back_when_no_stream_is_open_and_keeps_volumes_contracts() {
    let mut world = pool(config(Policy::SLACK));
    assert_eq!(world.call(rate("v")), Ok(Reply::Done));
    let stream = |world: &mut World| match world.call(open("v")) {
        Ok(Reply::Stream { stream, window }) => (stream, window),
        other => panic!("{other:?}"),
    };
    let mut windows = Vec::new();
    let all = [sweeps("3s"), sweeps("5s"), Policy::SLACK, sweeps("4s")];
    for to in all {
        let (open, window) = stream(&mut world);
        windows.push(window / Bytes::kib(256));
        let refused = set(&mut world, to).unwrap_err();
        let Error::PolicyRefused { streams, refusal: None, .. } = &refused else { panic!() };
        assert_eq!(*streams, [open]);
        assert!(refused.to_string().contains("windows of stream"), "{refused}");
        assert_eq!(world.call(Op::StreamClose { stream: open }), Ok(Reply::Done));
        assert_eq!(set(&mut world, to), Ok(Reply::Done));
        world.run_for(Duration::from_secs(5));
    }
    windows.push(stream(&mut world).1 / Bytes::kib(256));
    // By bounds three; else what passes in two cycles, at 0.66 s for a block, and two more.
    assert_eq!(windows, [3, 12, 18, 3, 15]);
    assert_eq!(late(&world), 0);
}
