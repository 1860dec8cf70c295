//! Who may do what, against a running daemon with a real pool: its owner, two members of
//! its group, anybody else and root, over the control socket, the data socket and the
//! library; what lists show; and what a user may take of the pool.
//!
//! Only root can be several users: for anybody else there is nothing to try.

#![allow(clippy::print_stdout)] // what another process was told

use crate::real::{Real, contract};
use crate::users::{User, run_as};
use client::control::{Access, Mode, Permissions, Service, VolumeCreate};
use client::units::{Bytes, Rate};
use client::{Client, Code, Error, OpenOptions};
use daemon::config::SocketMode;
use daemon::quotas::{Quotas, Rules, Whole, own_uid};
use daemon::serve::ServeOptions;
use rustix::io::Errno;
use std::collections::BTreeMap;

const MODES: [u16; 18] = [
    0o000, 0o400, 0o200, 0o600, 0o040, 0o020, 0o060, 0o004, 0o002, 0o006, 0o440, 0o604, 0o064,
    0o640, 0o660, 0o666, 0o111, 0o777,
];
const OWNER: User = User { uid: 70_001, groups: &[70_100] };
const FILM: u32 = 70_200;
/// With the shift of the bits that are for him.
const USERS: [(&str, User, u32); 4] = [
    ("owner", OWNER, 6),
    ("group, by his first", User { uid: 70_002, groups: &[FILM, 70_300] }, 3),
    ("group, by another", User { uid: 70_003, groups: &[70_300, FILM] }, 3),
    ("other", User { uid: 70_004, groups: &[70_300] }, 0),
];

/// A daemon whose only administrator is root, for everybody.
fn daemon(rules: &str, mib: u64) -> Real {
    let rules: Rules = toml::from_str(rules).unwrap();
    assert_eq!(rules.wrong(), None);
    let whole = Whole { memory: Bytes::mib(256), space: Bytes::mib(mib) };
    let quotas = Quotas::new(&rules, whole, vec![0]);
    Real::start_by(mib, ServeOptions { quotas, ..ServeOptions::from(SocketMode(0o666)) })
}

fn not_root() -> bool {
    !skips::can_run(own_uid() == 0, "needs root, to be several users")
}

fn name(mode: u16) -> String {
    format!("m{mode:03o}")
}

fn permissions(mode: u16) -> Option<Permissions> {
    Permissions::new(mode)
}

/// Everything that can be done with a volume: what it is called, what it takes, and how
/// it was answered.
fn try_all(client: &Client, mode: u16) -> Vec<(&'static str, char, Option<Error>)> {
    let (name, contract) = (&name(mode), contract(100_000, Bytes::kib(4)));
    let rate = Rate::per_second(100_000);
    let (kib, mib) = (Bytes::kib(4), Bytes::mib(1));
    let mut page = [0; 4096];
    let access = Access { mode: permissions(mode), ..Access::default() };
    let mut tried = vec![
        ("show", 's', client.volume(name).err()),
        ("block of a reader", 'r', client.block_for(name, Mode::Read, rate).err()),
        ("block of a writer", 'w', client.block_for(name, Mode::Write, rate).err()),
        ("reader", 'r', client.reader(name, contract, Bytes::ZERO).and_then(|r| r.close()).err()),
        (
            "writer",
            'w',
            client.writer(name, contract, Bytes::ZERO).and_then(|w| w.close().map(drop)).err(),
        ),
        ("best effort", 'a', client.best_effort(name).err()),
    ];
    let handle = || client.best_effort(name);
    tried.push((
        "read at",
        'r',
        handle().and_then(|mut h| h.read_at(Bytes::ZERO, &mut page)).err(),
    ));
    tried.push(("write at", 'w', handle().and_then(|mut h| h.write_at(kib, &page)).err()));
    let open = |read, write| {
        let mut options = OpenOptions::new();
        options.socket(client.socket()).read(read).write(write);
        options.open(name).and_then(|file| file.close()).err()
    };
    tried.push(("open to read", 's', open(true, false)));
    tried.push(("resize", 'w', client.volume_resize(name, mib).err()));
    tried.push(("service", 'o', client.volume_service(name, &Service::default()).err()));
    tried.push(("chmod", 'o', client.volume_access(name, &access).err()));
    tried.push(("delete", 'o', client.volume_delete(name).err()));
    tried
}

