//! What a user may hold, and that nobody touches what is another's. The fake pool gives
//! 10 MB/s in all: 1 MB/s is 10 % of its disk.

#![allow(clippy::print_stdout)] // what another process tried, and what was not tried

use crate::nbd::{self, Nbd};
use crate::support;
use crate::support::{Running, contract};
use client::control::{Contract, HolderKind, Priority, Service};
use client::units::{Bytes, Duration, Rate};
use client::{Client, Code};
use daemon::config::SocketMode;
use daemon::quotas::{Peer, Quotas, Rules, Whole, own_uid};
use daemon::serve::ServeOptions;
use node::Op;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

const WHOLE: Whole = Whole { memory: Bytes::mib(64), space: Bytes::mib(100) };

/// A daemon with these rules, for which nobody is an administrator.
fn daemon(rules: &str) -> Running {
    let rules: Rules = toml::from_str(rules).unwrap();
    assert_eq!(rules.wrong(), None);
    let quotas = Quotas::new(&rules, WHOLE, vec![]);
    Running::start_by(ServeOptions { quotas, ..ServeOptions::from(SocketMode(0o666)) })
}

fn at(megabytes: u64) -> Contract {
    Contract { rate_bytes_per_second: Rate::per_second(megabytes * 1_000_000), ..contract() }
}

/// A volume's service of so many megabytes a second.
fn rate(megabytes: u64) -> Service {
    Service::Rate {
        rate_bytes_per_second: Rate::per_second(megabytes * 1_000_000),
        block_bytes: Bytes::kib(64),
        period_ns: Duration::from_secs(1),
    }
}

#[test]
fn nobody_gets_more_of_a_disk_than_the_quota_and_a_refusal_says_who_has_what() {
    let daemon = daemon("[default]\ndisk_share = '50%'");
    let client = &daemon.client;
    let first = client.reader("v", at(3), Bytes::ZERO).unwrap();
    let error = client.reader("v", at(3), Bytes::ZERO).unwrap_err();
    let problem = error.problem().unwrap();
    assert_eq!(problem.code, Code::Quota);
    for wanted in ["would have 60.00 % of disk 0's time", "may have 50.00 %", "user "] {
        assert!(problem.detail.contains(wanted), "{}", problem.detail);
    }
    assert!(problem.next_step.contains("disk_share"), "{}", problem.next_step);
    assert_eq!(daemon.pool.state().last_stream, 1, "it was refused before anything was opened");
    let error = client.stream_change(first.stream(), at(6)).unwrap_err();
    assert_eq!(error.code(), Some(Code::Quota));
    assert_eq!(client.stream(first.stream()).unwrap().contract, at(3), "as it was");
    client.stream_change(first.stream(), at(5)).unwrap();
    let told = client.quotas().unwrap();
    let me = told.holders.iter().find(|one| one.kind == HolderKind::User).unwrap();
    assert_eq!((me.id, me.streams, me.shares[0].share_ppm), (own_uid(), 1, 500_000));
    assert_eq!(me.limits.disk_share_ppm, Some(500_000));
    first.close().unwrap();
    client.reader("v", at(5), Bytes::ZERO).unwrap();
}

/// Between the look at a contract's terms and its opening the volume may change: what came
/// of it is held to the quota once more.
#[test]
fn who_gets_more_than_he_was_told_is_closed_again() {
    let daemon = daemon("[default]\ndisk_share = '50%'");
    let client = &daemon.client;
    daemon.pool.state().hides_terms = true;
    let first = client.reader("v", at(3), Bytes::ZERO).unwrap();
    let error = client.reader("v", at(3), Bytes::ZERO).unwrap_err();
    assert_eq!(error.code(), Some(Code::Quota));
    drop(daemon.pool.wait(|state| state.last_stream == 2 && state.streams.len() == 1));
    let error = client.stream_change(first.stream(), at(6)).unwrap_err();
    assert_eq!(error.code(), Some(Code::Quota));
    assert_eq!(client.stream(first.stream()).unwrap().contract, at(3), "as it was");
    first.close().unwrap();
    client.volume_service("v", &rate(4)).unwrap();
    let error = client.volume_service("v", &rate(6)).unwrap_err();
    assert_eq!(error.code(), Some(Code::Quota));
    assert_eq!(client.volume("v").unwrap().service, rate(4), "as it was");
}

