//! Who may do what: of each operation that concerns a volume or the pool, who is let and who
//! is not, and that a refusal does nothing.

use crate::driver::*;
use node::{Access, Act, Error, Mode, Op, Ownership, Placement, Priority, Reply, Service, Who};
use units::{Bytes, Duration};

const OWNER: u32 = 1_000;
const GROUP: u32 = 50;

fn owner() -> Who {
    Who::user(OWNER, GROUP, [])
}

/// In the volume's group by one of his other groups.
fn member() -> Who {
    Who::user(1_001, 7, [3, GROUP])
}

/// In the volume's group by his first.
fn mate() -> Who {
    Who::user(1_003, GROUP, [])
}

fn other() -> Who {
    Who::user(1_002, 8, [9])
}

/// A pool with a volume of the owner's.
fn film(mode: u16) -> Driver {
    let mut driver = Setup::new(1).open();
    driver.who = owner();
    let access = Access { mode: Some(mode), ..Access::default() };
    let (name, size, placement) = ("film".into(), Bytes::mib(4), Placement::default());
    driver.done(Op::VolumeCreate { name, size, placement, access });
    driver.who = Who::root();
    driver
}

fn told(driver: &mut Driver, who: Who, op: Op) -> Result<Reply, Error> {
    let ticket = driver.begin_as(who, op);
    driver.wait(ticket)
}

fn refused(act: Act) -> Result<Reply, Error> {
    Err(Error::NotPermitted { name: "film".into(), act })
}

fn reads() -> Vec<Op> {
    let start = Bytes::ZERO;
    vec![
        open("film", Mode::Read, usual(), start),
        open_window("film", Mode::Read, usual(), 1),
        read("film", Bytes::ZERO, Bytes::kib(4)),
        Op::Block { volume: "film".into(), mode: Mode::Read, rate: RATE },
    ]
}

fn writes() -> Vec<Op> {
    vec![
        open("film", Mode::Write, usual(), Bytes::ZERO),
        open_window("film", Mode::Write, usual(), 1),
        room_for("film", Bytes::ZERO, Bytes::kib(4)),
        Op::Place { volume: "film".into(), offset: Bytes::ZERO, len: Bytes::MIB },
        resize("film", Bytes::mib(5)),
        Op::VolumeExtend { name: "film".into(), length: Bytes::MIB },
        Op::VolumeTruncate { name: "film".into(), length: Bytes::ZERO, unless_changed: None },
        Op::Staged(Box::new(resize("film", Bytes::mib(5)))),
        Op::Block { volume: "film".into(), mode: Mode::Write, rate: RATE },
    ]
}

fn owns() -> Vec<Op> {
    vec![
        service("film", Service::BestEffort(Priority::Background)),
        Op::VolumeAccess { name: "film".into(), access: Access::default() },
        delete("film"),
        rename("film", "f", false),
        Op::VolumeTimes { name: "film".into(), accessed: None, modified: Some(1) },
        Op::Staged(Box::new(delete("film"))),
    ]
}

/// The first of owner, group and others that somebody is decides, and nobody else's bits.
#[test]
fn nine_bits_say_who_may_read_and_write_and_the_owner_who_may_do_more() {
    let no_such = || Err(Error::NoSuchVolume { name: "film".into() });
    let users = [
        (owner as fn() -> Who, 0o400, 0o200),
        (member, 0o040, 0o020),
        (mate, 0o040, 0o020),
        (other, 0o004, 0o002),
    ];
    for (who, may_read, may_write) in users {
        let is_owner = who().uid == OWNER;
        for op in reads() {
            assert!(told(&mut film(may_read), who(), op.clone()).is_ok(), "{op:?}");
            let mine = 0o777 & !may_read;
            assert_eq!(told(&mut film(mine), who(), op.clone()), refused(Act::Read), "{op:?}");
            if !is_owner {
                let unknown = mine & !may_write;
                assert_eq!(told(&mut film(unknown), who(), op), no_such());
            }
        }
        for op in writes() {
            assert!(told(&mut film(may_write), who(), op.clone()).is_ok(), "{op:?}");
            let mine = 0o777 & !may_write;
            assert_eq!(told(&mut film(mine), who(), op.clone()), refused(Act::Write), "{op:?}");
        }
        for op in owns() {
            let mut driver = film(0o777);
            match is_owner {
                true => assert!(told(&mut driver, who(), op).is_ok()),
                false => assert_eq!(told(&mut driver, who(), op), refused(Act::Own)),
            }
            assert!(told(&mut film(0), Who::root(), delete("film")).is_ok(), "root may");
        }
    }
    // A write that is not let is not done, and its memory comes back.
    let mut driver = film(0o755);
    let ticket = driver.begin_as(other(), room(Bytes::kib(4)));
    let Ok(Reply::Room { room: span }) = driver.wait(ticket) else { panic!("anybody has memory") };
    let range = node::WriteRange::new(Bytes::ZERO, Bytes::kib(4));
    assert_eq!(told(&mut driver, other(), write("film", range, span)), refused(Act::Write));
    assert_eq!(driver.node.status(driver.now).memory.best_effort, Bytes::ZERO);
    assert_eq!(driver.node.volume("film").unwrap().length, Bytes::ZERO);
}