/// What each is to be told: nothing where it is done, else the code, and of the library
/// the error number with it.
fn expected(mode: u16, shift: u32, act: char) -> Option<(Code, i32)> {
    let (r, w, owns) = (mode >> shift & 4 != 0, mode >> shift & 2 != 0, shift == 6);
    let allowed = match act {
        'r' => r,
        'w' => w,
        's' => r || owns,
        'a' => r || w,
        _ => owns,
    };
    let refused = match (act, r || w || owns) {
        (_, false) => (Code::NoSuchVolume, Errno::NOENT.raw_os_error()),
        ('o', true) => (Code::Forbidden, Errno::PERM.raw_os_error()),
        (_, true) => (Code::NotPermitted, Errno::ACCESS.raw_os_error()),
    };
    (!allowed).then_some(refused)
}

/// Not a test by itself: one user tries everything, and says what he was told.
#[test]
fn as_a_user() {
    let Ok(socket) = std::env::var("SLACKLINE_TEST_SOCKET") else { return };
    let client = Client::connect(socket).unwrap();
    let listed: Vec<String> = client.volumes().unwrap().into_iter().map(|one| one.name).collect();
    let shown = client.status().unwrap().volumes;
    assert_eq!(
        shown.iter().map(|volume| &volume.name).collect::<Vec<_>>(),
        listed.iter().collect::<Vec<_>>()
    );
    println!("list {}", listed.join(","));
    for mode in MODES {
        for (what, act, error) in try_all(&client, mode) {
            let code = error.as_ref().map_or("done".into(), |e| format!("{:?}", e.code().unwrap()));
            let errno = error.as_ref().map_or(0, Error::errno);
            println!("{mode} {act} {errno} {code} {what}");
        }
    }
    println!("all tried");
}

fn make(daemon: &Real) {
    for mode in MODES {
        let (user, group) = (Some(OWNER.uid.to_string()), Some(FILM.to_string()));
        let access = Access { user, group, mode: permissions(mode) };
        let create = VolumeCreate { access, ..VolumeCreate::new(name(mode), Bytes::mib(1)) };
        let made = daemon.client.volume_create(&create).unwrap();
        let owner = (made.owner.uid, made.owner.gid, made.owner.mode.bits());
        assert_eq!(owner, (OWNER.uid, FILM, mode));
        let mut handle = daemon.client.best_effort(&name(mode)).unwrap();
        handle.write_at(Bytes::ZERO, &[7; 4096]).unwrap();
    }
}

