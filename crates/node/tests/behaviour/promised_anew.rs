//! What was promised is decided again: when a pool is served again, when a disk is found on a bus,
//! when answers take longer to arrive, when a handle is closed, when another policy is chosen.

use crate::driver::*;
use disk::BusPlan;
use node::{
    Contract, DiskIndex, Error, Mode, Op, Placement, Policy, Reply, Service, Status, limits,
};
use units::{Bytes, Duration, Rate};

const LEN: Bytes = Bytes::kib(64);

fn utilisation(driver: &Driver) -> u64 {
    driver.node.status(driver.now).disks[0].utilisation_ppm
}

/// A handle has a part of the disk for as long as it is open; to close it again is no error.
#[test]
fn a_handle_gives_back_what_it_had_of_the_disk() {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::MIB, Bytes::MIB, 1);
    let handles = |driver: &Driver| driver.node.volume("film").unwrap().handles.len();
    let before = utilisation(&driver);
    let service = in_time(LEN, ms(200), ms(400));
    let opened = driver.at_once(Op::HandleOpen { volume: "film".into(), service });
    let Ok(Reply::Handle { handle }) = opened else { panic!("{opened:?}") };
    assert!(utilisation(&driver) > before + 20_000);
    assert_eq!(handles(&driver), 1);
    for _ in 0..2 {
        driver.done(Op::HandleClose { handle });
        assert_eq!((utilisation(&driver), handles(&driver)), (before, 0));
    }
}

/// Two volumes have answers in time; the disk is slower when the pool is served again, and only
/// the older one's contract fits. The other is told why, and has its own again a while after the
/// first has given its own up.
#[test]
fn a_kept_service_that_does_not_fit_waits_until_it_does() {
    let mut driver = Setup::new(1).open();
    let given = in_time(LEN, ms(250), ms(250));
    for name in ["old", "new"] {
        driver.recorded(name, Bytes::MIB, Bytes::MIB, 1);
        driver.done(service(name, given));
    }
    let slower = profile(Bytes::mib(256), FIXED * 10, FLUSH);
    let mut driver = driver.after_a_power_cut_on(slower);
    let service_of = |driver: &Driver, name: &str| driver.node.volume(name).unwrap().service;
    assert_eq!(service_of(&driver, "old"), given, "from the first request on");
    assert_eq!(service_of(&driver, "new"), Service::default());
    let kept_out = driver.node.volume("new").unwrap().kept_out.expect("it was given one");
    assert_eq!(kept_out.service, given);
    assert!(matches!(*kept_out.why, Error::Refused(_)), "{:?}", kept_out.why);
    let all: Vec<_> = driver.node.kept_out().map(|(name, _)| name).collect();
    assert_eq!(all, ["new"]);
    driver.run(Duration::from_secs(5));
    assert_eq!(driver.node.kept_out().count(), 1, "nothing was given back");

    driver.done(service("old", Service::default()));
    let due = driver.node.next_timer().expect("it is tried again");
    assert!(due <= driver.now + limits::KEPT_OUT_PAUSE, "{due:?}");
    driver.run(Duration::from_secs(3));
    assert_eq!(service_of(&driver, "new"), given);
    assert_eq!(driver.node.kept_out().count(), 0);
}

/// Disks that share a bus wait for it, and every contract counts that; they do no longer when they
/// are taken off.
#[test]
fn a_bus_is_counted_while_disks_share_it() {
    let mut driver = Setup::new(2).open();
    driver.recorded("film", Bytes::mib(2), Bytes::mib(2), 1);
    driver.reader("film", usual());
    let before = utilisation(&driver);
    let disks = vec![DiskIndex(0), DiskIndex(1)];
    let plan = BusPlan::new("shelf", Rate::per_second(200 << 20), 2);
    let on = |bus| Op::BusSet { disks: disks.clone(), bus };
    driver.done(on(Some(Box::new(plan))));
    let bus = |driver: &Driver| driver.node.status(driver.now).disks[1].bus.clone();
    assert!(bus(&driver).is_some() && utilisation(&driver) > before);
    let impossible = open("film", Mode::Read, contract(SPEED, BLOCK, Bytes::ZERO), Bytes::ZERO);
    match driver.at_once(impossible) {
        Err(Error::Refused(refusal)) => assert_eq!(refusal.bus.as_deref(), bus(&driver).as_ref()),
        other => panic!("{other:?}"),
    }
    driver.done(on(None));
    assert_eq!((bus(&driver), utilisation(&driver)), (None, before));
    let none = driver.at_once(Op::BusSet { disks: vec![DiskIndex(2)], bus: None });
    assert_eq!(none, Err(Error::NoSuchDisk { disk: DiskIndex(2), disks: 2 }));
    assert_eq!((bus(&driver), utilisation(&driver)), (None, before));
}