#[test]
fn a_volumes_contract_counts_as_well() {
    let daemon = daemon("[default]\ndisk_share = '50%'");
    daemon.client.volume_service("v", &rate(4)).unwrap();
    let error = daemon.client.volume_service("v", &rate(6)).unwrap_err();
    assert_eq!(error.code(), Some(Code::Quota));
    assert_eq!(daemon.client.volume("v").unwrap().service, rate(4), "as it was");
    daemon.client.volume_service("v", &rate(5)).unwrap();
    let error = daemon.client.reader("v", at(2), Bytes::ZERO).unwrap_err();
    assert_eq!(error.code(), Some(Code::Quota));
    daemon.client.volume_service("v", &Service::default()).unwrap();
    daemon.client.reader("v", at(2), Bytes::ZERO).unwrap();
}

/// A user whose requests may not be interactive gave his volume that priority, and had it for all
/// requests that state none.
#[test]
fn a_volume_is_given_no_priority_that_its_giver_may_not_state() {
    let best_effort = |priority| Service::BestEffort { priority };
    let [interactive, normal, background] =
        [Priority::Interactive, Priority::Normal, Priority::Background].map(best_effort);
    let held = daemon("[default]\npriority = 'normal'");
    let error = held.client.volume_service("v", &interactive).unwrap_err();
    assert_eq!(error.code(), Some(Code::Quota), "{error}");
    assert!(error.next_step().contains("--priority normal"), "{}", error.next_step());
    assert_eq!(held.client.volume("v").unwrap().service, normal, "as it was");
    held.client.volume_service("v", &background).unwrap();
    held.client.volume_service("v", &normal).unwrap();
    // What takes a contract away is never refused.
    let lower = daemon("[default]\npriority = 'background'");
    lower.client.volume_service("v", &rate(1)).unwrap();
    lower.client.volume_service("v", &normal).unwrap();
    let error = lower.client.volume_service("v", &interactive).unwrap_err();
    assert_eq!(error.code(), Some(Code::Quota), "{error}");
    let free = daemon("[default]\npriority = 'interactive'");
    free.client.volume_service("v", &interactive).unwrap();
}

/// A service is answered when it is durable, which may take long. Before, whoever opened or
/// changed a stream, or took a contract for a handle, waited for the commits of others.
#[test]
fn nobody_waits_for_the_commit_of_anothers_service() {
    let daemon = daemon("[default]\ndisk_share = '50%'");
    let client = &daemon.client;
    client.volume_service("v", &rate(3)).unwrap();
    daemon.pool.state().hold_commits = true;
    daemon.pool.state().hides_terms = true;
    // Looks so often that who waits for nobody has long been served; who waits is found out.
    let comes_to = |done: &dyn Fn(&support::State) -> bool| {
        (0..5000).any(|_| client.status().is_ok() && done(&daemon.pool.state()))
    };
    std::thread::scope(|threads| {
        let fits = threads.spawn(|| client.volume_service("v", &rate(4)));
        let is_begun = comes_to(&|state| state.uncommitted.len() == 1);
        let opening = threads.spawn(|| client.reader("v", at(1), Bytes::ZERO));
        let is_opened = comes_to(&|state| state.last_stream == 1);
        // Refused only afterwards: what it had before is in force again at once, and theirs.
        let too_much = threads.spawn(|| client.volume_service("v", &rate(5)));
        let is_taken_back = comes_to(&|state| state.uncommitted.len() == 3);
        let one_more = threads.spawn(|| client.reader("v", at(1), Bytes::ZERO));
        let is_closed_again = comes_to(&|state| state.closed.len() == 1);
        let is_answered = (fits.is_finished(), too_much.is_finished());
        daemon.pool.release();
        let seen = [is_begun, is_opened, is_taken_back, is_closed_again];
        assert_eq!(seen, [true; 4], "somebody waited for a commit");
        assert_eq!(is_answered, (false, false), "they were told before it was durable");
        fits.join().unwrap().unwrap();
        assert_eq!(too_much.join().unwrap().unwrap_err().code(), Some(Code::Quota));
        let error = one_more.join().unwrap().unwrap_err();
        assert_eq!(error.code(), Some(Code::Quota), "a service counts before it is durable");
        drop(opening.join().unwrap().unwrap());
    });
    assert_eq!(client.volume("v").unwrap().service, rate(4));
    assert_eq!(daemon.pool.state().volumes["v"].given_by, Some(own_uid()));
}

