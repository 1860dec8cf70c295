//! Names that are paths: renames, directories and what lies in them, and changes that are
//! answered before they are durable.

use crate::driver::*;
use node::{Access, Act, Error, Op, Ownership, Placement, Reply, VolumeId, Who, limits};
use std::collections::BTreeMap;
use units::{Bytes, Duration};

fn make(driver: &mut Driver, name: &str, mode: u16) -> Result<Reply, Error> {
    let access = Access { mode: Some(mode), ..Access::default() };
    let (name, size, placement) = (name.into(), Bytes::mib(1), Placement::default());
    call(driver, Op::VolumeCreate { name, size, placement, access })
}

fn call(driver: &mut Driver, op: Op) -> Result<Reply, Error> {
    let ticket = driver.begin_as(Who::root(), op);
    driver.wait(ticket)
}

fn names(driver: &mut Driver, who: &Who, directory: &str) -> Vec<String> {
    names_of(driver.node.entries(who, directory, "", 100))
}

fn names_of(entries: Vec<node::Entry>) -> Vec<String> {
    entries.into_iter().map(|entry| entry.name).collect()
}

#[test]
fn a_directory_is_there_while_something_lies_under_it_and_is_renamed_with_all_of_it() {
    let mut driver = Setup::new(1).open();
    for name in ["a", "d/x", "d/e/y", "d-", "d/z"] {
        make(&mut driver, name, 0o600).unwrap();
    }
    let root = Who::root();
    assert_eq!(names(&mut driver, &root, ""), ["a", "d-", "d"]);
    assert_eq!(names(&mut driver, &root, "d"), ["e", "x", "z"]);
    let behind = driver.node.entries(&root, "d", "e", 1);
    assert_eq!(behind[0].name, "x", "one at a time, from behind the last");
    call(&mut driver, rename("d", "n/m", false)).unwrap();
    assert_eq!(names(&mut driver, &root, ""), ["a", "d-", "n"]);
    assert_eq!(names(&mut driver, &root, "n/m"), ["e", "x", "z"]);
    assert!(driver.node.volume("n/m/e/y").is_some() && driver.node.volume("d/x").is_none());
    assert_eq!(names(&mut driver, &Who::user(7, 7, []), ""), Vec::<String>::new());
}

#[test]
fn nothing_lies_under_what_is_no_directory_whoever_makes_or_renames_it() {
    let mut driver = Setup::new(1).open();
    make(&mut driver, "f", 0o600).unwrap();
    make(&mut driver, "d", 0o700 | Ownership::DIRECTORY).unwrap();
    make(&mut driver, "d/x", 0o600).unwrap();
    let refused = |ended: Result<Reply, Error>| {
        matches!(ended, Err(Error::Invalid { .. } | Error::NotEmpty { .. }))
    };
    assert!(refused(make(&mut driver, "f/x", 0o600)));
    assert!(refused(call(&mut driver, rename("d/x", "f/x", false))));
    assert!(refused(call(&mut driver, rename("d", "d/e", false))));
    assert!(
        refused(call(
            &mut driver,
            Op::VolumeDelete { name: "d".into(), only: None, keep_directory: false }
        )),
        "it is not empty"
    );
    assert!(make(&mut driver, "d", 0o600).is_err());
    assert!(call(&mut driver, rename("f", "d", true)).is_err());
    call(&mut driver, rename("d/x", "x", false)).unwrap();
    call(&mut driver, Op::VolumeDelete { name: "d".into(), only: None, keep_directory: false })
        .unwrap();
}

#[test]
fn a_rename_takes_a_place_only_where_it_may_and_keeps_what_it_is_told_to() {
    let mut driver = Setup::new(1).open();
    for name in ["a", "b", "c"] {
        make(&mut driver, name, 0o600).unwrap();
    }
    let id = |driver: &Driver, name: &str| driver.node.volume(name).map(|volume| volume.id);
    let (a, b, c) = (id(&driver, "a"), id(&driver, "b"), id(&driver, "c"));
    assert!(matches!(call(&mut driver, rename("a", "b", false)), Err(Error::VolumeExists { .. })));
    call(&mut driver, rename("a", "b", true)).unwrap();
    assert_eq!((id(&driver, "a"), id(&driver, "b")), (None, a));
    call(&mut driver, rename_keeping("c", "b", "kept")).unwrap();
    assert_eq!((id(&driver, "b"), id(&driver, "kept")), (c, a));
    let number = format!("/{}", a.unwrap().0);
    assert_eq!(id(&driver, &number), a, "its number is its own, whatever it is called");
    assert_eq!(id(&driver, &format!("/{}", b.unwrap().0)), None);
}