#[test]
fn every_verb_is_for_whom_the_mode_says_on_both_sockets() {
    if not_root() {
        return;
    }
    let daemon = daemon("preset = 'none'", 64);
    let socket = daemon.client.socket().to_str().unwrap();
    for (called, user, shift) in USERS {
        make(&daemon);
        let said = run_as(
            user,
            daemon.dir.path(),
            "owners::as_a_user",
            &[("SLACKLINE_TEST_SOCKET", socket)],
        );
        let mut answers = 0;
        for line in said.lines() {
            let words: Vec<&str> = line.splitn(5, ' ').collect();
            let [mode, act, errno, code, what] = words[..] else { continue };
            let Ok(mode) = mode.parse::<u16>() else { continue };
            let wanted = expected(mode, shift, act.chars().next().unwrap());
            let wanted = wanted.map_or((0, "done".into()), |(code, no)| (no, format!("{code:?}")));
            let told = (errno.parse::<i32>().unwrap(), code.to_owned());
            assert_eq!(told, wanted, "{what} by {called} with mode {mode:o}");
            answers += 1;
        }
        assert_eq!(answers, MODES.len() * 13, "{said}");
        let listed = said.lines().find_map(|line| line.split_once("list ")).unwrap().1;
        let seen = MODES.into_iter().filter(|mode| expected(*mode, shift, 's').is_none());
        let mut seen: Vec<String> = seen.map(name).collect();
        seen.sort();
        assert_eq!(listed, seen.join(","), "listed for {called}");
        // Root may do everything with what is left, and lists all of it.
        let left = daemon.client.volumes().unwrap().len();
        assert_eq!(left, if shift == 6 { 0 } else { MODES.len() });
        for mode in MODES.into_iter().filter(|_| shift != 6) {
            for (what, _, error) in try_all(&daemon.client, mode) {
                assert!(error.is_none(), "{what} by root with mode {mode:o}: {error:?}");
            }
        }
    }
}

/// Not a test by itself: what somebody sees of streams that are not his.
#[test]
fn as_an_onlooker() {
    let Ok(socket) = std::env::var("SLACKLINE_TEST_SOCKET") else { return };
    let client = Client::connect(socket).unwrap();
    let streams = client.streams().unwrap();
    let names: Vec<&str> = streams.iter().map(|stream| &*stream.volume).collect();
    assert_eq!(names, ["open"], "and not \"closed\"");
    let status = client.status().unwrap();
    let text = serde_json::to_string(&status).unwrap();
    assert!(text.contains("\"open\"") && !text.contains("closed"), "{text}");
    assert_eq!(status.disks.len(), 1, "figures of the whole are everybody's");
    let number = |name: &str| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let (closed, open) = (number("SLACKLINE_TEST_CLOSED"), number("SLACKLINE_TEST_OPEN"));
    assert_eq!(client.stream(closed).unwrap_err().code(), Some(Code::NoSuchStream));
    client.stream(open).unwrap();
    for stream in [closed, open] {
        assert_eq!(client.stream_close(stream).unwrap_err().code(), Some(Code::Forbidden));
    }
    // He may know neither that there is such a volume, nor that it is under contract.
    let error = client.volume_service("closed", &Service::default()).unwrap_err();
    assert_eq!(error.code(), Some(Code::NoSuchVolume), "{error}");
    let error = client.volume_delete("closed").unwrap_err();
    assert_eq!(error.code(), Some(Code::NoSuchVolume), "{error}");
    let error = client.volume_create(&VolumeCreate::new("closed", Bytes::MIB)).unwrap_err();
    assert_eq!(error.code(), Some(Code::VolumeExists), "a name is one for all");
    let access = |user: Option<&str>, group: Option<&str>| Access {
        user: user.map(Into::into),
        group: group.map(Into::into),
        mode: None,
    };
    let own = VolumeCreate::new("mine", Bytes::MIB);
    for access in [access(Some("root"), None), access(None, Some("70200"))] {
        let error = client.volume_create(&VolumeCreate { access, ..own.clone() }).unwrap_err();
        assert_eq!(error.code(), Some(Code::Forbidden), "{error}");
    }
    let made = client.volume_create(&own).unwrap();
    let owner = (made.owner.uid, made.owner.gid, made.owner.mode.bits());
    assert_eq!(owner, (70_004, 70_300, 0o600), "his own and closed");
    let error = client.volume_access("mine", &access(Some("0"), None)).unwrap_err();
    assert_eq!(error.code(), Some(Code::Forbidden), "{error}");
    let error = client.volume_access("mine", &access(Some("no such user"), None)).unwrap_err();
    assert_eq!(error.code(), Some(Code::Invalid), "{error}");
    println!("all tried");
}

