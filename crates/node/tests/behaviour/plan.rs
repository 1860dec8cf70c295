//! Plans: what would fit, without asking a disk for anything.

use crate::driver::*;
use node::{
    ContractRoom, DiskIndex, Error, Mode, Op, Placement, PlanWork, Planner, Reply, Variation,
    Wanted, Whose, Wish, Zone,
};
use units::{Bytes, Duration, Rate};

fn wanted(count: u64, what: Whose) -> Wanted {
    Wanted { name: "cameras".into(), count, what, placement: Placement::default() }
}

fn readers(count: u64) -> Wanted {
    wanted(count, Whose::Stream { mode: Some(Mode::Read), contract: usual() })
}

fn planner(disks: usize) -> Planner {
    let Setup { config, profiles, .. } = Setup::new(disks);
    Planner::new(config, profiles, Duration::ZERO).expect("a pool")
}

/// Blocks that are longer than any run are for volumes on one disk: a plan with such blocks is compared with what
/// can be, and over several disks it is refused with what to do.
#[test]
fn blocks_longer_than_a_run_are_planned_on_one_disk() {
    let long = contract(Rate::per_second(4 << 20), Bytes::mib(32), Bytes::ZERO);
    let list = [wanted(1, Whose::Stream { mode: Some(Mode::Read), contract: long })];
    let rows = planner(1).compare(&list).unwrap();
    let has = |variation| rows.iter().any(|row| row.variation == variation);
    assert!(has(Variation::Asked) && has(Variation::Block(Bytes::mib(16))));
    assert!(!has(Variation::Disks(2)) && !has(Variation::Disks(4)));
    let refused = planner(2).compare(&list).unwrap_err();
    assert!(
        refused.to_string().contains("at most 16 MiB on a volume over several disks"),
        "{refused}"
    );
    let on_one = Placement { disks: vec![DISK], ..Placement::default() };
    let list = list.map(|one| Wanted { placement: on_one.clone(), ..one });
    assert!(planner(2).compare(&list).is_ok());
    // No ring has such blocks, so that there is none to be named.
    let writer = Whose::Stream { mode: Some(Mode::Write), contract: long };
    assert_eq!(planner(1).plan(&[wanted(1, writer)]).unwrap().kinds[0].ring, Bytes::ZERO);
}

/// Four streams of 10.625 ms in 62.5 fit beside the reserve of 20, which is longer than a command
/// in the way; a fifth does not, and the plan says why, as admission does.
#[test]
fn a_plan_is_what_admission_says() {
    let planner = planner(1);
    let plan = planner.plan(&[readers(2)]).unwrap();
    assert_eq!(plan.kinds[0].admitted, 2);
    assert_eq!((plan.kinds[0].more, plan.stops), (Some(2), None));
    assert_eq!((plan.kinds[0].window, plan.windows), (BLOCK * 3, BLOCK * 6));
    assert_eq!(plan.memory, Bytes::mib(28) - Bytes::kib(68), "what was free before");
    let disk = &plan.disks[0];
    assert_eq!(disk.utilisation_ppm, 170_000 * 2 + 10_313);
    assert_eq!((disk.disk, disk.reserve), (DISK, ms(20)));
    // 62.5 - 2 * 10.625. One of the log's in the way is in the reserve, of which none is beside it.
    assert_eq!(disk.slack, Duration::from_micros(62_500) - cost(BLOCK) * 2);
    assert_eq!(disk.critical, Some(Duration::from_micros(62_500)));
    let counts: Vec<(Option<usize>, bool, u64)> =
        disk.tasks.iter().map(|task| (task.kind, task.fits, task.count)).collect();
    assert_eq!(counts, [(None, true, 1), (None, true, 1), (Some(0), true, 2)]);
    let plan = planner.plan(&[readers(2), readers(5)]).unwrap();
    let stop = plan.stops.expect("seven do not fit");
    assert_eq!((stop.kind, stop.number), (1, 3));
    assert_eq!([plan.kinds[0].admitted, plan.kinds[1].admitted], [2, 2]);
    assert_eq!(plan.kinds[0].more, None);
    assert!(plan.disks[0].tasks.iter().any(|task| !task.fits && task.kind == Some(1)));
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(4), Bytes::mib(1), 1);
    for _ in 0..4 {
        driver.reader("film", usual());
    }
    let told = driver.ask(open("film", Mode::Read, usual(), Bytes::ZERO));
    assert_eq!(told, Err(stop.error), "the same figures");
    let Err(Error::Refused(refusal)) = told else { panic!("{told:?}") };
    assert_eq!(refusal.utilisation_ppm, 170_000 * 5 + 10_313);
    let short = cost(BLOCK) * 5 + ms(20) - Duration::from_micros(62_500);
    assert_eq!(refusal.deadline, Some((Duration::from_micros(62_500), short)));
    let at = |rate: u64| contract(Rate::per_second(rate), BLOCK, Bytes::ZERO);
    let best = refusal.rate_max.get();
    // Five of 10.625 and the reserve, in the second period of the others: 64 KiB in 73.125 ms.
    assert_eq!(best, Rate::of(BLOCK, cost(BLOCK) * 5 + ms(20)).get());
    let more = driver.ask(open("film", Mode::Read, at(best + 1), Bytes::ZERO));
    assert!(is_refused(&more));
    driver.reader("film", at(best));
    // A planner of the pool as it is has no more to give.
    let Ok(Reply::Planner(planner)) = driver.at_once(Op::Plan) else { panic!("no planner") };
    let plan = planner.plan(&[readers(1)]).unwrap();
    assert_eq!(plan.kinds[0].admitted, 0);
    assert_eq!(plan.memory, Bytes::mib(28) - Bytes::kib(68) - BLOCK * 15);
}