/// Somebody gave its name to another one before the answer came: who made it is told of his own.
#[test]
fn who_makes_a_volume_is_told_its_number_whatever_has_its_name_by_then() {
    for is_ring in [false, true] {
        let mut driver = Setup::new(1).open();
        make(&mut driver, "other", 0o600).unwrap();
        let (name, size) = (String::from("a"), Bytes::mib(if is_ring { 32 } else { 1 }));
        let (placement, access) = (Placement::default(), Access::default());
        let op = match is_ring {
            true => Op::RingCreate { name, size, placement, access, keep: None },
            false => Op::VolumeCreate { name, size, placement, access },
        };
        let made = driver.begin(op);
        let number = driver.node.volume_id("a").unwrap();
        let renamed = driver.begin(rename("other", "a", true));
        assert_eq!(driver.wait(made), Ok(Reply::Made { volume: number }));
        assert_eq!(driver.wait(renamed), Ok(Reply::Done));
        assert_ne!(driver.node.volume_id("a"), Some(number));
    }
}

#[test]
fn a_staged_change_is_seen_at_once_and_durable_with_a_sync() {
    let mut driver = Setup::new(1).open();
    make(&mut driver, "a", 0o600).unwrap();
    let before = driver.now;
    let ticket = driver.begin_as(Who::root(), Op::Staged(Box::new(rename("a", "b", false))));
    assert_eq!(driver.wait(ticket), Ok(Reply::Done));
    assert_eq!(driver.now.saturating_since(before), Duration::ZERO, "nothing was waited for");
    assert!(driver.node.volume("b").is_some());
    call(&mut driver, Op::Sync).unwrap();
    let no_change = Op::Staged(Box::new(Op::Sync));
    assert!(matches!(call(&mut driver, no_change), Err(Error::Invalid { .. })));
}

#[test]
fn what_is_recorded_reaches_as_far_as_somebody_says_within_the_space() {
    let mut driver = Setup::new(1).open();
    make(&mut driver, "a", 0o600).unwrap();
    let extend = |kib| Op::VolumeExtend { name: "a".into(), length: Bytes::kib(kib) };
    call(&mut driver, extend(5)).unwrap();
    call(&mut driver, extend(3)).unwrap();
    assert_eq!(driver.node.volume("a").unwrap().length, Bytes::kib(5));
    assert!(matches!(call(&mut driver, extend(2000)), Err(Error::Invalid { .. })));
}

#[test]
fn times_are_told_by_whoever_writes_or_says_them() {
    let mut driver = Setup::new(1).open();
    driver.node.set_wall_clock(1_000_000);
    make(&mut driver, "d", 0o700 | Ownership::DIRECTORY).unwrap();
    let made = driver.node.volume("d").unwrap().times.unwrap();
    assert!(made.modified >= 1_000_000);
    let times = Op::VolumeTimes { name: "d".into(), accessed: Some(-5), modified: Some(3) };
    call(&mut driver, times).unwrap();
    let said = driver.node.volume("d").unwrap().times.unwrap();
    assert_eq!((said.accessed, said.modified), (-5, 3));
    make(&mut driver, "d/x", 0o600).unwrap();
    let after = driver.node.volume("d").unwrap().times.unwrap();
    assert!(after.modified >= made.modified, "something was made in it");
}

fn make_as(driver: &mut Driver, uid: u32, name: &str, mode: u16) {
    let access = Access { mode: Some(mode), ..Access::default() };
    let (name, size, placement) = (name.into(), Bytes::mib(1), Placement::default());
    let op = Op::VolumeCreate { name, size, placement, access };
    let ticket = driver.begin_as(Who::user(uid, uid, []), op);
    driver.wait(ticket).unwrap();
}

#[test]
fn a_refusal_names_what_was_asked_for_and_nothing_that_is_hidden() {
    let mut driver = Setup::new(1).open();
    make_as(&mut driver, 7, "alice/secret-plan", 0o600);
    make_as(&mut driver, 7, "shared/secret", 0o600);
    make_as(&mut driver, 8, "shared/visible", 0o600);
    let mut refused = |name: &str| {
        let ticket = driver.begin_as(Who::user(8, 8, []), rename(name, "x", false));
        driver.wait(ticket).unwrap_err()
    };
    assert_eq!(refused("alice"), Error::NoSuchVolume { name: "alice".into() });
    let (name, act) = ("shared".to_string(), Act::Own);
    assert_eq!(refused("shared"), Error::NotPermitted { name, act });
    let number = format!("/{}", driver.node.volume("alice/secret-plan").unwrap().id.0);
    let ticket = driver.begin_as(
        Who::user(8, 8, []),
        Op::VolumeDelete { name: number.clone(), only: None, keep_directory: false },
    );
    assert_eq!(driver.wait(ticket), Err(Error::NoSuchVolume { name: number }));
}