/// A new volume is its maker's and closed to others; he may give it to a group of his, and
/// nobody but root gives it to another user.
#[test]
fn a_volume_is_its_makers_until_root_gives_it_away() {
    let mut driver = film(0o600);
    let ownership = |driver: &Driver, name| driver.node.volume(name).unwrap().ownership;
    assert_eq!(ownership(&driver, "film"), Ownership { uid: OWNER, gid: GROUP, mode: 0o600 });
    driver.who = other();
    driver.done(create("plain", Bytes::MIB, Placement::default()));
    assert_eq!(ownership(&driver, "plain"), Ownership { uid: 1_002, gid: 8, mode: 0o600 });
    let access = |uid, gid, mode| Op::VolumeAccess {
        name: "plain".into(),
        access: Access { uid, gid, mode },
    };
    let only_root = |told: Result<Reply, Error>| matches!(told, Err(Error::OnlyRoot { .. }));
    assert!(only_root(driver.at_once(access(Some(0), None, None))));
    assert!(only_root(driver.at_once(access(None, Some(GROUP), None))), "not his group");
    let told = driver.at_once(access(None, None, Some(0o1000)));
    assert!(matches!(told, Err(Error::Invalid { what: "mode", .. })), "{told:?}");
    driver.done(access(None, Some(9), Some(0o777)));
    assert_eq!(ownership(&driver, "plain"), Ownership { uid: 1_002, gid: 9, mode: 0o777 });
    driver.who = Who::root();
    driver.done(access(Some(5), Some(6), None));
    let given = Ownership { uid: 5, gid: 6, mode: 0o777 };
    assert_eq!(ownership(&driver, "plain"), given);
    assert_eq!(ownership(&driver.after_a_power_cut(), "plain"), given);
}

/// What concerns the whole pool is root's.
#[test]
fn the_pool_is_roots() {
    let mut driver = film(0o777);
    let profile = Box::new(profile(Bytes::mib(256), FIXED, FLUSH));
    let of_pool = [
        Op::HostLatency { latency: Duration::ZERO },
        Op::ProfileSet { disk: DISK, profile },
        Op::Reprofile { disk: DISK },
        Op::Shutdown,
    ];
    for op in of_pool {
        let told = told(&mut driver, owner(), op);
        assert!(matches!(told, Err(Error::OnlyRoot { .. })), "{told:?}");
    }
    assert!(told(&mut driver, other(), Op::Sync).is_ok());
    assert!(matches!(told(&mut driver, other(), Op::Plan), Ok(Reply::Planner(_))));
    assert!(told(&mut driver, Who::root(), Op::Shutdown).is_ok());
}

/// Who is shown a volume, and who is told that there is one when he names it.
#[test]
fn who_may_only_write_knows_of_a_volume_and_does_not_see_it() {
    use node::permission::{knows, may, sees};
    let volume = |mode| Ownership { uid: OWNER, gid: GROUP, mode };
    assert!(sees(&owner(), volume(0)) && knows(&owner(), volume(0)));
    assert!(!may(&owner(), volume(0o077), Act::Read), "his own bits say no");
    assert!(sees(&member(), volume(0o040)) && !sees(&member(), volume(0o404)));
    assert!(knows(&member(), volume(0o020)) && !sees(&member(), volume(0o020)));
    assert!(!knows(&other(), volume(0o770)) && knows(&other(), volume(0o001 | 0o002)));
    assert!(member().is_in(GROUP) && member().is_in(7) && !member().is_in(8));
}