/// How long answers take is a part of the host's lateness from then on, more or less than before.
#[test]
fn what_deliveries_take_is_counted_anew_each_time() {
    let mut driver = Setup::new(1).with(|config| config.host_latency = ms(3)).open();
    driver.recorded("film", Bytes::MIB, Bytes::MIB, 1);
    for takes in [ms(2), ms(5), ms(1)] {
        driver.done(Op::Delivery { takes });
        let counted = (driver.node.delivery(), driver.node.config().host_latency);
        assert_eq!(counted, (takes, ms(3) + takes));
    }
    // A contract that would be late for it is in the way, and all is as it was.
    let tightest = |within| driver.ask(service("film", in_time(LEN, ms(within), ms(300)))).is_ok();
    assert!((15..300).any(tightest));
    let told = driver.at_once(Op::Delivery { takes: ms(9) });
    assert!(matches!(told, Err(Error::DeliveryRefused { .. })), "{told:?}");
    assert_eq!((driver.node.delivery(), driver.node.config().host_latency), (ms(1), ms(4)));
}

/// As long as what deliveries take does not fit, no contract is given or widened that does not fit
/// with it, in any of the ways to ask for one; less is given, and all of it once that is counted.
#[test]
fn beside_deliveries_that_do_not_fit_no_contract_is_given_or_widened() {
    let mut driver = Setup::new(2).open();
    for (name, disk) in [("film", 0), ("other", 0), ("far", 1)] {
        let placement = Placement { disks: vec![DiskIndex(disk)], ..Placement::default() };
        driver.done(create(name, Bytes::MIB, placement));
    }
    let wide = |volume| service(volume, in_time(Bytes::kib(4), ms(5_000), ms(5_000)));
    let stream = driver.reader("other", usual());
    let film = |within, every| service("film", in_time(LEN, ms(within), ms(every)));
    let within = (15..300).find(|&within| driver.ask(film(within, 300)).is_ok()).unwrap();
    driver.done(wide("other"));
    driver.done(service("other", Service::default()));
    let told = driver.at_once(Op::Delivery { takes: ms(9) });
    assert!(matches!(told, Err(Error::DeliveryRefused { .. })), "{told:?}");
    let before = driver.node.status(driver.now);
    let less = Contract { rate: usual().rate / 2, ..usual() };
    let more = Contract { rate: usual().rate / 2 * 3, ..usual() };
    let asked = [
        wide("other"),
        Op::HandleOpen { volume: "other".into(), service: in_time(LEN, ms(5_000), ms(5_000)) },
        open("other", Mode::Read, less, Bytes::ZERO),
        Op::StreamChange { stream, contract: more },
        film(within, 299),
    ];
    for op in asked {
        let what = format!("{op:?}");
        let Err(error) = driver.at_once(op) else { panic!("{what}") };
        let Error::BeyondHost { host, .. } = &error else { panic!("{what}: {error}") };
        assert_eq!((host.measured.delivery, host.charged.delivery), (ms(9), ms(0)));
        assert_eq!((host.streams, host.volumes), (0, 1));
        let said = error.to_string();
        let why = "take 9 ms from the pool to their programs, of which 0 ns is charged, because \
                   the services of 1 volume";
        assert!(said.contains(why), "{said}");
    }
    let after = driver.node.status(driver.now);
    let used = |status: &Status| [0, 1].map(|disk: usize| status.disks[disk].utilisation_ppm);
    assert_eq!(used(&after), used(&before), "nothing was changed");
    // What is on another disk fits, and less fits anywhere.
    driver.done(wide("far"));
    driver.at_once(Op::StreamChange { stream, contract: less }).unwrap();
    driver.done(film(within, 600));
    assert!(driver.node.status(driver.now).delivery_refused.is_some());
    // Who was in the way goes: it is counted at once, and there is room.
    driver.done(service("film", Service::default()));
    let status = driver.node.status(driver.now);
    assert_eq!((status.delivery, status.delivery_refused), (ms(9), None));
    driver.done(wide("other"));
}