/// The pool knows who gave a volume its service. Before, the daemon kept it by the volume's
/// name, and a volume that was deleted and made again was still its former user's.
#[test]
fn a_service_is_whose_the_pool_says_also_on_a_volume_made_anew() {
    const OTHER: u32 = 4242;
    let daemon = daemon("[default]\ndisk_share = '50%'");
    let client = &daemon.client;
    let anew = |megabytes: u64, given_by: u32| {
        let service = daemon::convert::service(&rate(megabytes));
        let mut state = daemon.pool.state();
        let before = state.volumes.remove("v").unwrap();
        let volume = support::Volume { service, given_by: Some(given_by), ..before };
        state.volumes.insert("v".into(), volume);
    };
    let has = |user: u32| {
        let told = client.quotas().unwrap().holders;
        let found = told.iter().find(|one| (one.kind, one.id) == (HolderKind::User, user));
        found.map_or(0, |one| one.shares.iter().map(|share| share.share_ppm).sum::<u64>())
    };
    client.volume_service("v", &rate(4)).unwrap();
    assert_eq!((has(own_uid()), has(OTHER)), (400_000, 0));
    anew(3, OTHER);
    assert_eq!((has(own_uid()), has(OTHER)), (0, 300_000));
    client.reader("v", at(5), Bytes::ZERO).unwrap().close().unwrap();
    let refused = [
        client.volume_service("v", &Service::default()).unwrap_err(),
        client.volume_delete("v").unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.code(), Some(Code::Forbidden), "{error}");
        assert!(error.to_string().contains("belongs to user 4242"), "{error}");
    }
    let mine = Quotas::new(&Rules::default(), WHOLE, vec![]);
    let sessions = daemon::sessions::Sessions::new(daemon::pool::Entry(daemon.pool.clone()).own());
    let who = mine.who_has(node::DiskIndex(0), &*daemon.pool, &sessions);
    assert_eq!(who, "user 4242 30.00 %");
    anew(2, own_uid());
    assert_eq!((has(own_uid()), has(OTHER)), (200_000, 0));
    client.volume_service("v", &Service::default()).unwrap();
    client.volume_delete("v").unwrap();
}

/// A contract of a handle's own is first a matter of whether he may read or write the volume:
/// before, his quota was, and its refusal told him that the volume is there.
#[test]
fn a_quota_does_not_tell_of_a_volume_that_somebody_may_not_know_of() {
    let daemon = daemon("[default]\ndisk_share = '50%'");
    let contract = client::InTime {
        len: Bytes::kib(4),
        within: Duration::from_millis(10),
        every: Duration::from_millis(10),
    };
    let refusal = || daemon.client.best_effort_in_time("v", contract).err().unwrap();
    assert_eq!(refusal().code(), Some(Code::Quota), "it would have the whole disk");
    let whose = node::Ownership { uid: 4242, gid: 4242, mode: 0o600 };
    daemon.pool.state().volumes.get_mut("v").unwrap().ownership = whose;
    let hidden = refusal();
    daemon.pool.state().volumes.remove("v");
    assert_ne!(hidden.code(), Some(Code::Quota));
    assert_eq!(hidden.to_string(), refusal().to_string(), "as if there were none");
}