/// Memory ends a plan, too, and services are in it; what makes no sense is said.
#[test]
fn memory_and_services_count_in_plans() {
    let planner = planner(2);
    let long = contract(RATE / 16, BLOCK, Bytes::mib(12));
    let what = Whose::Stream { mode: None, contract: long };
    let plan = planner.plan(&[wanted(3, what)]).unwrap();
    let window = Bytes::mib(12) + BLOCK * 18;
    assert_eq!((plan.kinds[0].admitted, plan.kinds[0].window), (2, window));
    let free = Bytes::mib(28) - Bytes::kib(68) - window * 2;
    assert_eq!(plan.stops.unwrap().error, Error::NoMemory { asked: window, free });
    assert_eq!((plan.windows, plan.memory), (window * 2, free + window * 2));
    let latency = in_time(BLOCK, ms(100), ms(200));
    let plan = planner.plan(&[wanted(2, Whose::Service(latency))]).unwrap();
    assert_eq!(plan.kinds[0].admitted, 2);
    assert_eq!(plan.disks[1].utilisation_ppm, 53_125 * 2 + 10_313);
    let best_effort = Whose::Service(node::Service::default());
    let plan = planner.plan(&[wanted(9, best_effort)]).unwrap();
    assert_eq!((plan.kinds[0].admitted, plan.kinds[0].more), (9, None), "nothing is promised");
    let told = planner.plan(&[wanted(10_001, best_effort)]);
    assert!(matches!(told, Err(Error::Invalid { what: "plan", .. })), "{told:?}");
    let mut far = readers(1);
    far.placement.disks = vec![DiskIndex(2)];
    assert_eq!(planner.plan(&[far]), Err(Error::NoSuchDisk { disk: DiskIndex(2), disks: 2 }));
    let nothing = Whose::Service(at_rate(Rate::ZERO, BLOCK, ms(10)));
    assert!(planner.plan(&[wanted(1, nothing)]).is_err());
}

/// What best effort gets is estimated: all of the disk in reads of 64 KiB, less what the
/// contracts are likely to take.
#[test]
fn the_estimate_of_best_effort_is_what_is_left() {
    let planner = planner(1);
    let rate = |count| planner.plan(&[readers(count)]).unwrap().disks[0].best_effort.get();
    let alone = Rate::of(BLOCK, cost(BLOCK)).get();
    // The log has 5,000 and 5,313 parts per million, a reader 170,000.
    assert_eq!(rate(0), (u128::from(alone) * (1_000_000 - 10_313) / 1_000_000) as u64);
    assert_eq!(rate(2), (u128::from(alone) * (1_000_000 - 350_313) / 1_000_000) as u64);
}