/// A volume that grows onto another disk while a stream reads it asks for less of the first one:
/// that is not held to what deliveries take, which does not fit there.
#[test]
fn beside_deliveries_that_do_not_fit_a_volume_grows_where_it_asks_for_less() {
    let mut driver = Setup::new(2).open();
    let on = |disks: &[u16]| Placement {
        disks: disks.iter().map(|&disk| DiskIndex(disk)).collect(),
        ..Placement::default()
    };
    driver.done(create("film", Bytes::MIB, on(&[0])));
    driver.done(create("wide", Bytes::MIB, on(&[0, 1])));
    driver.reader("wide", usual());
    let film = |within| service("film", in_time(LEN, ms(within), ms(300)));
    assert!((15..300).any(|within| driver.ask(film(within)).is_ok()));
    // Its second task there goes beside the first one until that leaves.
    let told = driver.at_once(Op::Delivery { takes: ms(9) });
    assert!(matches!(told, Err(Error::DeliveryRefused { .. })), "{told:?}");
    let told = driver.ask(resize("wide", Bytes::mib(2)));
    assert!(told.is_ok(), "{told:?}");
}

/// A policy that keeps no contracts is chosen only where there are none; whoever is in the way is
/// named.
#[test]
fn a_policy_that_keeps_nothing_is_refused_beside_contracts() {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::MIB, Bytes::MIB, 1);
    let to = |policy: Policy| Op::PolicySet { policy: policy.into(), keep: true };
    let stream = driver.reader("film", usual());
    driver.done(service("film", in_time(LEN, ms(200), ms(400))));
    let refused = |streams: Vec<_>| Error::PolicyRefused {
        policy: Policy::EDF.into(),
        streams,
        volumes: vec!["film".into()],
        refusal: None,
    };
    assert_eq!(driver.at_once(to(Policy::EDF)), Err(refused(vec![stream])));
    driver.close(stream).unwrap();
    assert_eq!(driver.at_once(to(Policy::EDF)), Err(refused(vec![])));
    assert_eq!(driver.node.config().policy, Policy::SLACK);
    driver.done(service("film", Service::default()));
    driver.done(to(Policy::EDF));
    assert_eq!(driver.node.config().policy, Policy::EDF);
    driver.done(to(Policy::SLACK));
}

/// Of several services that do not fit each is tried again, one after the other, when a stream has
/// given back what they need; somebody is woken for it.
#[test]
fn all_kept_services_that_do_not_fit_are_tried_again_one_after_the_other() {
    let mut driver = Setup::new(1).open();
    for (name, every) in [("old", 210), ("one", 350), ("two", 350)] {
        driver.recorded(name, Bytes::MIB, Bytes::MIB, 1);
        driver.done(service(name, in_time(LEN, ms(every), ms(every))));
    }
    let slower = profile(Bytes::mib(256), FIXED * 10, FLUSH);
    let mut driver = driver.after_a_power_cut_on(slower);
    let kept_out = |driver: &Driver| driver.node.kept_out().count();
    assert_eq!(kept_out(&driver), 2);
    // A stream has taken what the first gave back before they are tried.
    driver.done(service("old", Service::default()));
    let rate = Rate::per_second(312_000);
    let stream = driver.reader("old", contract(rate, LEN, Bytes::ZERO));
    driver.run(Duration::from_secs(10));
    assert_eq!(kept_out(&driver), 2);
    assert_eq!(driver.close(stream), Ok(Reply::Done));
    driver.run(limits::KEPT_OUT_PAUSE);
    assert_eq!(kept_out(&driver), 1, "one after the other");
    driver.run(limits::KEPT_OUT_PAUSE);
    assert_eq!(kept_out(&driver), 0);
}