#[test]
fn a_directory_that_is_hidden_is_told_by_name_only_where_something_in_it_is_seen() {
    let mut driver = Setup::new(1).open();
    make_as(&mut driver, 7, "d", 0o700 | Ownership::DIRECTORY);
    make_as(&mut driver, 7, "d/x", 0o644);
    make_as(&mut driver, 7, "hidden", 0o700 | Ownership::DIRECTORY);
    let told = |uid| {
        let entries = driver.node.entries(&Who::user(uid, uid, []), "", "", 9).into_iter();
        entries.map(|entry| (entry.name, entry.volume.is_some())).collect::<Vec<_>>()
    };
    assert_eq!(told(7), [("d".to_string(), true), ("hidden".to_string(), true)]);
    assert_eq!(told(8), [("d".to_string(), false)]);
}

#[test]
fn the_directory_of_files_that_were_removed_is_a_directory() {
    let mut driver = Setup::new(1).open();
    for name in ["a", "b"] {
        make(&mut driver, name, 0o600).unwrap();
    }
    let place = node::REMOVED_DIRECTORY;
    let refused = |ended| matches!(ended, Err(Error::Invalid { what: "name", .. }));
    assert!(refused(make(&mut driver, place, 0o600)));
    assert!(refused(make(&mut driver, place, 0o777 | Ownership::LINK)));
    assert!(refused(call(&mut driver, rename("a", place, false))));
    assert!(refused(call(&mut driver, rename_keeping("a", "b", place))));
    make(&mut driver, place, 0o777 | Ownership::DIRECTORY).unwrap();
    call(&mut driver, rename("a", &format!("{place}/a"), false)).unwrap();
}

#[test]
fn staged_changes_wait_for_a_commit_where_they_are_more_than_a_record_has_room_for() {
    let mut driver = Setup::new(1).open();
    driver.node.set_wall_clock(1);
    let stage = |driver: &mut Driver, op| driver.begin_as(Who::root(), Op::Staged(Box::new(op)));
    make(&mut driver, "t", 0o600).unwrap();
    for at in 0..1000 {
        let (name, modified) = ("t".into(), Some(at));
        let times = Op::VolumeTimes { name, accessed: None, modified };
        let ticket = stage(&mut driver, times);
        assert!(driver.is_answered(ticket), "the times of one volume are one change");
    }
    let create = |number: u32| {
        let (size, placement) = (Bytes::ZERO, Placement::default());
        let (name, access) = (format!("d/{number}{}", "x".repeat(200)), Access::default());
        Op::VolumeCreate { name, size, placement, access }
    };
    let tickets: Vec<_> = (0..100).map(|number| stage(&mut driver, create(number))).collect();
    let at_once = tickets.iter().filter(|ticket| driver.is_answered(**ticket)).count();
    assert!((5..40).contains(&at_once), "{at_once}");
    for ticket in tickets {
        assert!(is_made(driver.wait(ticket)));
    }
}

#[test]
fn a_directory_is_renamed_at_once_as_far_as_a_record_has_room() {
    let mut driver = Setup::new(1).open();
    driver.node.set_wall_clock(1);
    for number in 0..100 {
        make(&mut driver, &format!("few/{number:03}{}", "x".repeat(20)), 0o600).unwrap();
    }
    for number in 0..30 {
        make(&mut driver, &format!("long/{number:03}{}", "x".repeat(200)), 0o600).unwrap();
    }
    call(&mut driver, rename("few", "far", false)).unwrap();
    let refused = call(&mut driver, rename("long", "far2", false));
    assert!(matches!(refused, Err(Error::Invalid { what: "directory", .. })), "{refused:?}");
    assert!(driver.node.volume(&format!("far/099{}", "x".repeat(20))).is_some());
    let log = driver.node.log();
    assert!(log.record_longest <= log.record_max, "{log:?}");
}

/// Names of volumes, their numbers, and whether they are directories.
type Model = BTreeMap<String, (VolumeId, bool)>;