/// The dearer direction counts where none is said.
#[test]
fn a_plan_without_a_direction_holds_for_both() {
    let Setup { config, mut profiles, .. } = Setup::new(1);
    let disk::Kind::Linear(line) = &mut profiles[0].kind else { unreachable!() };
    line.write.fixed = ms(15);
    let planner = Planner::new(config, profiles, Duration::ZERO).unwrap();
    let ppm = |mode| {
        let plan = planner.plan(&[wanted(1, Whose::Stream { mode, contract: usual() })]).unwrap();
        plan.disks[0].utilisation_ppm
    };
    assert_eq!(ppm(None), ppm(Some(Mode::Write)));
    assert_eq!(ppm(Some(Mode::Write)) - ppm(Some(Mode::Read)), 5_000_000 / 62_500 * 1_000);
}

/// The same list in other ways: each has a row of its own where it differs, with what fits.
#[test]
fn other_blocks_zones_and_disks_are_compared() {
    let planner = planner(2);
    let rows = planner.compare(&[readers(10)]).unwrap();
    let row = |variation| {
        let row = rows.iter().find(|row| row.variation == variation);
        row.map(|row| (row.admitted, row.asked))
    };
    assert_eq!(rows[0].variation, Variation::Asked);
    // Every other block of each is a disk's: 125 ms, less 20, hold nine of 10.625.
    assert_eq!(row(Variation::Asked), Some((9, 10)));
    // 62.5 ms, less 20, hold four.
    assert_eq!(row(Variation::Apart), Some((4, 10)), "of five on the first");
    assert_eq!(row(Variation::Block(BLOCK)), None, "as it was asked");
    assert_eq!(row(Variation::Disks(2)), None);
    assert_eq!(row(Variation::Disks(1)), Some((4, 10)));
    // 250 ms hold them all, but 28 MiB of memory eight windows of 51 blocks.
    assert_eq!(row(Variation::Disks(4)), Some((8, 10)));
    assert_eq!(row(Variation::Zone(Zone::Outer)), Some((9, 10)));
    assert!(row(Variation::Block(Bytes::mib(1))).is_some());
    for row in &rows {
        assert!(row.slack >= ms(20), "{row:?}");
        assert!(row.best_effort > Rate::ZERO && row.utilisation_ppm < 1_000_000);
    }
    let four = rows.iter().find(|row| row.variation == Variation::Disks(4)).unwrap();
    // 4 + 1 + 15 * 3 + 1 blocks each; 42,500 parts per million each, on each disk.
    assert_eq!((four.windows, four.utilisation_ppm), (BLOCK * 51 * 8, 42_500 * 8 + 10_313));
    let (apart, list) = planner.vary(&[readers(5)], Variation::Apart);
    assert_eq!(list.iter().map(|one| one.count).collect::<Vec<_>>(), [3, 2]);
    assert_eq!(list[1].placement.disks, [DiskIndex(1)]);
    assert_eq!(apart.disks(), 2);
    let (three, list) = planner.vary(&[readers(5)], Variation::Disks(3));
    assert_eq!((three.disks(), list[0].placement.disks.len()), (3, 3));
    let (one, list) = planner.vary(&[readers(5)], Variation::Disks(1));
    assert_eq!((one.disks(), list[0].placement.disks.clone()), (2, vec![DISK]));
}

