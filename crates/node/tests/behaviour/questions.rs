//! What others ask about volumes without reading them: whether their bytes are still the same,
//! where something is written, what lies in a directory, how much room there is.

use crate::driver::*;
use node::{Access, Error, Mode, Op, Placement, Who, WriteRange, Writer, limits};
use units::Bytes;

const FILM: &str = "film";

/// Who keeps bytes asks by a number whether they are the volume's still: it is another one as soon
/// as a write may have changed some, and again when it has; what changes none leaves it.
#[test]
fn the_count_of_changes_is_another_one_whenever_bytes_may_have_changed() {
    let mut driver = Setup::new(1).open();
    driver.volume(FILM, Bytes::mib(3));
    driver.volume("other", Bytes::MIB);
    let changes = |driver: &Driver| driver.node.volume(FILM).unwrap().changes.last;
    let mut seen = vec![changes(&driver)];
    assert_eq!(seen, [0]);
    let under_way = driver.begin_write(FILM, 1, Bytes::ZERO, BLOCK);
    seen.push(changes(&driver));
    driver.wait(under_way).unwrap();
    seen.push(changes(&driver));
    // As far as there is space.
    driver.done(Op::VolumeExtend { name: FILM.into(), length: Bytes::mib(3) });
    seen.push(changes(&driver));
    driver.done(Op::VolumeResize { name: FILM.into(), size: Bytes::MIB, may_cut: true });
    seen.push(changes(&driver));
    let writer = driver.writer(FILM, usual());
    driver.put_all(writer, 2, BLOCK);
    driver.close(writer).unwrap();
    seen.push(changes(&driver));
    assert!(seen.windows(2).all(|two| two[0] < two[1]), "{seen:?}");

    let same = changes(&driver);
    driver.read(FILM, Bytes::ZERO, BLOCK).unwrap();
    driver.done(Op::Sync);
    // To all that is recorded, and to more.
    driver.done(resize(FILM, Bytes::MIB));
    driver.done(resize(FILM, Bytes::mib(2)));
    driver.write("other", 1, Bytes::ZERO, BLOCK);
    assert_eq!(changes(&driver), same);
    let length = Bytes::mib(2) + Bytes::new(1);
    let told = driver.at_once(Op::VolumeExtend { name: FILM.into(), length });
    assert!(matches!(told, Err(Error::Invalid { what: "length", .. })), "{told:?}");
    assert_eq!(changes(&driver), same);
}

/// Who has a number of his own hears of others' changes only, also where his own are under way.
#[test]
fn a_writer_with_a_number_is_told_of_the_changes_that_others_make() {
    let mut driver = Setup::new(1).open();
    driver.volume(FILM, Bytes::mib(3));
    let others =
        |driver: &Driver, writer| driver.node.volume(FILM).unwrap().changes.not_by(Writer(writer));
    let begin = |driver: &mut Driver, writer, at| {
        let span = driver.room(limits::BLOCK_MIN);
        let range = WriteRange { writer, ..WriteRange::new(at, limits::BLOCK_MIN) };
        driver.begin(write(FILM, range, span))
    };
    let (one, two) = (Some(Writer(1)), Some(Writer(2)));
    // Each with whether the two hear of it.
    for (writer, first, second) in [
        (one, false, true),
        (one, false, true),
        (two, true, false),
        (one, false, true),
        (None, true, true),
        (two, true, false),
        (None, true, true),
        (None, true, true),
    ] {
        let before = (others(&driver, 1), others(&driver, 2));
        let under_way = begin(&mut driver, writer, Bytes::ZERO);
        driver.wait(under_way).unwrap();
        let after = (others(&driver, 1), others(&driver, 2));
        assert_eq!((before.0 != after.0, before.1 != after.1), (first, second), "{writer:?}");
    }
    let before = others(&driver, 1);
    let under_way = [(one, 0), (two, 1), (one, 2)]
        .map(|(writer, extent)| begin(&mut driver, writer, Bytes::mib(extent)));
    let begun = others(&driver, 1);
    assert_ne!(before, begun);
    for it in under_way {
        driver.wait(it).unwrap();
    }
    assert_ne!(begun, others(&driver, 1), "the other's has ended");
    let before = others(&driver, 1);
    driver.done(Op::VolumeResize { name: FILM.into(), size: Bytes::MIB, may_cut: true });
    assert_ne!(before, others(&driver, 1), "a cut is nobody's");
}