fn is_under(name: &str, directory: &str) -> bool {
    name.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

/// What a rename makes of the names; none where it is to be refused.
fn renamed(
    before: &Model,
    name: &str,
    to: &str,
    replace: bool,
    keep: Option<&str>,
) -> Option<Model> {
    let is_at = |place: &str, of: &str| place == of || is_under(place, of);
    if is_under(to, name) || keep.is_some_and(|keep| is_at(keep, name) || is_at(keep, to)) {
        return None;
    }
    let (moved, mut after): (Model, Model) =
        before.clone().into_iter().partition(|(at, _)| is_at(at, name));
    if moved.is_empty() || before.keys().any(|at| is_under(at, to) && name != to) {
        return None;
    }
    if name == to {
        return Some(before.clone());
    }
    let own = moved.get(name);
    if let Some(&(taken, is_directory)) = before.get(to) {
        if !replace || own.is_none_or(|(_, is_directory)| *is_directory) != is_directory {
            return None;
        }
        if own.is_some() {
            after.remove(to);
        }
        if let (Some(keep), Some(_)) = (keep, own)
            && after.insert(keep.into(), (taken, is_directory)).is_some()
        {
            return None;
        }
    }
    for (at, volume) in moved {
        if after.insert(format!("{to}{}", &at[name.len()..]), volume).is_some() {
            return None;
        }
    }
    let mut files = after.iter().filter(|(_, (_, is_directory))| !is_directory);
    let is_bad = files.any(|(file, _)| after.keys().any(|name| is_under(name, file)));
    (!is_bad).then_some(after)
}

/// The name, or, where a directory above has a number, the path below that.
fn asked(model: &Model, name: &str, by_number: bool) -> String {
    let mut above = name.match_indices('/').map(|(at, _)| name.split_at(at));
    let numbered = above.find_map(|(above, below)| {
        let (id, is_directory) = model.get(above)?;
        is_directory.then(|| format!("/{}{below}", id.0))
    });
    numbered.filter(|_| by_number).unwrap_or_else(|| name.into())
}

#[test]
fn any_rename_is_refused_or_leaves_the_names_that_it_says() {
    const NAMES: [&str; 10] = ["a", "a/x", "a/y", "a/x/z", "b", "b/x", "b/x/z", "c", "c/x", "d"];
    let mut seed: u64 = 1;
    let mut below = |n: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % n
    };
    let (mut done, mut refused, mut by_number) = (0, 0, 0);
    for _ in 0..60 {
        let mut driver = Setup::new(1).open();
        let mut model = Model::new();
        for _ in 0..60 {
            let (name, to) = (NAMES[below(10)], NAMES[below(10)]);
            if below(4) == 0 {
                let is_directory = below(2) == 0;
                let kind = if is_directory { Ownership::DIRECTORY } else { 0 };
                if make(&mut driver, name, 0o700 | kind).is_ok() {
                    let id = driver.node.volume(name).unwrap().id;
                    assert_eq!(model.insert(name.into(), (id, is_directory)), None);
                }
                continue;
            }
            let (replace, keep) = (below(3) > 0, (below(2) == 0).then(|| NAMES[below(10)]));
            let keep_as = keep.map(|keep| asked(&model, keep, below(2) == 0));
            let id = |name: &str| model.get(name).map(|(id, _)| *id);
            // Right, or of some volume.
            let mut number = |name: &str| match below(4) {
                0 => id(name),
                1 => id(NAMES[below(10)]),
                _ => None,
            };
            let (is, only) = (number(name), number(to));
            let [name_asked, to_asked] = [name, to].map(|name| asked(&model, name, below(2) == 0));
            by_number += u32::from(name_asked != name);
            let op = Op::VolumeRename {
                name: name_asked,
                to: to_asked,
                replace,
                keep_as,
                is,
                only,
                keep_directory: false,
            };
            let ended = call(&mut driver, op.clone());
            let is_other =
                is.is_some() && is != id(name) || only.is_some() && name != to && only != id(to);
            let after = renamed(&model, name, to, replace, keep).filter(|_| !is_other);
            assert_eq!(ended.is_ok(), after.is_some(), "{op:?} of {model:?}: {ended:?}");
            done += u32::from(ended.is_ok());
            refused += u32::from(ended.is_err());
            model = after.unwrap_or(model);
            for name in NAMES {
                let found = driver.node.volume(name).map(|volume| volume.id);
                assert_eq!(found, model.get(name).map(|(id, _)| *id), "{name} after {op:?}");
            }
        }
    }
    assert!(done > 100 && refused > 100 && by_number > 100, "{done} {refused} {by_number}");
}