/// The terms of a contract, before it is asked for, are what it has afterwards; of what could
/// never be there are none.
#[test]
fn terms_are_what_a_contract_takes() {
    let mut driver = Setup::new(2).open();
    driver.recorded("film", Bytes::mib(4), Bytes::mib(1), 1);
    let terms = |driver: &Driver, wish| driver.node.terms("film", &wish);
    let told = terms(&driver, Wish::Stream(Mode::Read, usual())).unwrap();
    assert_eq!(told.window, BLOCK * 19);
    assert_eq!(told.shares, [(DISK, 85_000), (DiskIndex(1), 85_000)]);
    let stream = driver.reader("film", usual());
    let shown = driver.node.stream(stream).unwrap();
    assert_eq!((shown.window, shown.shares), (told.window, told.shares));
    let rate = at_rate(Rate::per_second(1 << 20), BLOCK, ms(500));
    let told = terms(&driver, Wish::Service(rate)).unwrap();
    // Half of it on each disk: 4 blocks in half a second, and one on its way.
    assert_eq!(told.window, (BLOCK + Bytes::kib(4)) * 10);
    assert_eq!(told.shares, [(DISK, 85_000), (DiskIndex(1), 85_000)]);
    driver.done(service("film", rate));
    let shown = driver.node.volume("film").unwrap();
    assert_eq!((shown.memory, shown.shares), (told.window, told.shares));
    let impossible = contract(RATE * 100, BLOCK, Bytes::ZERO);
    assert_eq!(terms(&driver, Wish::Stream(Mode::Read, impossible)), None);
    assert_eq!(terms(&driver, Wish::Service(in_time(BLOCK, ms(5), ms(50)))), None);
    assert_eq!(terms(&driver, Wish::Service(in_time(BLOCK, ms(50), ms(5)))), None);
    assert_eq!(driver.node.terms("none", &Wish::Service(rate)), None);
}

/// Where a disk has but one of a volume's extents, its turn comes more seldom than that of the
/// others, and the window is made for it; and what has its answer in a part of its period is
/// counted by the period.
#[test]
fn terms_are_those_of_the_disk_that_comes_most_seldom_and_of_the_period() {
    for order in [[0, 1], [1, 0]] {
        let mut driver = Setup::new(2).open();
        let disks = order.map(DiskIndex).to_vec();
        let placement = Placement { disks, ..Placement::default() };
        driver.done(create("film", Bytes::mib(3), placement));
        driver.write("film", 1, Bytes::ZERO, Bytes::MIB);
        let mut extents = driver.node.volume("film").unwrap().extents;
        extents.sort();
        assert_eq!(extents, [1, 2]);
        // 3 + 1 + 15 * 2 + 1 blocks.
        let wish = Wish::Stream(Mode::Read, usual());
        let told = driver.node.terms("film", &wish).unwrap();
        assert_eq!(told.window, BLOCK * 35);
        let stream = driver.reader("film", usual());
        let shown = driver.node.stream(stream).unwrap();
        assert_eq!((shown.window, shown.shares), (told.window, told.shares));
        let latency = in_time(BLOCK, ms(100), ms(200));
        let told = driver.node.terms("film", &Wish::Service(latency)).unwrap();
        assert_eq!(told.shares, [(DISK, 53_125), (DiskIndex(1), 53_125)]);
        driver.done(service("film", latency));
        let shown = driver.node.volume("film").unwrap();
        assert_eq!((shown.memory, shown.shares), (told.window, told.shares));
    }
}

/// What a writer would take is what writing costs.
#[test]
fn terms_of_a_writer_are_those_of_writing() {
    for (mode, ppm) in [(Mode::Read, 170_000), (Mode::Write, 250_000)] {
        let mut setup = Setup::new(1);
        let disk::Kind::Linear(line) = &mut setup.profiles[0].kind else { unreachable!() };
        line.write.fixed = ms(15);
        let mut driver = setup.open();
        driver.volume("film", Bytes::mib(4));
        let told = driver.node.terms("film", &Wish::Stream(mode, usual())).unwrap();
        assert_eq!(told.shares, [(DISK, ppm)]);
        let (stream, window) = driver.stream(open("film", mode, usual(), Bytes::ZERO));
        let shown = driver.node.stream(stream).unwrap();
        assert_eq!((shown.shares, window), (told.shares, told.window));
    }
}

/// What is left of a disk's time is the same in a status as in the plan of the same contracts;
/// a row of a comparison has that of the fullest disk.
#[test]
fn the_slack_of_a_status_is_that_of_the_plan_and_the_least_counts() {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(4), Bytes::mib(1), 1);
    for count in 0..3 {
        let plan = planner(1).plan(&[readers(count)]).unwrap();
        assert_eq!(driver.node.status(driver.now).disks[0].slack, plan.disks[0].slack);
        driver.reader("film", usual());
    }
    let mut first = readers(2);
    first.placement.disks = vec![DISK];
    let list = [first];
    let plan = planner(2).plan(&list).unwrap();
    let slack: Vec<Duration> = plan.disks.iter().map(|disk| disk.slack).collect();
    assert!(slack[0] < slack[1]);
    assert_eq!(planner(2).compare(&list).unwrap()[0].slack, slack[0]);
}