#[test]
fn lists_do_not_name_what_others_keep_to_themselves() {
    if not_root() {
        return;
    }
    let daemon = daemon("preset = 'none'", 64);
    let client = &daemon.client;
    let open = Access { mode: permissions(0o644), ..Access::default() };
    client.volume_create(&VolumeCreate::new("closed", Bytes::MIB)).unwrap();
    let create = VolumeCreate { access: open, ..VolumeCreate::new("open", Bytes::MIB) };
    client.volume_create(&create).unwrap();
    let service = Service::Latency {
        len_bytes: Bytes::kib(4),
        within_ns: units::Duration::from_millis(100),
        every_ns: units::Duration::from_secs(1),
    };
    client.volume_service("closed", &service).unwrap();
    let writers: Vec<_> = ["closed", "open"]
        .map(|name| client.writer(name, contract(100_000, Bytes::kib(4)), Bytes::ZERO).unwrap())
        .into_iter()
        .collect();
    let numbers: Vec<String> = writers.iter().map(|writer| writer.stream().to_string()).collect();
    let variables = [
        ("SLACKLINE_TEST_SOCKET", client.socket().to_str().unwrap()),
        ("SLACKLINE_TEST_CLOSED", &numbers[0]),
        ("SLACKLINE_TEST_OPEN", &numbers[1]),
    ];
    run_as(USERS[3].1, daemon.dir.path(), "owners::as_an_onlooker", &variables);
    assert_eq!(client.streams().unwrap().len(), 2, "root sees both");
    assert_eq!(client.volumes().unwrap().len(), 3);
}

/// Not a test by itself: takes as much of the pool as it gets.
#[test]
fn as_somebody_greedy() {
    let Ok(socket) = std::env::var("SLACKLINE_TEST_SOCKET") else { return };
    let client = Client::connect(socket).unwrap();
    let quota = |error: Error| {
        assert_eq!(
            (error.code(), error.errno()),
            (Some(Code::Quota), Errno::DQUOT.raw_os_error()),
            "{error}"
        );
        error.to_string()
    };
    // All space, at once and by growing; many at a time get no more than one after the other.
    let all = VolumeCreate::new("all", Bytes::mib(100));
    let said = quota(client.volume_create(&all).unwrap_err());
    assert!(said.contains("100 MiB of space in volumes, and may have 16 MiB"), "{said}");
    let makers: Vec<_> = (0..32)
        .map(|n| {
            let client = client.clone();
            let create = VolumeCreate::new(format!("part-{n}"), Bytes::mib(1));
            std::thread::spawn(move || client.volume_create(&create))
        })
        .collect();
    let made: Vec<_> = makers.into_iter().map(|maker| maker.join().unwrap()).collect();
    assert_eq!(made.iter().filter(|made| made.is_ok()).count(), 16);
    made.into_iter().filter_map(Result::err).for_each(|error| drop(quota(error)));
    let first = client.volumes().unwrap().remove(0).name;
    quota(client.volume_resize(&first, Bytes::mib(2)).unwrap_err());
    client.volume_resize(&first, Bytes::kib(1)).unwrap();
    // Empty ones, until no more may be.
    let mut error = None;
    let empty = (0..100).take_while(|n| {
        error = client.volume_create(&VolumeCreate::new(format!("empty-{n}"), Bytes::ZERO)).err();
        error.is_none()
    });
    assert_eq!(empty.count(), 64 - 16);
    assert!(quota(error.unwrap()).contains("65 volumes, and may have 64"));
    let me = client.quotas().unwrap().holders.into_iter().find(|one| one.id == 70_004).unwrap();
    assert_eq!((me.volumes, me.space_bytes), (64, Bytes::mib(16)));
    assert_eq!((me.limits.volumes, me.limits.space_bytes), (Some(64), Some(Bytes::mib(16))));
    client.volume_delete(&first).unwrap();
    client.volume_create(&VolumeCreate::new("again", Bytes::mib(1))).unwrap();
    println!("all tried");
}