/// Beside streams a policy that keeps them all is taken; under one that does not keep all of them,
/// those are named that do not fit.
#[test]
fn another_policy_is_taken_where_all_streams_fit_under_it_and_else_names_those_that_do_not() {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::MIB, Bytes::MIB, 1);
    let to = |policy: Policy| Op::PolicySet { policy: policy.into(), keep: true };
    let first = driver.reader("film", contract(RATE, BLOCK, Bytes::ZERO));
    driver.done(to(Policy::DELTA_L));
    driver.done(to(Policy::SLACK));
    let mut streams = vec![first];
    while let Ok(Reply::Stream { stream, .. }) =
        driver.ask(open("film", Mode::Read, contract(RATE / 2, BLOCK, Bytes::ZERO), Bytes::ZERO))
    {
        streams.push(stream);
    }
    let Err(Error::PolicyRefused { streams: named, volumes, refusal, .. }) =
        driver.at_once(to(Policy::DELTA_L))
    else {
        panic!("it keeps fewer than the exact analysis admits")
    };
    assert!(streams.ends_with(&named) && !named.is_empty(), "{named:?}, the last that came");
    assert!(volumes.is_empty() && refusal.is_some());
    // Without them it is taken.
    for stream in named {
        assert_eq!(driver.close(stream), Ok(Reply::Done));
    }
    driver.done(to(Policy::DELTA_L));
}

/// A service that is kept out since answers take long to arrive is tried again when they do not.
#[test]
fn a_service_that_is_kept_out_for_deliveries_is_had_when_they_take_less() {
    let mut driver = Setup::new(1).open();
    for (name, every) in [("old", 250), ("new", 210)] {
        driver.recorded(name, Bytes::MIB, Bytes::MIB, 1);
        driver.done(service(name, in_time(LEN, ms(every), ms(every))));
    }
    let mut driver = driver.after_a_power_cut_on(profile(Bytes::mib(256), FIXED * 10, FLUSH));
    let kept_out = |driver: &Driver| driver.node.kept_out().count();
    assert_eq!(kept_out(&driver), 1);
    driver.done(Op::Delivery { takes: ms(30) });
    driver.done(service("old", Service::default()));
    driver.run(Duration::from_secs(5));
    assert_eq!(kept_out(&driver), 1, "30 ms less are not enough");
    driver.done(Op::Delivery { takes: Duration::ZERO });
    driver.run(Duration::from_secs(5));
    assert_eq!(kept_out(&driver), 0);
}

/// A drive that holds many commands at once, under a policy that serves in cycles: commits are as far
/// apart as its log fits into a cycle, and the pool can be opened.
#[test]
fn under_a_policy_of_cycles_commits_are_as_far_apart_as_they_fit() {
    let policy = policies::TIME_CYCLE;
    let sync_time = |depth| {
        let mut setup = Setup::new(1).with(|config| config.policy = policy);
        let disk::Kind::Linear(line) = &mut setup.profiles[0].kind else { panic!("a line") };
        line.depth = depth;
        setup.open().node.sync_time_max(None)
    };
    assert!(sync_time(32) > sync_time(1));
}

/// A service that is kept with its volume, and refused only because of what deliveries take, is
/// tried again when they take less, though nothing else was given back.
#[test]
fn a_kept_service_is_tried_again_when_deliveries_take_less_than_was_owed() {
    let mut driver = Setup::new(1).open();
    for (name, within) in [("old", 210), ("one", 350), ("two", 350)] {
        driver.recorded(name, Bytes::MIB, Bytes::MIB, 1);
        driver.done(service(name, in_time(LEN, ms(within), ms(within))));
    }
    let slower = profile(Bytes::mib(256), FIXED * 10, FLUSH);
    let mut driver = driver.after_a_power_cut_on(slower);
    let kept_out = |driver: &Driver| driver.node.kept_out().count();
    assert_eq!(kept_out(&driver), 2);
    let told = driver.at_once(Op::Delivery { takes: ms(200) });
    assert!(matches!(told, Err(Error::DeliveryRefused { .. })), "{told:?}");
    // There is room for another one, and not with what deliveries take.
    driver.done(service("old", in_time(LEN, ms(210), ms(2_100))));
    driver.run(limits::KEPT_OUT_PAUSE * 3);
    assert_eq!(kept_out(&driver), 2);
    assert!(driver.node.status(driver.now).delivery_refused.is_some());
    driver.done(Op::Delivery { takes: ms(0) });
    driver.run(limits::KEPT_OUT_PAUSE * 3);
    assert!(kept_out(&driver) < 2);
}