/// What a command spends in the device's pipeline is taken from the time to its answer.
#[test]
fn the_time_in_a_pipeline_is_taken_from_what_can_be_promised() {
    let mut setup = Setup::new(1);
    let disk::Kind::Linear(line) = &mut setup.profiles[0].kind else { unreachable!() };
    line.latency = ms(7);
    let mut driver = setup.open();
    driver.volume("film", Bytes::mib(4));
    let least = cost(BLOCK) + ms(7);
    let terms = |within| driver.node.terms("film", &Wish::Service(in_time(BLOCK, within, ms(200))));
    assert!(terms(least).is_some());
    assert_eq!(terms(least - Duration::from_nanos(1)), None);
}

/// A film in blocks of 8 MiB and answers within 60 ms fit only where the blocks are in chunks: a
/// plan says so as admission does, whichever of them is named first.
#[test]
fn a_plan_counts_streams_in_chunks_beside_answers_in_time() {
    let Setup { mut config, profiles, .. } = Setup::new(1);
    config.memory = Bytes::mib(160);
    let planner = Planner::new(config, profiles, Duration::ZERO).expect("a pool");
    let each_second = contract(Rate::per_second(8 << 20), Bytes::mib(8), Bytes::ZERO);
    let film =
        |count| wanted(count, Whose::Stream { mode: Some(Mode::Read), contract: each_second });
    let answers = |within| {
        let promise = in_time(Bytes::kib(4), ms(within), Duration::from_secs(1));
        wanted(1, Whose::Service(promise))
    };
    for list in [[film(1), answers(60)], [answers(60), film(1)]] {
        assert_eq!(planner.plan(&list).unwrap().stops, None);
    }
    let plan = planner.plan(&[film(1), answers(20)]).unwrap();
    assert_eq!(plan.stops.expect("10 ms, and a chunk").kind, 1);
    // Nothing is in chunks where nobody wants answers.
    let alone = planner.plan(&[film(1)]).unwrap();
    assert_eq!(alone.disks[0].utilisation_ppm, 90_000 + 10_313);
}

/// Sweeps hold more of a fast disk with heads, at the price of memory and of the time until a
/// stream plays; each in the block that the pool would choose, whatever the list names.
#[test]
fn a_plan_shows_what_the_pool_would_hold_by_bounds_and_by_sweeps() {
    let model = disk::Model::named("hdd-7200-20tb").unwrap();
    let (memory, commit_interval) = (Bytes::GIB * 8, Duration::from_secs(12));
    let config = node::Config { memory, commit_interval, ..Setup::new(1).config };
    let profiles = vec![disk::Profile::of(&model)];
    let planner = Planner::new(config, profiles, Duration::ZERO).expect("a pool");
    let contract = node::Contract { rate: Rate::per_second(2_000_000), ..usual() };
    let list = [wanted(100, Whose::Stream { mode: Some(Mode::Read), contract })];
    let lasts = contract.rate.time_for(Bytes::mib(16));
    assert_eq!(planner.cycles(&list, &[Bytes::mib(16)]), [lasts]);
    let swept = policies::SWEEPS.with_value("cycle", lasts.as_nanos()).unwrap();
    let modes = planner.modes(&list, &[node::Policy::SLACK, swept]).unwrap();
    let [bounds, sweeps] = modes.as_slice() else { panic!("{modes:?}") };
    assert_eq!((bounds.policy, sweeps.policy, sweeps.asked), (planner.policy(), swept, 100));
    assert_eq!(sweeps.blocks, [Some(Bytes::mib(16))]);
    // What passes in two cycles, one block under way, and one with the program.
    assert_eq!(sweeps.windows, Bytes::mib(16) * 4 * sweeps.admitted);
    assert_eq!(sweeps.begins, contract.rate.time_for(Bytes::mib(16) * 4));
    assert!(sweeps.admitted > bounds.admitted, "{modes:?}");
    // No more than passes on the slowest of its tracks.
    let disk::Kind::HardDisk(drive) = &disk::Profile::of(&model).kind else { panic!("heads") };
    let slowest = drive.zones.iter().map(|zone| zone.rate.get()).min().expect("zones");
    assert!(sweeps.admitted * 2_000_000 < slowest, "{modes:?}");
    assert!(sweeps.windows > bounds.windows && sweeps.begins > bounds.begins, "{modes:?}");
}