/// A program that has a directory open goes on in it, whoever renames it, and nowhere when it is gone.
#[test]
fn what_lies_in_a_directory_is_asked_for_by_the_directorys_number() {
    let mut driver = Setup::new(1).open();
    let root = Who::root();
    for (name, mode) in [("d", 0o700 | Ownership::DIRECTORY), ("d/e/x", 0o600), ("f", 0o600)] {
        make(&mut driver, name, mode).unwrap();
    }
    let number = |driver: &Driver, name: &str| driver.node.volume(name).unwrap().id.0;
    let (d, f) = (number(&driver, "d"), number(&driver, "f"));
    call(&mut driver, rename("d", "other", false)).unwrap();
    make(&mut driver, "d", 0o700 | Ownership::DIRECTORY).unwrap();
    let below = |path: &str| format!("/{d}/{path}");
    make(&mut driver, &below("new"), 0o600).unwrap();
    assert_eq!(names(&mut driver, &root, &format!("/{d}")), ["e", "new"]);
    assert_eq!(names(&mut driver, &root, &below("e")), ["x"]);
    assert_eq!(driver.node.directory(&root, &below("e")).unwrap().name, "other/e");
    assert_eq!(driver.node.volume(&below("e/x")).unwrap().name, "other/e/x");
    call(&mut driver, rename(&below("e"), &below("g"), false)).unwrap();
    call(&mut driver, rename("f", &below("f"), false)).unwrap();
    assert_eq!(driver.node.volume("other/f").unwrap().id.0, f);
    assert!(driver.node.volume(&format!("/{f}/x")).is_none(), "it is no directory");
    // Whoever removes it finds it empty in the same step.
    let remove = |name: String, only| Op::VolumeDelete { name, only, keep_directory: false };
    let directory = VolumeId(d);
    let not_empty = Err(Error::NotEmpty { name: "other".into() });
    assert_eq!(call(&mut driver, remove("other".into(), Some(directory))), not_empty);
    let other = |name: String| Err(Error::OtherVolume { name });
    assert_eq!(
        call(&mut driver, remove(below("new"), Some(VolumeId(f)))),
        other(below("new")),
        "a volume that was not meant stays"
    );
    for name in ["new", "f", "g/x"] {
        call(&mut driver, remove(below(name), None)).unwrap();
    }
    call(&mut driver, remove("other".into(), Some(directory))).unwrap();
    let gone = |ended| matches!(ended, Err(Error::NoSuchVolume { .. }));
    assert!(gone(make(&mut driver, &below("new"), 0o600)), "nothing is made in what is gone");
    make(&mut driver, "a", 0o600).unwrap();
    assert!(gone(call(&mut driver, rename("a", &below("a"), false))));
    assert!(names(&mut driver, &root, &format!("/{d}")).is_empty());
}

/// By its number nobody finds out what a directory is called that he may not know of, nor what is there.
#[test]
fn a_directory_of_others_does_not_tell_its_name() {
    let mut driver = Setup::new(1).open();
    for (name, mode) in [("secret", 0o700 | Ownership::DIRECTORY), ("secret/x", 0o600)] {
        make(&mut driver, name, mode).unwrap();
    }
    let number = |driver: &Driver, name: &str| driver.node.volume(name).unwrap().id;
    let (secret, x) = (number(&driver, "secret"), number(&driver, "secret/x"));
    let bob = Who::user(7, 7, []);
    let mut bobs = |op| {
        let ticket = driver.begin_as(bob.clone(), op);
        driver.wait(ticket)
    };
    let create = |name: String| {
        let (size, placement, access) = (Bytes::ZERO, Placement::default(), Access::default());
        Op::VolumeCreate { name, size, placement, access }
    };
    bobs(create("own".into())).unwrap();
    let below = |path: &str| format!("/{}/{path}", secret.0);
    let not_there = |name: String| Err(Error::NoSuchVolume { name });
    for path in ["x", "new", ""] {
        let to = below(path);
        assert_eq!(bobs(create(to.clone())), not_there(to.clone()));
        assert_eq!(bobs(rename("own", &to, true)), not_there(to));
    }
    // Neither does he find a number by trying all.
    for is in [x, secret] {
        let (name, to) = ("secret/x".to_owned(), "other".to_owned());
        let (is, keep_as) = (Some(is), None);
        let op = Op::VolumeRename {
            name,
            to,
            replace: false,
            keep_as,
            is,
            only: None,
            keep_directory: false,
        };
        assert_eq!(bobs(op), not_there("secret/x".into()));
        let (name, to, only) = ("own".to_owned(), "secret/x".to_owned(), is);
        let op = Op::VolumeRename {
            name,
            to,
            replace: true,
            keep_as: None,
            is: None,
            only,
            keep_directory: false,
        };
        assert_eq!(bobs(op), not_there("secret/x".into()));
    }
    assert!(driver.node.volume("own").is_some());
}

