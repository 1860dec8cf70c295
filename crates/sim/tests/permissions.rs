//! Who may do what with a volume: every verb, by its owner, a member of its group,
//! anybody else and root, under every one of the 512 modes, on the node that serves pools.

use crate::common;
use crate::common::{MEMORY, config, contract, create, drive, world};
use node::{
    Access, Act, Error, Event, Mode, Op, Ownership, Placement, Policy, Region, Reply, Service,
    Ticket, Who, WriteRange,
};
use sim::World;
use units::{Bytes, Duration, Rate};

const SIZE: Bytes = Bytes::mib(1);
const ALICE: u32 = 1000;
const FILM: u32 = 100;

fn alice() -> Who {
    Who::user(ALICE, 99, [FILM, 7])
}

/// Everybody that there is for a volume of Alice's in group `FILM`, and which three of
/// its nine bits are for them; none for root.
fn everybody() -> [(&'static str, Who, Option<u32>); 5] {
    [
        ("owner", alice(), Some(6)),
        ("group, by his first", Who::user(1001, FILM, []), Some(3)),
        ("group, by another", Who::user(1002, 99, [5, FILM]), Some(3)),
        ("other", Who::user(1003, 99, [7, 5]), Some(0)),
        ("root", Who::root(), None),
    ]
}

fn pool() -> World {
    world(config(Policy::SLACK), 1, Bytes::mib(64), drive)
}

fn volume_of_alice(world: &mut World, name: &str, mode: u16) {
    let access = Access { uid: Some(ALICE), gid: Some(FILM), mode: Some(mode) };
    let (name, placement) = (name.into(), Placement::default());
    let made = world.call(Op::VolumeCreate { name, size: SIZE, placement, access });
    assert!(matches!(made, Ok(Reply::Made { .. })));
}

fn give(world: &mut World, access: Access) {
    let op = Op::VolumeAccess { name: "v".into(), access };
    assert_eq!(world.call(op), Ok(Reply::Done));
}

fn ownership(world: &World, name: &str) -> Ownership {
    let volumes = world.node.status(world.now()).volumes;
    volumes.into_iter().find(|volume| volume.name == name).unwrap().ownership
}

/// Asks for everything that names a volume: what it is called, what it takes, and how it
/// was answered. What it opens it closes, and what it removes it makes again.
fn ask_all(world: &mut World, who: &Who, mode: u16) -> Vec<(&'static str, Act, Option<Error>)> {
    let (volume, start) = (String::from("v"), Bytes::ZERO);
    let contract = contract(100_000, Bytes::kib(256), Bytes::ZERO);
    let mut answers = Vec::new();
    let mut ask = |world: &mut World, what, act, op| {
        let answer = world.call_as(who.clone(), op);
        answers.push((what, act, answer.clone().err()));
        answer.ok()
    };
    for (way, act) in [(Mode::Read, Act::Read), (Mode::Write, Act::Write)] {
        let rate = Rate::per_second(100_000);
        ask(world, "block", act, Op::Block { volume: volume.clone(), mode: way, rate });
        let volume = volume.clone();
        let open = Op::StreamOpen { volume: volume.clone(), mode: way, contract, start };
        let region = Region(0);
        let window = Op::WindowOpen { volume, mode: way, contract, start, region };
        for (what, open) in [("stream open", open), ("window open", window)] {
            if let Some(Reply::Stream { stream, .. }) = ask(world, what, act, open) {
                world.call_as(who.clone(), Op::StreamClose { stream }).unwrap();
            }
        }
    }
    let len = Bytes::kib(4);
    let read = Op::Read { volume: volume.clone(), offset: start, len, priority: None };
    if let Some(Reply::Data { bytes: span, .. }) = ask(world, "read", Act::Read, read) {
        world.call(Op::Release { span }).unwrap();
    }
    let Ok(Reply::Room { room: span }) = world.call_as(who.clone(), Op::Room { len, target: None })
    else {
        panic!("memory is anybody's")
    };
    let range = WriteRange::new(start, len);
    let write = Op::Write { volume: volume.clone(), range, span, priority: None };
    ask(world, "write", Act::Write, write);
    let name = || volume.clone();
    let resize = Op::VolumeResize { name: name(), size: SIZE, may_cut: false };
    ask(world, "resize", Act::Write, resize);
    let service = Op::VolumeService { name: name(), service: Service::default() };
    ask(world, "service", Act::Own, service);
    let access = Access { mode: Some(mode), ..Access::default() };
    ask(world, "chmod", Act::Own, Op::VolumeAccess { name: name(), access });
    if ask(
        world,
        "delete",
        Act::Own,
        Op::VolumeDelete { name: name(), only: None, keep_directory: false },
    )
    .is_some()
    {
        volume_of_alice(world, &volume, mode);
    }
    answers
}

/// What is expected, by another way than the node's: from the digits that `ls` shows.
fn expected(mode: u16, shift: Option<u32>, act: Act) -> Option<Error> {
    let letters: Vec<bool> = (0..9).map(|i| mode & (0o400 >> i) != 0).collect();
    let shift = shift?;
    let mine = &letters[(6 - shift as usize)..][..2];
    let owner = shift == 6;
    let allowed = match act {
        Act::Read => mine[0],
        Act::Write => mine[1],
        Act::Own => owner,
    };
    match allowed {
        true => None,
        false if owner || mine[0] || mine[1] => Some(Error::NotPermitted { name: "v".into(), act }),
        false => Some(Error::NoSuchVolume { name: "v".into() }),
    }
}

#[test]
fn every_verb_is_for_whom_the_mode_says() {
    let mut world = pool();
    volume_of_alice(&mut world, "v", 0);
    let free = world.node.status(world.now()).memory;
    let (mut refused, mut done) = (0, 0);
    for mode in 0..=Ownership::MODE_MAX {
        give(&mut world, Access { mode: Some(mode), ..Access::default() });
        for (called, who, shift) in everybody() {
            for (what, act, answer) in ask_all(&mut world, &who, mode) {
                let wanted = expected(mode, shift, act);
                assert_eq!(answer, wanted, "{what} by {called} with mode {mode:o}");
                *if wanted.is_some() { &mut refused } else { &mut done } += 1;
            }
            let sees = shift.is_none_or(|shift| shift == 6 || mode >> shift & 4 != 0);
            let is_seen = node::permission::sees(&who, ownership(&world, "v"));
            assert_eq!(is_seen, sees, "listed for {called} with mode {mode:o}");
        }
    }
    assert_eq!(refused + done, 512 * 5 * 12);
    assert!(refused > 10_000 && done > 10_000, "{refused} and {done}");
    assert_eq!(world.node.status(world.now()).memory, free, "what was refused holds no memory");
}

#[test]
fn a_new_volume_is_its_makers_and_closed() {
    let mut world = pool();
    let placement = Placement::default();
    let make = |name: &str, access| {
        let (name, placement) = (name.into(), placement.clone());
        Op::VolumeCreate { name, size: SIZE, placement, access }
    };
    let own = Access::default();
    assert!(world.call_as(alice(), make("hers", own)).is_ok());
    assert_eq!(ownership(&world, "hers"), Ownership { uid: ALICE, gid: 99, mode: 0o600 });
    let open = Access { gid: Some(FILM), mode: Some(0o640), ..own };
    assert!(world.call_as(alice(), make("film", open)).is_ok());
    assert_eq!(ownership(&world, "film"), Ownership { uid: ALICE, gid: FILM, mode: 0o640 });
    create(&mut world, "roots", SIZE);
    assert_eq!(ownership(&world, "roots"), Ownership::ROOT);
    for access in [Access { uid: Some(0), ..own }, Access { gid: Some(8), ..own }] {
        let made = world.call_as(alice(), make("no", access));
        assert!(matches!(made, Err(Error::OnlyRoot { .. })), "{made:?}");
    }
    let odd = Access { mode: Some(0o4755), ..own };
    let made = world.call_as(alice(), make("no", odd));
    assert!(matches!(made, Err(Error::Invalid { what: "mode", .. })), "{made:?}");
    assert!(world.node.status(world.now()).volumes.iter().all(|volume| volume.name != "no"));
}

#[test]
fn only_root_gives_a_volume_to_another_user_and_its_owner_only_to_his_own_groups() {
    let mut world = pool();
    volume_of_alice(&mut world, "v", 0o666);
    let none = Access::default();
    let (uid, gid) =
        (|uid| Access { uid: Some(uid), ..none }, |gid| Access { gid: Some(gid), ..none });
    let mut ask = |who: &Who, access| {
        let op = Op::VolumeAccess { name: "v".into(), access };
        (world.call_as(who.clone(), op).err(), ownership(&world, "v"))
    };
    let not_mine = Some(Error::NotPermitted { name: "v".into(), act: Act::Own });
    let is_roots = |error: Option<Error>| matches!(error, Some(Error::OnlyRoot { .. }));
    let stranger = Who::user(1003, 8, []);
    assert_eq!(ask(&stranger, uid(1003)).0, not_mine, "takes it for himself");
    assert_eq!(ask(&stranger, gid(8)).0, not_mine);
    assert!(is_roots(ask(&alice(), uid(1003)).0), "gives it away, and what it counts as");
    assert!(is_roots(ask(&alice(), gid(8)).0));
    let before = Ownership { uid: ALICE, gid: FILM, mode: 0o666 };
    assert_eq!(ask(&alice(), uid(ALICE)), (None, before), "hers already");
    assert_eq!(ask(&alice(), gid(7)), (None, Ownership { gid: 7, ..before }));
    // A group that it is in already may stay, also where she has left it.
    let left = Who::user(ALICE, 99, []);
    let with_mode = Access { gid: Some(7), mode: Some(0o600), ..none };
    let after = Ownership { gid: 7, mode: 0o600, ..before };
    assert_eq!(ask(&left, with_mode), (None, after));
    let theirs = Ownership { uid: 1003, gid: 8, mode: 0o600 };
    let both = Access { uid: Some(1003), gid: Some(8), mode: None };
    assert_eq!(ask(&Who::root(), both), (None, theirs));
    assert_eq!(ask(&alice(), gid(7)).0, Some(Error::NoSuchVolume { name: "v".into() }));
}

#[test]
fn what_concerns_the_pool_is_roots() {
    let mut world = pool();
    let profile = Box::new(disk::Profile::of(&common::model(Bytes::mib(64))));
    let disk = node::DiskIndex(0);
    let ops = [
        Op::ProfileSet { disk, profile },
        Op::Reprofile { disk },
        Op::HostLatency { latency: Duration::from_secs(9) },
        Op::Shutdown,
    ];
    for op in ops {
        let answer = world.call_as(alice(), op.clone());
        assert!(matches!(answer, Err(Error::OnlyRoot { .. })), "{op:?}: {answer:?}");
    }
    create(&mut world, "still-served", SIZE);
}

/// A stream is whose connection has it: closing a volume does not end it.
#[test]
fn what_is_open_stays_open_and_nothing_new_is_opened() {
    let mut world = pool();
    volume_of_alice(&mut world, "v", 0o666);
    let other = Who::user(1003, 99, []);
    let contract = contract(100_000, Bytes::kib(256), Bytes::ZERO);
    let (volume, mode, start) = (String::from("v"), Mode::Write, Bytes::ZERO);
    let open = Op::StreamOpen { volume, mode, contract, start };
    let Ok(Reply::Stream { stream, .. }) = world.call_as(other.clone(), open.clone()) else {
        panic!("it is open to all")
    };
    give(&mut world, Access { mode: Some(0o600), ..Access::default() });
    let room = world.call_as(other.clone(), Op::StreamRoom { stream, len_max: Bytes::kib(4) });
    assert!(matches!(room, Ok(Reply::Room { .. })), "{room:?}");
    let len = Bytes::kib(4);
    assert_eq!(world.call_as(other.clone(), Op::StreamWrite { stream, len }), Ok(Reply::Done));
    let closed = world.call_as(other.clone(), Op::StreamClose { stream });
    assert_eq!(closed, Ok(Reply::Durable { upto: len }));
    let again = world.call_as(other, open);
    assert_eq!(again, Err(Error::NoSuchVolume { name: "v".into() }));
}

#[test]
fn what_is_recorded_is_cut_only_where_somebody_says_so() {
    let mut world = pool();
    create(&mut world, "v", Bytes::mib(3));
    common::fill(&mut world, "v", 1, Bytes::mib(2));
    let resize =
        |kib, may_cut| Op::VolumeResize { name: "v".into(), size: Bytes::kib(kib), may_cut };
    let error = world.call(resize(2044, false)).unwrap_err();
    let (recorded, size) = (Bytes::mib(2), Bytes::kib(2044));
    assert_eq!(error, Error::WouldCut { name: "v".into(), recorded, size });
    assert!(error.to_string().contains("2MiB recorded"), "{error}");
    assert_eq!(world.node.status(world.now()).volumes[0].size, Bytes::mib(3), "as it was");
    assert_eq!(world.call(resize(2048, false)), Ok(Reply::Done), "nothing is lost");
    assert_eq!(world.call(resize(2044, true)), Ok(Reply::Done));
    assert_eq!(world.node.status(world.now()).volumes[0].length, Bytes::kib(2044));
}

/// What a smaller volume promises may not fit on its fewer disks, and what was cut cannot be
/// had back: its contract goes first.
#[test]
fn a_volume_under_contract_is_not_made_smaller() {
    let mut world = pool();
    create(&mut world, "v", Bytes::mib(8));
    common::fill(&mut world, "v", 1, Bytes::mib(8));
    let serve = |world: &mut World, service| {
        let done = world.call(Op::VolumeService { name: "v".into(), service });
        assert_eq!(done, Ok(Reply::Done));
    };
    let resize = |mib| Op::VolumeResize { name: "v".into(), size: Bytes::mib(mib), may_cut: true };
    let (rate, block) = (units::Rate::per_second(100_000), Bytes::kib(64));
    let period = units::Duration::from_secs(1);
    serve(&mut world, node::Service::Rate { rate, block, period });
    let error = world.call(resize(1)).unwrap_err();
    assert!(matches!(error, Error::UnderContract { .. }), "{error}");
    assert_eq!(world.call(resize(9)), Ok(Reply::Done));
    let volume = world.node.status(world.now()).volumes[0].clone();
    assert_eq!((volume.size, volume.length), (Bytes::mib(9), Bytes::mib(8)), "nothing is cut");
    serve(&mut world, node::Service::default());
    assert_eq!(world.call(resize(1)), Ok(Reply::Done));
}

/// A read that waits for memory is held to the volume that it was permitted on, not to
/// another one that has its name by then.
#[test]
fn a_read_that_waits_does_not_come_to_another_volume_of_the_same_name() {
    let mut world = pool();
    volume_of_alice(&mut world, "v", 0o600);
    let mut rooms = Vec::new();
    let ask = |world: &mut World, n: u64, who: Who, op| {
        let (ticket, now) = (Ticket(1 << 40 | n), world.now());
        world.node.handle(now, Event::Request { ticket, who, op, arrived: now });
        std::iter::from_fn(|| world.node.poll_output()).find(|output| output.ticket == ticket)
    };
    for n in 0..=MEMORY / Bytes::MIB {
        match ask(&mut world, n, alice(), Op::Room { len: Bytes::MIB, target: None })
            .map(|output| output.result)
        {
            Some(Ok(Reply::Room { room: span })) => rooms.push(span),
            Some(other) => panic!("{other:?}"),
            None => break, // this one waits
        }
    }
    let read = Op::Read { volume: "v".into(), offset: Bytes::ZERO, len: SIZE, priority: None };
    assert!(ask(&mut world, 1000, alice(), read).is_none(), "it waits");
    let (who, now, ticket) = (alice(), world.now(), Ticket(1 << 41));
    let op = Op::VolumeDelete { name: "v".into(), only: None, keep_directory: false };
    world.node.handle(now, Event::Request { ticket, who, op, arrived: now });
    let told = std::iter::from_fn(|| world.node.poll_output());
    let told: Vec<_> = told.map(|output| (output.ticket.0 & 0xffff, output.result)).collect();
    assert_eq!(told, [(1000, Err(Error::NoSuchVolume { name: "v".into() }))]);
}