/// A list is planned in chunks where answers in time are on it that need them, as admission does; in
/// no other case, although more of it might fit.
#[test]
fn a_plan_is_in_chunks_only_for_answers_in_time() {
    let planner = planner(1);
    let film = contract(Rate::per_second(4 << 20), Bytes::mib(4), Bytes::ZERO);
    let films = wanted(1, Whose::Stream { mode: Some(Mode::Read), contract: film });
    let answers = |count, within| {
        wanted(count, Whose::Service(in_time(Bytes::kib(4), ms(within), Duration::from_secs(1))))
    };
    let used = |list: &[Wanted]| planner.plan(list).unwrap().disks[0].utilisation_ppm;
    // 50 ms for 4 MiB, which are in the way of whoever has 62.5.
    let list = [films.clone(), readers(2)];
    let admitted = |list: &[Wanted]| {
        let plan = planner.plan(list).unwrap();
        (plan.kinds[1].admitted, plan.stops.is_some())
    };
    assert_eq!(admitted(&list), (1, true));
    let with = |count| [list[0].clone(), list[1].clone(), answers(count, 500)];
    assert_eq!(admitted(&with(0)), (1, true), "none is nobody's");
    assert_eq!(admitted(&with(1)), (2, false));
    // What fits whole stays whole: 10 ms and some in a second for the answers.
    let more = used(&[films.clone(), answers(1, 500)]) - used(&[films]);
    assert!((10_000..10_100).contains(&more), "{more}");
}

/// Comparing costs nothing where there is nothing to compare; and how often blocks come.
#[test]
fn what_makes_no_difference_has_no_row_and_cycles_are_those_of_blocks() {
    let planner = planner(1);
    let rows = planner.compare(&[readers(3)]).unwrap();
    assert!(rows.iter().all(|row| row.variation != Variation::Apart), "there is one disk");
    let two = self::planner(2);
    let cycles = two.cycles(&[readers(1)], &[Bytes::MIB, BLOCK]);
    // Every other block is a disk's.
    assert_eq!(cycles, [RATE.time_for(Bytes::mib(2)), RATE.time_for(BLOCK * 2)]);
}

/// From when on a list plays is told for what is admitted of it, and not for what is refused.
#[test]
fn a_mode_says_when_what_is_admitted_begins() {
    let planner = planner(1);
    let policies = [node::Policy::SLACK];
    let begins = |list: &[Wanted]| planner.modes(list, &policies).unwrap()[0].begins;
    let long = contract(RATE / 16, BLOCK, Bytes::mib(40));
    let long = wanted(1, Whose::Stream { mode: Some(Mode::Read), contract: long });
    assert_eq!(begins(&[readers(1), long]), begins(&[readers(1)]), "there is no memory for it");
}