/// Runs of what is written and of what is not, over the ends of extents, as far as was asked.
#[test]
fn where_a_volume_is_written_is_told_in_runs() {
    let mut driver = Setup::new(2).open();
    let size = Bytes::mib(3);
    driver.volume(FILM, size);
    let kib = Bytes::kib;
    driver.write(FILM, 1, kib(8), kib(8));
    driver.write(FILM, 1, Bytes::MIB - kib(4), kib(8));
    let id = driver.node.volume_id(FILM).unwrap();
    let root = Who::root();
    let told = |from, to| driver.node.written(&root, (FILM, id), from..to);
    let all = [
        (kib(8), false),
        (kib(8), true),
        (kib(1020 - 16), false),
        (kib(8), true),
        (kib(2048 - 4), false),
    ];
    assert_eq!(told(Bytes::ZERO, size).unwrap(), all);
    assert_eq!(told(kib(10), kib(14)).unwrap(), [(kib(4), true)]);
    assert_eq!(told(kib(16), kib(20)).unwrap(), [(kib(4), false)], "right behind it");
    assert_eq!(told(kib(1024), kib(1032)).unwrap(), [(kib(4), true), (kib(4), false)]);
    assert_eq!(told(kib(4), kib(4)).unwrap(), []);
    assert_eq!(told(size, size).unwrap(), []);
    let behind = told(Bytes::ZERO, size + Bytes::new(1));
    assert_eq!(behind, Err(Error::BeyondEnd { size }));
    let none = Err(Error::NoSuchVolume { name: "none".into() });
    assert_eq!(driver.node.written(&root, ("none", id), Bytes::ZERO..size), none);
    // Another one of this name is not meant.
    driver.done(delete(FILM));
    driver.volume(FILM, size);
    let gone = Err(Error::NoSuchVolume { name: FILM.into() });
    assert_eq!(driver.node.written(&root, (FILM, id), Bytes::ZERO..size), gone);

    let long = limits::WRITTEN_MAX + Bytes::mib(2);
    driver.volume("long", long);
    let id = driver.node.volume_id("long").unwrap();
    let told = driver.node.written(&root, ("long", id), Bytes::MIB..long).unwrap();
    assert_eq!(told, [(limits::WRITTEN_MAX, false)], "as much as is told at once");
}

/// A name that others lie under is a directory to whoever is shown one of them.
#[test]
fn a_name_is_a_directory_to_who_sees_something_under_it() {
    let mut driver = Setup::new(1).open();
    let owner = Who::user(1000, 1000, []);
    let access = Access { mode: Some(0o600), ..Access::default() };
    let op = |name: &str| Op::VolumeCreate {
        name: name.into(),
        size: Bytes::MIB,
        placement: Placement::default(),
        access,
    };
    let made = driver.begin_as(owner.clone(), op("d/film"));
    driver.wait(made).unwrap();
    let is = |who: &Who, name| driver.node.directory(who, name).is_some();
    assert!(is(&owner, "d") && is(&Who::root(), "d"));
    assert!(!is(&owner, "d/film") && !is(&owner, "none") && !is(&owner, "d/fil"));
    assert!(!is(&Who::user(7, 7, []), "d"), "it is not shown to him");
}

/// Room is what no volume has taken, and is there again after a deletion that is durable.
#[test]
fn room_is_taken_by_volumes_and_given_back() {
    let mut driver = Setup::new(1).open();
    let free = |driver: &Driver| driver.node.space().free;
    let before = free(&driver);
    assert!(before > Bytes::mib(200) && !driver.node.is_read_only());
    driver.volume(FILM, Bytes::mib(5));
    assert_eq!(free(&driver), before - Bytes::mib(5));
    driver.done(delete(FILM));
    assert_eq!(free(&driver), before);
}

/// A program that reads and writes at one place has a block of each under way, where a reader has
/// one: its window is as much larger.
#[test]
fn an_updater_has_memory_for_what_it_reads_and_what_it_writes() {
    let mut driver = Setup::new(1).open();
    driver.recorded(FILM, Bytes::mib(2), Bytes::mib(2), 1);
    let window = |driver: &mut Driver, mode| {
        let (stream, window) = driver.stream(open_window(FILM, mode, usual(), 1));
        driver.close(stream).unwrap();
        window
    };
    let read = window(&mut driver, Mode::Read);
    assert_eq!(window(&mut driver, Mode::Update), read + BLOCK * 2);
}