/// Another door may have put another kind of thing there since somebody looked.
#[test]
fn a_directory_takes_no_files_place_and_a_file_no_directorys() {
    let mut driver = Setup::new(1).open();
    for (name, mode) in [("d", 0o700 | Ownership::DIRECTORY), ("f", 0o600), ("g/x", 0o600)] {
        make(&mut driver, name, mode).unwrap();
    }
    for (from, to) in [("d", "f"), ("f", "d"), ("g", "f")] {
        let exists = Err(store::StoreError::VolumeExists { name: to.into() }.into());
        assert_eq!(call(&mut driver, rename(from, to, true)), exists, "{from} to {to}");
    }
    make(&mut driver, "e", 0o700 | Ownership::DIRECTORY).unwrap();
    call(&mut driver, rename("e", "d", true)).unwrap();
    make(&mut driver, "e/x", 0o600).unwrap();
    let not_empty = Err(Error::NotEmpty { name: "e".into() });
    assert_eq!(call(&mut driver, rename("d", "e", true)), not_empty);
}

/// A directory of which a record has room for all but one volume is not renamed in part: where the
/// record would be full to the last byte before that one, too.
#[test]
fn a_directory_is_renamed_with_all_of_it_or_not_at_all() {
    let len = store::RecordContent::rename("").as_usize();
    let name = |directory: &str, number: usize| {
        // Each takes 128 bytes of the record.
        format!("{directory}/{number:0>width$}", width = 128 - len - 2)
    };
    let most = limits::RENAMED_MAX.as_usize() / 128;
    let mut driver = Setup::new(1).open();
    for number in 0..most {
        make(&mut driver, &name("d", number), 0o600).unwrap();
    }
    call(&mut driver, rename("d", "e", false)).unwrap();
    make(&mut driver, &name("e", most), 0o600).unwrap();
    let refused = call(&mut driver, rename("e", "f", false));
    assert!(matches!(refused, Err(Error::Invalid { what: "directory", .. })), "{refused:?}");
    assert!((0..=most).all(|number| driver.node.volume(&name("e", number)).is_some()));
}

/// A directory that is there only because something lies under it stands behind names that begin as its own and
/// go on with a character before the slash: a list that was asked for in parts began anew there, without end.
#[test]
fn a_directory_is_listed_in_parts_of_any_size() {
    let mut driver = Setup::new(1).open();
    let names = ["a", "d-", "d.x", "d/e/y", "d/x", "d/z", "e", "e-", "e/x"];
    for name in names.iter().filter(|name| **name != "e") {
        make(&mut driver, name, 0o600).unwrap();
    }
    for (directory, all) in [("", &["a", "d-", "d.x", "d", "e-", "e"][..]), ("d", &["e", "x", "z"])]
    {
        for most in 1..8 {
            let mut listed: Vec<String> = Vec::new();
            while listed.len() < 20 {
                let after = listed.last().map_or("", String::as_str);
                let some = driver.node.entries(&Who::root(), directory, after, most);
                if some.is_empty() {
                    break;
                }
                listed.extend(some.into_iter().map(|entry| entry.name));
            }
            assert_eq!(listed, all, "{directory:?} by {most}");
        }
    }
}