#[test]
fn windows_and_streams_are_counted_and_those_of_a_group_together() {
    let rules = format!("[default]\nmemory = '16KiB'\n[group.{}]\nstreams = 1", own_gid());
    let daemon = daemon(&rules);
    let first = daemon.client.reader("v", at(1), Bytes::ZERO).unwrap();
    let error = daemon.client.reader("v", at(1), Bytes::ZERO).unwrap_err();
    assert!(error.to_string().contains("group "), "{error}");
    assert!(error.to_string().contains("2 streams open, and may have 1"), "{error}");
    first.close().unwrap();
    let large = Contract { block_bytes: Bytes::kib(16), ..at(1) };
    let error = daemon.client.reader("v", large, Bytes::ZERO).unwrap_err();
    assert!(error.to_string().contains("32 KiB of memory for windows"), "{error}");
}

/// A stream has what it was promised until the pool has closed it.
#[test]
fn a_stream_that_is_being_closed_still_counts() {
    let daemon = daemon("[default]\nstreams = 1");
    let first = daemon.client.reader("v", at(1), Bytes::ZERO).unwrap();
    daemon.pool.state().hold_closes = true;
    drop(first);
    drop(daemon.pool.wait(|state| !state.held.is_empty()));
    let error = daemon.client.reader("v", at(1), Bytes::ZERO).unwrap_err();
    assert_eq!(error.code(), Some(Code::Quota));
    daemon.pool.release();
    drop(daemon.pool.wait(|state| state.streams.is_empty()));
    daemon.client.reader("v", at(1), Bytes::ZERO).unwrap();
}

/// What would have fitted is searched for after the pool has refused, for seconds: others are not
/// held up by it, be it one that opens or one whose volume grows.
#[test]
fn a_refusal_that_takes_its_time_holds_up_nobody_else() {
    let quotas = Quotas::new(&Rules::default(), WHOLE, vec![own_uid()]);
    let daemon =
        Running::start_by(ServeOptions { quotas, ..ServeOptions::from(SocketMode(0o666)) });
    let client = daemon.client.clone().without_shared_windows();
    let stream = client.reader("v", at(1), Bytes::ZERO).unwrap();
    daemon.pool.state().hold_refusals = true;
    std::thread::scope(|scope| {
        let refused = scope.spawn(|| client.reader("v", at(100), Bytes::ZERO).unwrap_err());
        drop(daemon.pool.wait(|state| state.held.len() == 1));
        let changed = scope.spawn(|| client.stream_change(stream.stream(), at(200)).unwrap_err());
        drop(daemon.pool.wait(|state| state.held.len() == 2));
        let other = client.reader("v", at(1), Bytes::ZERO).unwrap();
        client.volume_resize("v", Bytes::mib(2)).unwrap();
        other.close().unwrap();
        daemon.pool.release();
        for error in [refused.join().unwrap(), changed.join().unwrap()] {
            assert_eq!(error.code(), Some(Code::Refused), "{error}");
        }
    });
}