/// What deliveries take is not charged, because it does not fit on another disk; where it is
/// charged, there is as little room. A plan for the pool has no more than the pool gives.
#[test]
fn a_plan_for_a_pool_has_as_many_as_fit_with_what_was_measured_of_the_host() {
    for is_charged in [false, true] {
        let mut driver = Setup::new(2).with(|config| config.memory = Bytes::mib(64)).open();
        let on = |disk| Placement { disks: vec![DiskIndex(disk)], ..Placement::default() };
        for (name, disk) in [("film", 0), ("far", 1)] {
            driver.done(create(name, Bytes::MIB, on(disk)));
        }
        let far = |within| service("far", in_time(BLOCK, ms(within), ms(300)));
        if !is_charged {
            assert!((15..300).any(|within| driver.ask(far(within)).is_ok()));
        }
        let told = driver.at_once(Op::Delivery { takes: ms(9) });
        assert_eq!(told.is_ok(), is_charged, "{told:?}");
        let reader = Wanted { placement: on(0), ..readers(9) };
        let Ok(Reply::Planner(planner)) = driver.at_once(Op::Plan) else { panic!("no planner") };
        let plan = planner.plan(std::slice::from_ref(&reader)).unwrap();
        let mut opened = 0;
        let refused = loop {
            match driver.ask(open("film", Mode::Read, usual(), Bytes::ZERO)) {
                Ok(_) => opened += 1,
                Err(refused) => break refused,
            }
        };
        assert_eq!(plan.kinds[0].admitted, opened);
        assert_eq!(plan.stops.map(|stop| stop.error), Some(refused.clone()));
        assert_eq!(matches!(refused, Error::BeyondHost { .. }), !is_charged, "{refused}");
        let Ok(Reply::Planner(planner)) = driver.at_once(Op::Plan) else { panic!("no planner") };
        assert_eq!(planner.plan(&[reader]).unwrap().kinds[0].admitted, 0);
    }
}