/// Whoever asks holds the pool for some names at a time. Before, it was for all that lay there, of which he
/// may have been shown nothing.
#[test]
fn a_look_at_a_directory_is_at_so_many_names_whatever_is_shown_of_them() {
    let mut driver = Setup::new(1).open();
    const MANY: usize = 4 * limits::NAMES_STEP;
    let mut empty = |name: String, mode| {
        let (size, placement) = (Bytes::ZERO, Placement::default());
        let access = Access { mode: Some(mode), ..Access::default() };
        call(&mut driver, Op::VolumeCreate { name, size, placement, access }).unwrap();
    };
    for number in 0..MANY {
        empty(format!("in/{number:04}"), 0o600);
        empty(format!("x{number:04}"), 0o600);
    }
    ["in/y/z", "z"].iter().for_each(|name| empty(name.to_string(), 0o604));
    let user = Who::user(7, 7, []);
    let looks = |directory: &str| {
        let (mut shown, mut looked, mut looks) = (Vec::new(), None, 0);
        loop {
            let (some, next) = driver.node.look_at_entries(&user, directory, ("", looked), 9);
            shown.extend(some.into_iter().map(|entry| entry.name));
            looks += 1;
            match next {
                Some(next) => looked = Some(next),
                None => break (shown, looks),
            }
        }
    };
    let (shown, took) = looks("");
    assert_eq!(shown, ["in", "z"]);
    assert!(took >= 2 * MANY / limits::NAMES_STEP, "{took}");
    assert_eq!(shown, names_of(driver.node.entries(&user, "", "", 9)));
    let (shown, took) = looks("in");
    assert_eq!(shown, ["y"]);
    assert!(took >= MANY / limits::NAMES_STEP, "{took}");
    let (mut looked, mut took) = (None, 0);
    let found = loop {
        took += 1;
        match driver.node.look_at_directory(&user, "in", looked) {
            Ok(found) => break found,
            Err(next) => looked = Some(next),
        }
    };
    assert_eq!(found, driver.node.directory(&user, "in"));
    assert!(found.is_some() && took >= MANY / limits::NAMES_STEP, "{took}");
    // What is shown takes more of a look.
    let (some, next) = driver.node.look_at_entries(&Who::root(), "in", ("", None), MANY);
    assert!(some.len() <= limits::STATUS_STEP && next.is_some(), "{}", some.len());
    assert_eq!(driver.node.entries(&Who::root(), "in", "", 2 * MANY).len(), MANY + 1);
}

/// It went with its last file where the metadata were full, or the file could not be removed at all.
#[test]
fn a_directory_that_a_removal_leaves_stays_where_it_is_to_be_kept() {
    let mut driver = Setup::new(1).open();
    let remove = |name: &str, keep_directory| Op::VolumeDelete {
        name: name.into(),
        only: None,
        keep_directory,
    };
    let move_out = |name: &str, to: &str, replace| Op::VolumeRename {
        name: name.into(),
        to: to.into(),
        replace,
        keep_as: None,
        is: None,
        only: None,
        keep_directory: true,
    };
    for name in ["gone/x", "d/e/x", "d/e/y", "m/x", "r/x", "place"] {
        make(&mut driver, name, 0o600).unwrap();
    }
    call(&mut driver, remove("gone/x", false)).unwrap();
    call(&mut driver, remove("d/e/x", true)).unwrap();
    let is_there = |driver: &Driver, name: &str| driver.node.volume(name).is_some();
    assert!(!is_there(&driver, "d/e"), "something else is in it");
    call(&mut driver, remove("d/e/y", true)).unwrap();
    call(&mut driver, move_out("m/x", "m2/x", false)).unwrap();
    call(&mut driver, move_out("r/x", "place", true)).unwrap();
    assert_eq!(names(&mut driver, &Who::root(), ""), ["d", "m", "m2", "place", "r"]);
    for name in ["d/e", "m", "r"] {
        let kept = driver.node.volume(name).unwrap();
        assert_eq!(kept.ownership.mode, Ownership::DIRECTORY | 0o755);
        call(&mut driver, remove(name, true)).unwrap();
    }
    assert!(is_there(&driver, "d"), "what lay in it was a directory");
    // However full the metadata are.
    make(&mut driver, "full/x", 0o600).unwrap();
    for number in 0.. {
        let name = format!("n{number}-{}", "x".repeat(200));
        if make_empty(&mut driver, &name).is_err() {
            break;
        }
    }
    (0..).find(|number| make_empty(&mut driver, &format!("s{number}")).is_err());
    assert_eq!(driver.node.capacity().volumes_free, 0);
    call(&mut driver, remove("full/x", true)).unwrap();
    assert!(is_there(&driver, "full"));
}

fn make_empty(driver: &mut Driver, name: &str) -> Result<Reply, Error> {
    let access = Access { mode: Some(0o644), ..Access::default() };
    let (name, size, placement) = (name.into(), Bytes::ZERO, Placement::default());
    call(driver, Op::VolumeCreate { name, size, placement, access })
}

