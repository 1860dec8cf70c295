//! Profiles travel as text: in a pool's label and in files that people edit.

use disk::{
    BusOrder, BusPlan, BusShare, Cost, Kind, Line, LinearProfile, Model, Profile, Spread,
    check_buses,
};
use units::{Bytes, Direction, Duration, Rate};

fn linear() -> Profile {
    Profile {
        source: "measured".into(),
        confidence: "maximum of 400 accesses and a half".into(),
        capacity: Bytes::mib(64),
        flush: Duration::from_micros(1_234),
        kind: Kind::Linear(LinearProfile {
            read: Line { fixed: Duration::from_micros(90), rate: Rate::per_second(777_777_777) },
            write: Line { fixed: Duration::from_nanos(123_457), rate: Rate::per_second(1 << 50) },
            depth: 32,
            latency: Duration::from_millis(2),
            spread: None,
        }),
        bus: None,
    }
}

/// As it is measured: four sizes of each direction.
fn spread() -> Profile {
    let cost = |kib| Cost {
        size: Bytes::kib(kib),
        mean: Duration::from_nanos(123_456_789),
        deviation: Duration::from_nanos(1_234_567),
        most: Duration::from_nanos(1_234_567_890),
    };
    let costs = || [4, 64, 256, 1_024].map(cost).to_vec();
    let Kind::Linear(line) = linear().kind else { unreachable!() };
    let spread = Some(Spread { read: costs(), write: costs() });
    Profile { kind: Kind::Linear(LinearProfile { spread, ..line }), ..linear() }
}

fn shared() -> Profile {
    let plan = BusPlan {
        depth: 32,
        order: BusOrder::Bursts,
        burst: Bytes::kib(48),
        lost: Duration::from_micros(7),
        ..BusPlan::new("usb-1.2", Rate::per_second(380_000_001), 3)
    };
    Profile { bus: Some(BusShare::new(plan).unwrap()), ..linear() }
}

/// Of a drive that orders what it has.
fn held() -> Profile {
    Profile::of(&Model::named("laptop-4200").unwrap()).with_queue(8)
}

#[test]
fn a_profile_comes_back_from_its_text_unchanged() {
    let model = Model::named("laptop-4200").unwrap();
    let small = model.scaled(Bytes::mib(300)).unwrap();
    for profile in [Profile::of(&model), Profile::of(&small), held(), linear(), shared(), spread()]
    {
        let text = profile.to_toml();
        assert_eq!(Profile::parse(&text).unwrap(), profile, "{text}");
        assert!(text.len() < 4096, "a label has room for 4 KiB; this is {}", text.len());
    }
}

#[test]
fn a_spoiled_profile_says_what_to_do() {
    let hard = Profile::of(&Model::named("laptop-4200").unwrap()).to_toml();
    let bus = shared().to_toml();
    let cases = [
        (&linear().to_toml(), "depth = 32", "depth = 0", "linear.depth is 0; give 1 to 1024"),
        (&linear().to_toml(), "\"linear\"", "\"tape\"", "give \"hard-disk\" or \"linear\""),
        (&linear().to_toml(), "\"linear\"", "\"hard-disk\"", "give the section [hard-disk]"),
        (&linear().to_toml(), "777.777777MB/s", "0MB/s", "give at least 292 B/s"),
        (&linear().to_toml(), "64MiB", "100B", "give a whole number of sectors"),
        (&hard, "start = 0\n", "start = 1\n", "the first zone starts at 0"),
        (&hard, "cylinders = 3884", "cylinders = 0", "needs cylinders and a rate"),
        (&held().to_toml(), "queue = 8", "queue = 0", "hard-disk.queue is 0; give 1 to 1024"),
        (&hard, "rotation = ", "turn = ", "unknown field `turn`"),
        (&bus, "380.000001MB/s", "0MB/s", "give at least 292 B/s"),
        (&bus, "380.000001MB/s", "18446744073709551616B/s", "18446744073709551616B/s"),
        (&bus, "380.000001MB/s", "300B/s", "wait for more than an hour"),
        (&bus, "disks = 3", "disks = 1", "a disk that is alone needs no bus"),
        (&bus, "disks = 3", "disks = 4294967295", "give 2 to 1024"),
        (&bus, "depth = 32\norder", "depth = 0\norder", "bus.depth is 0; give 1 to 1024"),
        (&bus, "\"bursts\"", "\"priority\"", "give \"commands\" or \"bursts\""),
        (&bus, "48KiB", "1B", "give 512 B to"),
        (&bus, "usb-1.2", "usb 1", "give 1 to 64 letters"),
    ];
    for (text, good, bad, says) in cases {
        assert!(text.contains(good), "{good} in {text}");
        let error = Profile::parse(&text.replace(good, bad)).unwrap_err().to_string();
        assert!(error.contains(says), "{bad}: {error}");
    }
}

/// What the disks of one pool say of their buses has to agree, or the wait that each of them
/// counts is not the one that it meets.
#[test]
fn disks_of_a_pool_say_one_thing_of_their_bus() {
    let on = |change: fn(&mut BusPlan)| {
        let mut plan = shared().bus.unwrap().plan().clone();
        change(&mut plan);
        Profile { bus: Some(BusShare::new(plan).unwrap()), ..linear() }
    };
    let wrong = |profiles: &[Profile]| match check_buses(profiles.iter()) {
        Ok(()) => String::new(),
        Err((disk, error)) => format!("{disk}: {error}"),
    };
    let same = on(|_| ());
    assert_eq!(wrong(&[same.clone(), linear(), same.clone(), same.clone()]), "");
    let quicker = on(|bus| bus.rate = Rate::per_second(400_000_000));
    assert!(wrong(&[linear(), same.clone(), quicker]).starts_with("1: "));
    let other = on(|bus| bus.name = "other".into());
    assert_eq!(wrong(&[same.clone(), other]), "");
    let four = [(); 4].map(|()| same.clone());
    assert!(wrong(&four).contains("`disks = 4` or more"), "{}", wrong(&four));
    let shallow = on(|bus| bus.depth = 31);
    assert!(wrong(&[shallow]).contains("`depth = 32` or more"));
}

#[test]
fn what_commands_mostly_cost_is_that_of_the_next_larger_size_and_not_told_on_a_bus() {
    let profile = spread();
    let of = |profile: &Profile, kib| {
        profile.spread(Bytes::kib(kib), Direction::Read).map(|cost| cost.size)
    };
    assert_eq!(of(&profile, 5), Some(Bytes::kib(64)));
    assert_eq!(of(&profile, 1_024), Some(Bytes::MIB));
    assert_eq!(of(&profile, 1_025), None, "nothing is known of longer ones");
    assert_eq!(of(&linear(), 4), None);
    let shared = Profile { bus: shared().bus, ..profile.clone() };
    assert_eq!(of(&shared, 4), None, "what it waits for others is in no measurement");
    for (good, bad) in [
        ("size = \"64KiB\"", "size = \"4KiB\""),
        ("deviation = \"1.234567ms\"", "deviation = \"2s\""),
        ("mean = \"123.456789ms\"", "mean = \"0ns\""),
    ] {
        let text = profile.to_toml();
        assert!(text.contains(good), "{text}");
        let error = Profile::parse(&text.replacen(good, bad, 1)).unwrap_err().to_string();
        assert!(error.contains("measured.costs"), "{error}");
    }
    // What others wrote there for people is let through.
    let text = format!("{}\n[measured]\nnote = 7\n", linear().to_toml());
    assert_eq!(Profile::parse(&text).unwrap(), linear());
}