/// A stream that was opened and is over the quota is closed again, and what a stream was changed to
/// is taken back. Before, nobody could open, change or resize anything until that was done: for
/// ever, where a writer is closed on a disk that hangs. What is being closed counts as before.
#[test]
fn nobody_waits_while_what_is_over_the_quota_is_taken_back() {
    let daemon = daemon("[default]\ndisk_share = '50%'");
    let client = daemon.client.clone().without_shared_windows();
    let first = client.reader("v", at(2), Bytes::ZERO).unwrap();
    let second = client.reader("v", at(1), Bytes::ZERO).unwrap();
    let other = support::Volume { size: 1 << 20, ..support::Volume::default() };
    daemon.pool.state().volumes.insert("w".into(), other);
    daemon.pool.state().hides_terms = true;
    daemon.pool.state().hold_closes = true;
    daemon.pool.state().hold_changes_to = Some(Rate::per_second(2_000_000));
    let comes_to = |done: &dyn Fn(&support::State) -> bool| {
        (0..5000).any(|_| client.status().is_ok() && done(&daemon.pool.state()))
    };
    let holds = |count: usize| comes_to(&|state| state.held.len() == count);
    std::thread::scope(|threads| {
        let refused = |megabytes: u64| {
            let client = &client;
            threads.spawn(move || client.reader("v", at(megabytes), Bytes::ZERO).unwrap_err())
        };
        let opened = refused(3);
        let mut seen = vec![holds(1)];
        let changed = threads.spawn(|| client.stream_change(first.stream(), at(9)).unwrap_err());
        seen.push(holds(2));
        // It would fit without the one that is being closed.
        let one_more = refused(1);
        seen.push(holds(3));
        let resized = threads.spawn(|| client.volume_resize("w", Bytes::mib(2)));
        seen.push(comes_to(&|state| state.volumes["w"].size == 2 << 20));
        let is_answered = [&opened, &changed, &one_more].map(|thread| thread.is_finished());
        daemon.pool.release();
        assert_eq!(seen, [true; 4], "somebody waited");
        assert_eq!(is_answered, [false; 3]);
        for error in [opened, changed, one_more].map(|thread| thread.join().unwrap()) {
            assert_eq!(error.code(), Some(Code::Quota), "{error}");
        }
        resized.join().unwrap().unwrap();
    });
    assert_eq!(client.stream(first.stream()).unwrap().contract, at(2), "as it was");
    drop(second);
}

/// While the pool takes its time over both, each counts for nobody: together they are over the
/// quota.
#[test]
fn of_two_that_are_opened_at_once_one_is_granted() {
    let daemon = daemon("[default]\ndisk_share = '50%'");
    let client = daemon.client.clone().without_shared_windows();
    daemon.pool.state().hold_opens = true;
    std::thread::scope(|threads| {
        let both = [(); 2].map(|()| threads.spawn(|| client.reader("v", at(3), Bytes::ZERO)));
        drop(daemon.pool.wait(|state| state.held.len() == 2));
        daemon.pool.release();
        let opened = both.map(|thread| thread.join().unwrap());
        let granted: Vec<_> = opened.iter().filter_map(|one| one.as_ref().ok()).collect();
        assert_eq!(granted.len(), 1);
        let refused = opened.iter().find_map(|one| one.as_ref().err()).unwrap();
        assert_eq!(refused.code(), Some(Code::Quota), "{refused}");
    });
}

fn own_gid() -> u32 {
    std::os::unix::fs::MetadataExt::gid(&std::fs::metadata("/proc/self").unwrap())
}

#[test]
fn best_effort_of_one_user_is_held_over_all_connections() {
    let daemon = daemon(
        "[default]\nbest_effort_connections = 2\nbest_effort_requests = 3\npriority = 'normal'",
    );
    daemon.pool.state().hold_best_effort = true;
    let mut one = daemon.client.best_effort_as("v", Priority::Interactive).unwrap();
    let mut two = daemon.client.best_effort("v").unwrap();
    let error = daemon.client.best_effort("v").unwrap_err();
    assert_eq!(error.code(), Some(Code::Quota));
    assert!(error.to_string().contains("2 best-effort connections"), "{error}");
    for _ in 0..3 {
        one.begin_read(Bytes::ZERO, Bytes::kib(4)).unwrap();
    }
    drop(daemon.pool.wait(|state| state.held.len() == 3));
    // The quota is used up: these wait in the socket until others are done.
    for _ in 0..3 {
        two.begin_read(Bytes::ZERO, Bytes::kib(4)).unwrap();
    }
    let me = daemon.client.quotas().unwrap().holders.remove(0);
    assert_eq!((me.best_effort_connections, me.best_effort_requests), (2, 3));
    assert_eq!(daemon.pool.state().held.len(), 3);
    daemon.pool.release();
    for handle in [&mut one, &mut two] {
        while handle.outstanding() > 0 {
            handle.take().unwrap().result.unwrap();
        }
    }
    let stated = daemon.pool.state().stated.clone();
    assert!(!stated.contains(&Some(node::Priority::Interactive)), "{stated:?}");
    assert!(stated.contains(&Some(node::Priority::Normal)), "{stated:?}");
}