#[test]
fn under_the_preset_server_nobody_takes_all_space_or_all_metadata() {
    if not_root() {
        return;
    }
    let daemon = daemon("preset = 'server'", 64);
    let client = &daemon.client;
    let socket = client.socket().to_str().unwrap();
    run_as(
        USERS[3].1,
        daemon.dir.path(),
        "owners::as_somebody_greedy",
        &[("SLACKLINE_TEST_SOCKET", socket)],
    );
    // There is room for others, and root has no limit, also with what is somebody else's.
    client.volume_create(&VolumeCreate::new("root", Bytes::mib(32))).unwrap();
    client.volume_resize("again", Bytes::mib(8)).unwrap();
    let user = Some(USERS[3].1.uid.to_string());
    client.volume_access("root", &Access { user, ..Access::default() }).unwrap();
    let told = client.quotas().unwrap().holders;
    let him = told.iter().find(|one| one.id == 70_004).unwrap();
    assert_eq!((him.volumes, him.space_bytes), (65, Bytes::mib(16 + 7 + 32)));
}

/// Not a test by itself: a member of a group that may have little.
#[test]
fn as_a_member() {
    let Ok(socket) = std::env::var("SLACKLINE_TEST_SOCKET") else { return };
    let client = Client::connect(socket).unwrap();
    let film = || Access { group: Some(FILM.to_string()), ..Access::default() };
    let named =
        |name: &str, access| VolumeCreate { access, ..VolumeCreate::new(name, Bytes::mib(2)) };
    client.volume_create(&named("one", film())).unwrap();
    let error = client.volume_create(&named("two", film())).unwrap_err();
    assert!(error.to_string().contains("group 70200 would have 4 MiB of space"), "{error}");
    client.volume_create(&named("two", Access::default())).unwrap();
    let error = client.volume_access("two", &film()).unwrap_err();
    assert_eq!(error.code(), Some(Code::Quota), "brought in by chgrp: {error}");
    let mode = Access { mode: permissions(0o640), ..Access::default() };
    client.volume_access("one", &mode).unwrap();
    println!("all tried");
}

#[test]
fn a_groups_volumes_are_counted_together_however_they_come_to_it() {
    if not_root() {
        return;
    }
    let daemon = daemon("preset = 'none'\n[group.70200]\nspace = '3MiB'", 64);
    let socket = daemon.client.socket().to_str().unwrap();
    run_as(
        USERS[2].1,
        daemon.dir.path(),
        "owners::as_a_member",
        &[("SLACKLINE_TEST_SOCKET", socket)],
    );
    let owners = daemon.client.volumes().unwrap().into_iter();
    let groups: BTreeMap<String, u32> = owners.map(|one| (one.name, one.owner.gid)).collect();
    assert_eq!(groups, [("one".into(), FILM), ("two".into(), 70_300)].into());
}

#[test]
fn what_is_recorded_is_cut_only_where_the_request_says_so() {
    let daemon = Real::start(64);
    daemon.volume("v", Bytes::mib(4));
    let mut handle = daemon.client.best_effort("v").unwrap();
    handle.write_at(Bytes::mib(2), &[7; 4096]).unwrap();
    let error = daemon.client.volume_resize("v", Bytes::mib(2)).unwrap_err();
    assert_eq!(error.code(), Some(Code::WouldCut), "{error}");
    assert!(error.to_string().contains("2101248 bytes"), "{error}");
    assert_eq!(daemon.client.volume("v").unwrap().size_bytes, Bytes::mib(4), "as it was");
    daemon.client.volume_resize("v", Bytes::mib(3)).unwrap();
    drop(handle);
    let cut = daemon.client.volume_cut("v", Bytes::mib(2)).unwrap();
    assert_eq!((cut.size_bytes, cut.length_bytes), (Bytes::mib(2), Bytes::mib(2)));
}