/// A volume under contract has memory set aside, and all of them together a quarter of the pool's: a plan
/// counts what its list would have beside what they have already. Before, it counted none.
#[test]
fn services_of_a_plan_have_the_memory_that_the_pool_sets_aside() {
    let seldom = in_time(Bytes::MIB, ms(20_000), ms(30_000));
    let list = [wanted(9, Whose::Service(seldom))];
    let plan = planner(1).plan(&list).unwrap();
    assert_eq!(plan.kinds[0].admitted, 4, "of 32 MiB a quarter, each 2 MiB");
    assert_eq!((plan.windows, plan.memory), (Bytes::ZERO, Bytes::mib(28) - Bytes::kib(68)));
    let more = planner(1).plan(&[wanted(1, Whose::Service(seldom))]).unwrap();
    assert_eq!(more.kinds[0].more, Some(3));
    let mut driver = Setup::new(1).open();
    let name = |number: u64| format!("table{number}");
    for number in 0..9 {
        driver.done(create(&name(number), Bytes::MIB, Placement::default()));
    }
    driver.done(service(&name(0), seldom));
    let Ok(Reply::Planner(planner)) = driver.at_once(Op::Plan) else { panic!("no planner") };
    let plan = planner.plan(&list).unwrap();
    let mut given = 1;
    let refused = loop {
        match driver.ask(service(&name(given), seldom)) {
            Ok(_) => given += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!((plan.kinds[0].admitted, given), (3, 4));
    assert_eq!(plan.stops.map(|stop| stop.error), Some(refused));
    // What they have no window has.
    let long = contract(RATE / 16, BLOCK, Bytes::mib(22));
    let window = wanted(1, Whose::Stream { mode: Some(Mode::Read), contract: long });
    let fits = |list: &[Wanted]| planner.plan(list).unwrap().stops.is_none();
    let [services] = list;
    let services = Wanted { count: 3, ..services };
    let (of_window, of_services) = (std::slice::from_ref(&window), std::slice::from_ref(&services));
    assert!(fits(of_window) && fits(of_services));
    assert!(!fits(&[services, window]));
}

/// Before, a list took as long as it took, of whoever had been asked: some hundred kinds, of each of
/// which is counted how many more would fit, half a minute.
#[test]
fn a_plan_ends_when_its_work_is_over_or_nobody_wants_it() {
    let planner = planner(1);
    let many: Vec<Wanted> = (1..100)
        .map(|number| {
            let rate = Rate::per_second(20_000 + number);
            let contract = contract(rate, Bytes::kib(64), Bytes::ZERO);
            wanted(1, Whose::Stream { mode: Some(Mode::Read), contract })
        })
        .collect();
    let whole = PlanWork::within(u64::MAX, &|| true);
    let plan = planner.plan_within(&many, &whole).unwrap();
    assert_eq!(plan, planner.plan(&many).unwrap());
    assert!(!whole.is_over());
    let takes = u64::MAX - whole.left();
    let ends = |most: u64| {
        let tries = std::cell::Cell::new(0);
        let counts = || {
            tries.set(tries.get() + 1);
            true
        };
        let work = PlanWork::within(most, &counts);
        let told = planner.plan_within(&many, &work);
        (told.is_ok(), work.is_over(), tries.get())
    };
    let (is_told, is_over, tries) = ends(takes + 1);
    assert!(is_told && !is_over);
    assert_eq!(ends(takes), (false, true, tries), "with its very last");
    let (is_told, is_over, few) = ends(takes / 100);
    assert!(!is_told && is_over && few < tries / 10, "{few} of {tries}");
    // So do comparisons, of which each way is none by itself that could not be.
    for most in [1, 50] {
        let work = PlanWork::within(most, &|| true);
        assert!(planner.compare_within(&many, &work).is_err() && work.is_over());
        let work = PlanWork::within(most, &|| true);
        let modes = planner.modes_within(&many, &[node::Policy::SLACK], &work);
        assert!(modes.is_err() && work.is_over());
    }
    let left = std::cell::Cell::new(10);
    let goes = || {
        left.set(left.get() - 1);
        left.get() > 0
    };
    assert!(planner.plan_within(&many, &PlanWork::within(u64::MAX, &goes)).is_err());
    assert_eq!(left.get(), 0, "and no further look");
}

/// Writers of thin volumes that would be written together have one task, and each a window.
#[test]
fn writers_that_are_written_together_are_planned_so() {
    let camera = contract(Rate::per_second(4 << 20), Bytes::MIB, Bytes::ZERO);
    let what = Whose::Stream { mode: Some(Mode::Write), contract: camera };
    let placement = Placement { disks: vec![DISK], thin: true, ..Placement::default() };
    let plan = planner(1).plan(&[Wanted { placement, ..wanted(40, what) }]).unwrap();
    let (kind, free) = (&plan.kinds[0], Bytes::mib(28) - Bytes::kib(68));
    assert!(kind.admitted > 1 && kind.admitted == free / kind.window, "{kind:?}");
    assert_eq!((plan.windows, plan.memory), (kind.window * kind.admitted, free));
    let own = plan.disks[0].tasks.iter().filter(|task| task.kind == Some(0) && task.fits);
    assert_eq!(own.map(|task| task.count).collect::<Vec<_>>(), [1]);
    let stop = plan.stops.expect("forty have no memory");
    assert_eq!(stop.number, kind.admitted + 1);
    assert!(matches!(stop.error, Error::NoMemory { .. }), "{}", stop.error);
}

/// A volume that grows may not take more by that than somebody says, of any disk's time and of memory;
/// what it takes is what was said beforehand that it would.
#[test]
fn a_volume_grows_within_what_its_contracts_may_take() {
    let mut driver = Setup::new(2).open();
    driver.recorded("film", Bytes::MIB, Bytes::MIB, 1);
    let stream = driver.reader("film", usual());
    let says_so = |driver: &Driver| {
        let status = driver.node.stream(stream).unwrap();
        let terms = driver.node.terms("film", &Wish::Stream(Mode::Read, usual())).unwrap();
        assert_eq!((terms.window, terms.shares), (status.window, status.shares));
        driver.node.volume("film").unwrap().size
    };
    assert_eq!(says_so(&driver), Bytes::MIB);
    let grow = |shares: [u64; 2], memory: Bytes| {
        let (streams, handles, shares) = (vec![stream], Vec::new(), shares.to_vec());
        let rooms = vec![ContractRoom { streams, service: false, handles, shares, memory }];
        let (name, size) = ("film".into(), Bytes::mib(4));
        Op::VolumeResizeWithin { name, size, may_cut: false, rooms }
    };
    let told = driver.ask(grow([1_000_000, 1_000], Bytes::MAX));
    let (second, most) = (DiskIndex(1), 1_000);
    assert!(
        matches!(told, Err(Error::BeyondShare { room: 0, disk, most: told, .. })
            if (disk, told) == (second, most)),
        "{told:?}"
    );
    let told = driver.ask(grow([1_000_000; 2], BLOCK));
    assert!(matches!(told, Err(Error::BeyondMemory { room: 0, .. })), "{told:?}");
    assert_eq!(says_so(&driver), Bytes::MIB);
    driver.done(grow([1_000_000; 2], Bytes::MAX));
    assert_eq!(says_so(&driver), Bytes::mib(4));
}
