//! Several programs use a daemon at once, its disks fail, it is killed, the power is cut:
//! whatever was answered is read, whatever was synced is there, and nobody sees bytes that
//! are not his.
//!
//! The disks are emulated ones over FUSE, with a write cache whose content a power cut
//! takes, sector by sector, as a seed has it: so it is the engine's flushes that are
//! proved, and io_uring under them. Each history is checked for an order that explains it
//! (`sim::history`). Where there is no FUSE, the disks are files, and the power stays on.
//!
//! SLACKLINE_DAEMON_HISTORIES sets how many histories, SLACKLINE_FIRST the seed of the
//! first. A seed says what programs try and when the daemon dies, not how threads take
//! turns: a history that was wrong is printed, and its seed finds its like.

mod programs;
#[path = "../support/mod.rs"]
mod support;
mod told;
mod world;

use programs::{Gauge, Program, Trade};
use sim::Random;
use sim::history::{self, Checked, Event, Kind};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use world::{End, World};

const SOCKET: &str = "SLACKLINE_TEST_SOCKET";
const PROGRAM: &str = "SLACKLINE_TEST_PROGRAM";

/// A test that hangs says so: many times what a history takes on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Histories that use one pool, one after the other.
const SHARE_A_POOL: u64 = 8;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |number| number.parse().unwrap())
}

#[test]
fn what_was_answered_is_read_and_what_was_synced_survives() {
    let histories = number("SLACKLINE_DAEMON_HISTORIES", 30);
    let first = number("SLACKLINE_FIRST", 1);
    let (mut total, mut ends) = (Checked::default(), BTreeMap::new());
    let mut world = None;
    for seed in first..first + histories {
        if (seed - first).is_multiple_of(SHARE_A_POOL) {
            drop(world.take());
        }
        let world = world.get_or_insert_with(|| World::new(seed));
        let (events, ended) = history(seed, world);
        match history::check(&events) {
            Ok(checked) => {
                total.cells += checked.cells;
                total.reads += checked.reads;
                total.stamped += checked.stamped;
            }
            Err(violation) => {
                let count = seed - first + 1;
                panic!("seed {seed}, history {count}, ended by {ended:?}: {violation}");
            }
        }
        ended.into_iter().for_each(|end| *ends.entry(end).or_insert(0u64) += 1);
        let count = seed - first + 1;
        if count.is_multiple_of(100) {
            eprintln!("{count} of {histories} histories");
        }
    }
    eprintln!("{histories} histories, ended by {ends:?}: {total:?}");
    // On average: a daemon that dies early has answered little.
    if histories >= 10 {
        assert!(total.stamped > histories * 100, "hardly anything was read: {total:?}");
    }
}

/// One history: programs on fresh volumes, over one to three lives of the daemon.
fn history(seed: u64, world: &mut World) -> (Vec<Event>, Vec<End>) {
    let mut random = Random::new(seed);
    let first_volume = seed as u32 * programs::VOLUMES;
    let (mut events, mut ends) = (Vec::new(), Vec::new());
    let mut number = 0;
    let lives = random.between(1, 3);
    let mut died = None;
    for life in 0..=lives {
        let daemon = world.serve(random.pick::<&str>(&["30ms", "100ms", "1s"]));
        if let Some(at_invoke) = died {
            let (kind, cells) = (Kind::Crash, 0..0);
            let at_return = Some(programs::tick());
            events.push(Event { client: 0, at_invoke, at_return, kind, volume: 0, cells });
        }
        let socket = world.socket();
        if life == 0 {
            world.make_volumes(first_volume, &mut random, &mut |event| events.push(event));
        } else if life == lives || random.chance(50) {
            // Else the power may go again before anything was looked at or written.
            programs::audit(&socket, first_volume, &mut |event| events.push(event));
        }
        if life == lives {
            world.delete_volumes(first_volume);
            world.end(daemon, End::Kill, &mut random);
            break;
        }
        let crew = crew(&mut random, first_volume, &mut number);
        let end = if life > 0 && random.chance(25) {
            let end = *random.pick(&[End::Kill, End::Cut]);
            died = Some(world.end(daemon, end, &mut random).0);
            end
        } else {
            let end = *random.pick(&End::ALL);
            let (at, told) = live(world, daemon, end, &crew, &mut random);
            events.extend(told);
            died = Some(at);
            end
        };
        ends.push(end);
    }
    (events, ends)
}