/// Not a test by itself: somebody who may write a volume, or its owner, meets a contract that
/// another user's handle has on it.
#[test]
fn as_somebody_in_whose_way_a_handle_is() {
    let Ok(socket) = std::env::var("SLACKLINE_TEST_SOCKET") else { return };
    let owns = std::env::var_os("SLACKLINE_TEST_OWNS").is_some();
    let client = Client::connect(socket).unwrap();
    let volume = client.volume("v").unwrap();
    let [handle] = &volume.handles[..] else { panic!("{:?}", volume.handles) };
    assert_eq!(handle.user, "root");
    let shrunk = client.volume_resize("v", Bytes::mib(2)).unwrap_err();
    assert!(shrunk.to_string().contains("under contract"), "{shrunk}");
    let none = client.handle_end("v", handle.id + 1).unwrap_err();
    assert_eq!(none.code(), Some(Code::NotFound), "{none}");
    let ended = client.handle_end("v", handle.id);
    if !owns {
        assert_eq!(ended.unwrap_err().code(), Some(Code::Forbidden));
        println!("all tried");
        return;
    }
    assert!(ended.unwrap().handles.is_empty());
    let again = client.handle_end("v", handle.id).unwrap_err();
    assert_eq!(again.code(), Some(Code::NotFound), "{again}");
    assert_eq!(client.volume_resize("v", Bytes::mib(2)).unwrap().size_bytes, Bytes::mib(2));
    println!("all tried");
}

#[test]
fn the_contract_of_a_handle_is_ended_by_the_owner_of_the_volume_and_its_program_is_told() {
    if not_root() {
        return;
    }
    let daemon = daemon("preset = 'none'", 64);
    let client = &daemon.client;
    daemon.volume("v", Bytes::mib(4));
    let user = Some(OWNER.uid.to_string());
    let open = Access { user, mode: permissions(0o666), ..Access::default() };
    client.volume_access("v", &open).unwrap();
    let contract = client::InTime::within(units::Duration::from_millis(500));
    let contract = contract.of(Bytes::kib(4)).every(units::Duration::from_secs(2));
    let in_time = || client.best_effort_in_time("v", contract).unwrap();
    let mut handle = in_time();
    let mut page = [0; 4096];
    handle.read_at(Bytes::ZERO, &mut page).unwrap();
    let socket = ("SLACKLINE_TEST_SOCKET", client.socket().to_str().unwrap());
    let test = "owners::as_somebody_in_whose_way_a_handle_is";
    run_as(USERS[3].1, daemon.dir.path(), test, &[socket]);
    handle.read_at(Bytes::ZERO, &mut page).unwrap();
    run_as(OWNER, daemon.dir.path(), test, &[socket, ("SLACKLINE_TEST_OWNS", "1")]);
    let error = handle.read_at(Bytes::ZERO, &mut page).unwrap_err();
    assert!(error.to_string().contains("ended by the volume's owner"), "{error}");
    // Whose handle it is ends it, too, by its number.
    let _handle = in_time();
    let own = client.volume("v").unwrap().handles[0].id;
    assert!(client.handle_end("v", own).unwrap().handles.is_empty());
}