/// Whoever worked in it worked in the one that had got its name.
#[test]
fn a_directory_that_no_volume_stands_for_is_found_by_what_it_was_called_when() {
    let mut driver = Setup::new(1).open();
    let root = Who::root();
    make(&mut driver, "a/b/x", 0o600).unwrap();
    let told = driver.node.directory(&root, "a/b").unwrap();
    assert_eq!((&*told.name, told.since), ("a/b", 0));
    let then = |path: &str| format!("/@{}/{path}", told.moment);
    call(&mut driver, rename("a", "c", false)).unwrap();
    make(&mut driver, "a/b/other", 0o600).unwrap();
    assert_eq!(names(&mut driver, &root, &then("a/b")), ["x"]);
    assert_eq!(names(&mut driver, &root, "a/b"), ["other"]);
    make(&mut driver, &then("a/b/new"), 0o600).unwrap();
    call(&mut driver, rename(&then("a/b/x"), &then("a/b/y"), false)).unwrap();
    assert_eq!(names(&mut driver, &root, "c/b"), ["new", "y"]);
    let now = driver.node.directory(&root, &then("a/b")).unwrap();
    assert_eq!(now.name, "c/b");
    let new = driver.node.directory(&root, "a/b").unwrap();
    assert!(new.since > told.moment && now.since == new.since && new.moment == now.moment);
    let listed = driver.node.entries(&root, "a", "", 9);
    assert_eq!(listed[0].directory.as_ref(), Some(&new));
    // Another one in its place, and one of which nobody knows.
    call(&mut driver, rename("c", "d", false)).unwrap();
    call(&mut driver, rename("a", "c", false)).unwrap();
    assert_eq!(driver.node.directory(&root, &then("a/b")).unwrap().name, "d/b");
    let replaced = format!("/@{}/c/b", now.moment - 1);
    for name in [&*replaced, "/@7/d/b", "/@99999999999999999999/d/b", "/@x/d/b"] {
        assert!(driver.node.directory(&root, name).is_none(), "{name}");
        let made = make(&mut driver, &format!("{name}/z"), 0o600);
        assert!(made.is_err(), "{name}");
    }
}

/// By an earlier name nobody finds out what a directory is called now that he is shown nothing of.
#[test]
fn what_a_directory_of_others_has_come_to_is_not_told() {
    let mut driver = Setup::new(1).open();
    make_as(&mut driver, 7, "alice/plans/x", 0o600);
    make_as(&mut driver, 7, "kept", 0o700 | Ownership::DIRECTORY);
    make_as(&mut driver, 8, "bobs", 0o600);
    let bob = Who::user(8, 8, []);
    let moment = driver.node.directory(&Who::root(), "alice").unwrap().moment;
    for (from, to) in [("alice", "secret"), ("kept", "hidden")] {
        let ticket = driver.begin_as(Who::user(7, 7, []), rename(from, to, false));
        driver.wait(ticket).unwrap();
    }
    let mut bobs = |op| {
        let ticket = driver.begin_as(bob.clone(), op);
        driver.wait(ticket)
    };
    for path in ["alice", "alice/new", "alice/plans/x", "kept", "kept/new"] {
        let to = format!("/@{moment}/{path}");
        let (size, placement, access) = (Bytes::ZERO, Placement::default(), Access::default());
        let op = Op::VolumeCreate { name: to.clone(), size, placement, access };
        assert_eq!(bobs(op), Err(Error::NoSuchVolume { name: to.clone() }));
        let told = bobs(rename("bobs", &to, true));
        assert_eq!(told, Err(Error::NoSuchVolume { name: to }));
    }
    // What he is shown something of he works in.
    make_as(&mut driver, 8, "secret/bobs", 0o600);
    make_as(&mut driver, 8, &format!("/@{moment}/alice/new"), 0o600);
    assert!(driver.node.volume("secret/new").is_some());
}

/// Who holds on to one of two directories that change places finds that one.
#[test]
fn a_directory_that_is_kept_beside_is_found_where_it_has_come_to() {
    let mut driver = Setup::new(1).open();
    let root = Who::root();
    for name in ["p", "q"] {
        make(&mut driver, name, 0o700 | Ownership::DIRECTORY).unwrap();
    }
    make(&mut driver, "p/sub/f", 0o600).unwrap();
    let moment = driver.node.directory(&root, "p/sub").unwrap().moment;
    let keep_as = Some("old".into());
    let (name, to, replace) = ("p".into(), "q".into(), true);
    let (is, only, keep_directory) = (None, None, false);
    let op = Op::VolumeRename { name, to, replace, keep_as, is, only, keep_directory };
    call(&mut driver, op).unwrap();
    make(&mut driver, "p/sub/other", 0o600).unwrap();
    let mut then = |path: &str| names(&mut driver, &root, &format!("/@{moment}/{path}"));
    assert_eq!(then("p/sub"), ["f"]);
    assert_eq!(then("q"), Vec::<String>::new());
}