/// Operations for which a volume's contract has memory set aside do not wait behind the best
/// effort of their own user; those beyond them do, and those that leave the contract.
#[test]
fn a_contract_does_not_wait_for_its_users_part() {
    let daemon = daemon("[default]\nbest_effort_connections = 9\nbest_effort_requests = 3");
    let under_contract = support::Volume { size: 64 << 10, operations: 2, ..Default::default() };
    daemon.pool.state().volumes.insert("p".into(), under_contract);
    daemon.pool.state().hold_best_effort = true;
    let mut greedy = daemon.client.best_effort("v").unwrap();
    for _ in 0..3 {
        greedy.begin_read(Bytes::ZERO, Bytes::kib(4)).unwrap();
    }
    drop(daemon.pool.wait(|state| state.held.len() == 3));
    let mut background = daemon.client.best_effort_as("p", Priority::Background).unwrap();
    background.begin_read(Bytes::ZERO, Bytes::kib(4)).unwrap();
    let mut kept = daemon.client.best_effort("p").unwrap();
    for _ in 0..3 {
        kept.begin_read(Bytes::ZERO, Bytes::kib(4)).unwrap();
    }
    drop(daemon.pool.wait(|state| state.held.len() >= 5));
    // What more the daemon would take it would have by the time of some answers.
    for _ in 0..20 {
        daemon.client.status().unwrap();
    }
    let state = daemon.pool.state();
    let leaves = Some(node::Priority::Background);
    let left = |op: &Op| matches!(op, Op::Read { priority, .. } if *priority == leaves);
    assert!(state.held.len() == 5 && !state.held.iter().any(|(op, _)| left(op)));
    drop(state);
    daemon.pool.release();
    for handle in [&mut greedy, &mut background, &mut kept] {
        while handle.outstanding() > 0 {
            handle.take().unwrap().result.unwrap();
        }
    }
}

/// The same for a read of a block device's client that is answered in one reply, though it lies in two MiB:
/// the pool is asked for one of its parts after the other.
#[test]
fn a_read_in_one_reply_under_a_contract_does_not_wait_for_its_users_part() {
    let daemon = daemon("[default]\nbest_effort_connections = 9\nbest_effort_requests = 3");
    let size = 2 << 20;
    let data = vec![7; size as usize];
    let under_contract = support::Volume { size, data, operations: 1, ..Default::default() };
    daemon.pool.state().volumes.insert("p".into(), under_contract);
    let path = wire::socket::nbd_path(daemon.client.socket());
    let mut device = Nbd::open(&path, "p", false).unwrap();
    daemon.pool.state().hold_best_effort = true;
    let mut greedy = daemon.client.best_effort("v").unwrap();
    for _ in 0..3 {
        greedy.begin_read(Bytes::ZERO, Bytes::kib(4)).unwrap();
    }
    drop(daemon.pool.wait(|state| state.held.len() == 3));
    let (offset, len) = ((1 << 20) - 4096, 8192);
    let cookie = device.begin(nbd::READ, 0, offset, len, &[]);
    drop(daemon.pool.wait(|state| state.held.len() == 4));
    daemon.pool.release();
    assert_eq!(device.end(cookie), Ok(vec![7; len as usize]));
    while greedy.outstanding() > 0 {
        greedy.take().unwrap().result.unwrap();
    }
}