/// Services that are kept with their volumes do not all fit as long as a slow host is charged for;
/// they are tried again when it is found to need less.
#[test]
fn a_kept_service_is_tried_again_when_the_host_is_found_to_be_quicker() {
    let mut driver = Setup::new(1).open();
    driver.recorded("plain", Bytes::mib(4), Bytes::mib(4), 1);
    let given = in_time(LEN, ms(200), ms(200));
    let volumes = (0..).map(|n| format!("v{n}")).take_while(|name| {
        driver.volume(name, Bytes::MIB);
        driver.ask(service(name, given)).is_ok()
    });
    assert!(volumes.count() > 5);
    let mut driver = driver.after_a_power_cut_with_gaps_of(ms(5));
    let kept_out = |driver: &Driver| driver.node.kept_out().count();
    assert!(kept_out(&driver) > 0);
    let gap = |driver: &Driver| driver.node.status(driver.now).disks[0].gaps.stated;
    assert_eq!(gap(&driver), ms(5));
    // Others keep the disk busy until enough was measured.
    let mut asked = Vec::new();
    while gap(&driver) == ms(5) {
        while asked.len() < 4 {
            asked.push(driver.begin(read("plain", Bytes::ZERO, Bytes::kib(4))));
        }
        assert!(driver.step(units::Instant::MAX));
        asked.retain(|&ticket| match driver.answer(ticket) {
            Some(Ok(Reply::Data { bytes: span, .. })) => {
                driver.done(Op::Release { span });
                false
            }
            Some(other) => panic!("{other:?}"),
            None => true,
        });
    }
    driver.run(limits::KEPT_OUT_PAUSE * 10);
    assert_eq!(kept_out(&driver), 0);
}

/// A writer leaves while a commit runs: the log's contracts become less when that has ended, and
/// what did not fit beside them until then does.
#[test]
fn deliveries_are_tried_again_when_the_logs_contracts_become_less_at_a_commits_end() {
    let mut driver = Setup::new(1).with(|config| config.memory = Bytes::mib(600)).open();
    let bursts = contract(Rate::per_second(1 << 20), Bytes::MIB, Bytes::mib(64));
    let writers = ["a", "b", "c", "d"].map(|name| {
        driver.volume(name, Bytes::mib(16));
        driver.writer(name, bursts)
    });
    // What is due by when the log's writes are, as much as there is time for.
    let mut number = 0;
    for len in [Bytes::MIB, Bytes::kib(4)] {
        loop {
            number += 1;
            let name = format!("v{number}");
            driver.volume(&name, Bytes::MIB);
            let within = in_time(len, ms(660), Duration::from_secs(30));
            if driver.ask(service(&name, within)).is_err() {
                break;
            }
        }
    }
    let mut steps = (1..=100).map(|step| Duration::from_micros(100) * step);
    let takes = steps.find(|&takes| driver.at_once(Op::Delivery { takes }).is_err());
    let takes = takes.expect("there is not so much time left");
    driver.write("v1", 1, Bytes::ZERO, Bytes::kib(64));
    let (sync, from) = (driver.begin(Op::Sync), driver.journal.len());
    // A commit begins with a flush.
    while !driver.since(from).iter().any(|done| done.action == node::DiskAction::Flush) {
        assert!(driver.step(driver.now + Duration::from_secs(60)));
    }
    for writer in writers {
        assert!(driver.at_once(Op::StreamClose { stream: writer }).is_ok());
    }
    assert!(!driver.is_answered(sync), "the commit runs");
    assert!(driver.node.status(driver.now).delivery_refused.is_some());
    assert_eq!(driver.wait(sync), Ok(Reply::Done));
    let status = driver.node.status(driver.now);
    assert_eq!((status.delivery, status.delivery_refused), (takes, None));
}