/// What a contract takes grows with its volume: on a larger one the disk goes further, and to
/// slower places. Beyond the quota of whose contract it is, the volume does not grow.
#[test]
fn a_volume_does_not_grow_beyond_the_quota_of_whose_contract_it_has() {
    const LARGE: Bytes = Bytes::mib(400);
    let daemon = |rules: &str| {
        let rules: Rules = toml::from_str(rules).unwrap();
        let whole = Whole { memory: Bytes::mib(256), space: Bytes::mib(512) };
        // Nobody is an administrator.
        let quotas = Quotas::new(&rules, whole, vec![]);
        let options = ServeOptions { quotas, ..ServeOptions::from(SocketMode(0o600)) };
        let daemon = Real::emulated_by("laptop-4200", 512, options);
        daemon.volume("v", Bytes::MIB);
        let (len_bytes, time) = (Bytes::kib(512), client::units::Duration::from_millis(1_500));
        let service = Service::Latency { len_bytes, within_ns: time, every_ns: time };
        daemon.client.volume_service("v", &service).unwrap();
        daemon
    };
    let unlimited = "[default]\nspace = 'unlimited'";
    let free = daemon(unlimited);
    let share = |daemon: &Real| {
        let told = daemon.client.quotas().unwrap();
        told.holders.iter().flat_map(|one| &one.shares).map(|one| one.share_ppm).max().unwrap()
    };
    let small = share(&free);
    free.client.volume_resize("v", LARGE).unwrap();
    let large = share(&free);
    assert!(large > small, "{small} {large}");
    drop(free);

    let between = small.midpoint(large);
    let (percent, rest) = (between / 10_000, between % 10_000);
    let held = daemon(&format!("{unlimited}\ndisk_share = '{percent}.{rest:04}%'"));
    assert_eq!(share(&held), small);
    let refused = held.client.volume_resize("v", LARGE).unwrap_err();
    let problem = refused.problem().unwrap();
    assert_eq!(problem.code, Code::Quota);
    let figures = format!("would have {}.{:02} % of disk 0", large / 10_000, large % 10_000 / 100);
    assert!(problem.detail.contains(&figures), "{} {figures}", problem.detail);
    assert!(problem.next_step.contains("disk_share"), "{}", problem.next_step);
    assert_eq!(share(&held), small);
    assert_eq!(held.client.volume("v").unwrap().size_bytes, Bytes::MIB);
}

/// Not a test by itself: removes volumes of his own by every way that there is.
#[test]
fn as_who_removes_what_others_have_promised() {
    let Ok(socket) = std::env::var("SLACKLINE_TEST_SOCKET") else { return };
    let client = Client::connect(socket).unwrap();
    let other = client.volume_create(&VolumeCreate::new("other", Bytes::MIB)).unwrap();
    let (number, now) = (client.volume("mine").unwrap().number, client::Durable::Now);
    let rename = |from, to: &str, how| client.volume_rename(from, to, how, now).unwrap_err();
    let hidden = ".slackline-removed/x";
    let refused = [
        client.volume_delete("mine").unwrap_err(),
        rename("other", "mine", client::Replace::Remove(number)),
        rename("other", "mine", client::Replace::KeepAs(number, hidden)),
        rename("mine", hidden, client::Replace::Nothing),
    ];
    for error in refused {
        assert_eq!(error.code(), Some(Code::Forbidden), "{error}");
    }
    // To give it another name removes nothing.
    client.volume_rename("mine", "yours", client::Replace::Nothing, now).unwrap();
    client.volume_rename("yours", "mine", client::Replace::Nothing, now).unwrap();
    client.volume_rename("other", hidden, client::Replace::Nothing, now).unwrap();
    assert_eq!(client.volume(hidden).unwrap().number, other.number);
    println!("all tried");
}

/// Through a mount its name went, and then nobody could remove it any more.
#[test]
fn a_contract_of_others_keeps_a_volume_from_being_removed_in_any_way() {
    if not_root() {
        return;
    }
    let daemon = daemon("preset = 'none'", 64);
    let client = &daemon.client;
    let access = Access { user: Some(OWNER.uid.to_string()), ..Access::default() };
    client
        .volume_create(&VolumeCreate { access, ..VolumeCreate::new("mine", Bytes::MIB) })
        .unwrap();
    let service = Service::Latency {
        len_bytes: Bytes::kib(4),
        within_ns: units::Duration::from_millis(100),
        every_ns: units::Duration::from_secs(1),
    };
    client.volume_service("mine", &service).unwrap();
    let socket = client.socket().to_str().unwrap();
    run_as(
        OWNER,
        daemon.dir.path(),
        "owners::as_who_removes_what_others_have_promised",
        &[("SLACKLINE_TEST_SOCKET", socket)],
    );
}