/// Not a test by itself: what another user tries, in a process of its own.
#[test]
fn as_another_user() {
    let Ok(socket) = std::env::var("SLACKLINE_TEST_SOCKET") else { return };
    let number = |name: &str| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let stream = number("SLACKLINE_TEST_STREAM");
    let client = Client::connect(socket).unwrap();
    let forbidden = [
        client.stream_close(stream).unwrap_err(),
        client.stream_change(stream, at(1)).unwrap_err(),
        client.volume_service("v", &Service::default()).unwrap_err(),
        client.volume_delete("v").unwrap_err(),
        client.disk_reprofile(0).unwrap_err(),
    ];
    for error in forbidden {
        assert_eq!(error.code(), Some(Code::Forbidden), "{error}");
    }
    // Its bytes do not go to somebody else, either.
    let mut socket =
        std::os::unix::net::UnixStream::connect(wire::socket::data_path(client.socket())).unwrap();
    let hello = wire::frame::Head::HelloStream { version: wire::frame::VERSION, stream };
    std::io::Write::write_all(&mut socket, &hello.encode(0)).unwrap();
    let mut head = [0; wire::frame::HEAD_LEN];
    std::io::Read::read_exact(&mut socket, &mut head).unwrap();
    let (head, _) = wire::frame::Head::decode(&head).unwrap();
    assert_eq!(head, wire::frame::Head::Failed { tag: 0, code: Code::Forbidden });
    // Its own it may, and is held to its quota.
    let mine = client.reader("v", at(1), Bytes::ZERO).unwrap();
    let error = client.reader("v", at(1), Bytes::ZERO).unwrap_err();
    assert_eq!(error.code(), Some(Code::Quota), "{error}");
    client.stream_change(mine.stream(), at(2)).unwrap();
    client.stream_close(mine.stream()).unwrap();
    println!("all tried");
}

/// Only root can be two users.
#[test]
fn another_user_may_not_close_change_or_carry_a_stream_unless_it_is_root() {
    if own_uid() != 0 {
        return skips::not_run("needs root, to be two users");
    }
    let rules: Rules = toml::from_str("[default]\nstreams = 1").unwrap();
    let quotas = Quotas::new(&rules, WHOLE, vec![0]);
    let daemon =
        Running::start_by(ServeOptions { quotas, ..ServeOptions::from(SocketMode(0o666)) });
    let stream = daemon.client.reader("v", at(1), Bytes::ZERO).unwrap();
    let unlimited = daemon.client.reader("v", at(1), Bytes::ZERO).unwrap();
    daemon.client.volume_service("v", &rate(1)).unwrap();
    // Where everybody may read and run it.
    let program = daemon.dir.path().join("program");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    for path in [program.as_path(), daemon.dir.path()] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let output = std::process::Command::new(&program)
        .args(["--exact", "quotas::as_another_user", "--nocapture"])
        .env("SLACKLINE_TEST_SOCKET", daemon.client.socket())
        .env("SLACKLINE_TEST_STREAM", stream.stream().to_string())
        .uid(65_534)
        .gid(65_534)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("all tried"), "{said}\n{complained}");
    assert_eq!(daemon.client.streams().unwrap().len(), 2);
    daemon.client.stream_close(unlimited.stream()).unwrap();
}

/// Whoever has come by a token leaves half of the quota to its maker, and has a limit also where
/// its maker has none.
#[test]
fn best_effort_by_token_leaves_its_maker_half() {
    let rules: Rules = toml::from_str("[default]\nbest_effort_connections = 4").unwrap();
    let quotas = Quotas::new(&rules, WHOLE, vec![0]);
    for uid in [0, 1000] {
        let key = token::Key::new([7; token::KEY_LEN]);
        let grant = token::Token::make(&key, 1, uid, []).unwrap().checked(&key).unwrap();
        let own = Peer { uid, gid: uid, groups: [uid].into(), scope: None };
        let bearer = Peer { scope: Some(grant.into()), ..own.clone() };
        let mut by_token = vec![quotas.connect(&bearer).unwrap(), quotas.connect(&bearer).unwrap()];
        let refused = quotas.connect(&bearer).err().expect("half of four are there");
        assert_eq!(refused.code, Code::Quota);
        assert!(refused.detail.starts_with("tokens of user"), "{}", refused.detail);
        let two: Vec<_> = (0..2).map(|_| quotas.connect(&own).unwrap()).collect();
        let more = quotas.connect(&own);
        assert_eq!(more.is_ok(), uid == 0, "an administrator has no quota himself");
        drop((two, more, by_token.pop()));
        by_token.push(quotas.connect(&bearer).unwrap());
    }
}