/// Who uses the pool during one life of the daemon.
fn crew(random: &mut Random, first_volume: u32, number: &mut u32) -> Vec<Program> {
    let from = random.below(300);
    let hot = (from, from + *random.pick(&[4, 16, 64, 256]));
    let mut trades = vec![Trade::Worker; random.between(2, 5) as usize];
    let others = [(Trade::Owner, 40), (Trade::Recorder, 40), (Trade::Player, 40)];
    trades.extend(others.into_iter().filter(|&(_, often)| random.chance(often)).map(|(t, _)| t));
    let program = |trade| {
        *number += 1;
        Program { number: *number, seed: random.bits(), trade, first_volume, hot }
    };
    trades.into_iter().map(program).collect()
}

/// Lets programs work until the daemon ends; when that began, and what they say.
fn live(
    world: &mut World,
    daemon: support::Daemon,
    end: End,
    crew: &[Program],
    random: &mut Random,
) -> (u64, Vec<Event>) {
    let (gauge, socket) = (Gauge::default(), world.socket());
    let tries = random.between(5, 250);
    let troubles = if random.chance(30) { random.between(1, 3) } else { 0 };
    let (processes, threads) = match random.chance(25) {
        true => crew.split_at(1),
        false => crew.split_at(0),
    };
    let mut children: Vec<_> = processes.iter().map(|program| spawn(program, &socket)).collect();
    std::thread::scope(|scope| {
        let run = |program: Program| {
            let (gauge, socket) = (&gauge, &socket);
            scope.spawn(move || {
                let mut told = Vec::new();
                programs::run(program, socket, gauge, &mut |event| told.push(event));
                told
            })
        };
        let running: Vec<_> = threads.iter().map(|&program| run(program)).collect();
        let begun = Instant::now();
        for trouble in 0..=troubles {
            let until = tries * (trouble + 1) / (troubles + 1);
            while gauge.tried.load(Ordering::Relaxed) < until
                && !running.iter().all(|thread| thread.is_finished())
            {
                assert!(begun.elapsed() < PATIENCE, "the programs hang: {crew:?}");
                std::thread::sleep(Duration::from_micros(200));
            }
            if trouble < troubles {
                world.trouble(random);
            }
        }
        std::thread::sleep(Duration::from_micros(random.below(5_000)));
        let (died, last) = world.end(daemon, end, random);
        gauge.over.store(true, Ordering::Relaxed);
        let mut told: Vec<Event> = last.into_iter().collect();
        for thread in running {
            while !thread.is_finished() {
                assert!(begun.elapsed() < PATIENCE, "a program hangs without a daemon: {crew:?}");
                std::thread::sleep(Duration::from_micros(200));
            }
            told.extend(thread.join().unwrap());
        }
        children.iter_mut().for_each(|child| told.extend(listen(child)));
        (died, told)
    })
}

/// Starts a program as a process of its own: this test again, told by its environment.
fn spawn(program: &Program, socket: &std::path::Path) -> Child {
    let Program { number, seed, trade: _, first_volume, hot } = program;
    let words = format!("{number} {seed} {first_volume} {} {}", hot.0, hot.1);
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["the_program_that_is_a_process", "--exact", "--nocapture"]);
    child.env(SOCKET, socket).env(PROGRAM, words);
    child.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// All that a process has said, and its end.
fn listen(child: &mut Child) -> Vec<Event> {
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let told = lines.map_while(Result::ok).filter_map(|line| told::event(&line)).collect();
    child.wait().unwrap();
    told
}

/// Works until its daemon is gone, and says what it did.
#[test]
fn the_program_that_is_a_process() {
    let (Ok(socket), Ok(words)) = (std::env::var(SOCKET), std::env::var(PROGRAM)) else {
        return; // not that process
    };
    let words: Vec<u64> = words.split(' ').map(|word| word.parse().unwrap()).collect();
    let [number, seed, first_volume, from, to] = words[..] else { panic!("{words:?}") };
    let (number, first_volume) = (number as u32, first_volume as u32);
    let program = Program { number, seed, trade: Trade::Worker, first_volume, hot: (from, to) };
    let mut told = Vec::new();
    programs::run(program, socket.as_ref(), &Gauge::default(), &mut |event| told.push(event));
    let mut out = std::io::stderr().lock();
    for event in told {
        writeln!(out, "{}", told::line(&event)).unwrap();
    }
}
