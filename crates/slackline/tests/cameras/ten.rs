//! Ten cameras beside greedy programs, while the daemon, cameras and the supervisor are killed in
//! turn.
//!
//! A camera here writes what time it is: each 16 bytes are a number that grows by one in a
//! sixth of a millisecond, however often it is started. So a gap says when nothing was recorded.
#![allow(clippy::print_stdout)] // the figures, for whoever runs it with --nocapture

use super::support::{Scratch, signal, wait_until};
use super::{Cameras, LINE, breaks, numbers};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Numbers in a second.
const EACH: u64 = 6_250;
const CAMERAS: usize = 10;

/// The number of now.
fn number() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(now.as_micros() * u128::from(EACH) / 1_000_000).unwrap()
}

fn camera(dir: &Scratch, name: &str, size: u64) -> String {
    let pid = dir.text(name);
    format!(
        "[[camera]]\nname = '{name}'\nrate = '200kB/s'\nrate_max = '400kB/s'\nsize = '{size}B'\n\
         buffer = '{size}B'\n\
         command = ['perl', '-e', '''use Time::HiRes qw(time sleep); $| = 1;\n\
         open(my $pid, q(>), q({pid})); print $pid $$; close $pid;\n\
         my $n = int(time * {EACH}); while (1) {{ sleep 0.05; my $m = int(time * {EACH});\n\
         print join q(), map {{ sprintf qq(%015d\\n), $_ }} $n .. $m - 1; $n = $m; }}''']\n"
    )
}

/// The events of these kinds of a camera.
fn events<'a>(
    told: &'a [Value],
    name: &'a str,
    kinds: &'a [&str],
) -> impl Iterator<Item = &'a Value> {
    told.iter().filter(move |event| {
        event["camera"] == name && kinds.contains(&event["event"].as_str().unwrap())
    })
}

/// The number of the end of the second in which an event was told, at `began` or within a day of it.
fn end(event: &Value, began: u64) -> u64 {
    let time = event["time"].as_str().unwrap();
    let [hour, minute, second] = [11, 14, 17].map(|at| time[at..at + 2].parse::<u64>().unwrap());
    let day = 24 * 60 * 60;
    let behind = (day + hour * 3600 + minute * 60 + second - began / EACH % day) % day;
    (began / EACH + behind + 1) * EACH
}

/// Says that it is over, also where a test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What was killed when, and of each camera what was durable before.
#[derive(Debug)]
enum Killed {
    Daemon,
    Camera(usize, u64),
    Supervisor(u64, Vec<u64>),
}

/// What is missing was not acknowledged, and is of when a camera or the supervisor was killed, and from
/// before the camera gave bytes again. The daemon's end costs no byte, and nobody who waits for the
/// daemon is refused, but where this machine is too late for a contract just then.
#[test]
fn ten_cameras_lose_nothing_that_was_acknowledged_whoever_is_killed() {
    let seconds = std::env::var("SLACKLINE_CAMERA_SECONDS").ok().and_then(|n| n.parse().ok());
    let seconds: u64 = seconds.unwrap_or(12);
    let dir = Scratch::new();
    // Where the machine is busy with other things it takes minutes more. No buffer fills before.
    let size = (seconds + 600) * EACH * LINE;
    let pool = size * CAMERAS as u64 + (256 << 20);
    let disks = dir.make_pool_of(&["a"], &format!("{pool}B"));
    // Commits in a short time are a contract that a busy machine does not keep.
    let serve = || dir.try_serve(&disks, &["--commit-interval", "1s"]).expect("a daemon");
    let mut daemon = Some(serve());
    dir.run(&["volume", "create", "index", "--size", "64MiB"]).succeeded();
    dir.run_with(&["record", "index", "--rate", "20MB/s"], &vec![7; 64 << 20]).recorded();
    let names: Vec<String> = (0..CAMERAS).map(|at| format!("cam{at}")).collect();
    let file: String = names.iter().map(|name| camera(&dir, name, size)).collect();
    let first = number();
    let mut cameras = Cameras::start(&dir, &file);
    let durable = |cameras: &Cameras<'_>| -> Vec<u64> {
        names.iter().map(|name| cameras.durable(name)).collect()
    };
    wait_until(|| durable(&cameras).iter().all(|&bytes| bytes > 100_000));

    let (over, mut killed, began) = (AtomicBool::new(false), Vec::new(), Instant::now());
    // What each supervisor told.
    let mut told = Vec::new();
    std::thread::scope(|scope| {
        let _over = Over(&over);
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    dir.run(&["export", "index", "/dev/null"]); // fails while nobody serves
                }
            });
        }
        let pause = Duration::from_secs((seconds / 30).clamp(1, 10));
        let mut turn = 0;
        while began.elapsed() < Duration::from_secs(seconds) || turn % 3 != 0 {
            std::thread::sleep(pause);
            let before = durable(&cameras);
            match turn % 3 {
                0 => {
                    killed.push(Killed::Daemon);
                    daemon.take().expect("it serves").kill();
                    wait_until(|| cameras.seen("cam0")["state"] == "no daemon");
                    daemon = Some(serve());
                }
                1 => {
                    let at = turn / 3 % CAMERAS;
                    killed.push(Killed::Camera(at, number()));
                    let pid = std::fs::read_to_string(dir.path(&names[at])).unwrap();
                    signal(pid.trim().parse().unwrap(), "KILL");
                }
                _ => {
                    killed.push(Killed::Supervisor(number(), before.clone()));
                    cameras.kill();
                    told.extend(super::told(&cameras.events));
                    cameras = Cameras::start(&dir, &file);
                }
            }
            wait_until(|| {
                let now = durable(&cameras);
                now.iter().zip(&before).all(|(now, before)| *now > before + EACH * LINE)
            });
            turn += 1;
        }
    });
    let acknowledged = durable(&cameras);
    // A camera may give bytes again as the last thing.
    let events_of_last = cameras.events.clone();
    cameras.end();
    told.extend(super::told(&events_of_last));

    let (mut missing, mut of_host) = (0, 0);
    for (at, name) in names.iter().enumerate() {
        for refused in events(&told, name, &["refused", "full", "failed", "losing"]) {
            let why = refused["detail"].as_str().unwrap();
            assert!(why.starts_with("refused: the host takes "), "{refused:?}");
            of_host += 1;
        }
        let ups: Vec<u64> = events(&told, name, &["up"]).map(|event| end(event, first)).collect();
        let numbers = numbers(&dir, name);
        assert!(numbers.len() as u64 * LINE >= acknowledged[at], "{name}");
        for (last, next) in breaks(&numbers) {
            assert!(next > last, "{name}: {next} comes behind {last}");
            let place = numbers.partition_point(|number| *number <= last) as u64 * LINE;
            // Up to when it was killed all is there, but for what it had not yet written; and all
            // from when it was started again, which is before it gives bytes.
            let again = |when: u64| {
                next > when && ups.iter().find(|&&up| up > when).is_some_and(|&up| next < up)
            };
            let explains = |killed: &Killed| match killed {
                Killed::Daemon => false,
                Killed::Camera(which, when) => {
                    *which == at && last + 5 * EACH >= *when && again(*when)
                }
                Killed::Supervisor(when, durable) => {
                    place >= durable[at] && last <= *when && again(*when)
                }
            };
            assert!(
                killed.iter().any(explains),
                "{name}: nothing between {last} and {next}; {killed:?}\n{told:#?}"
            );
            missing += next - last - 1;
        }
    }
    let of = |kind: fn(&Killed) -> bool| killed.iter().filter(|killed| kind(killed)).count();
    println!(
        "{} s, {} bytes recorded, {} missing; killed: daemon {}, cameras {}, supervisor {}; \
         refused while the host was late: {of_host}",
        began.elapsed().as_secs(),
        acknowledged.iter().sum::<u64>(),
        missing * LINE,
        of(|killed| matches!(killed, Killed::Daemon)),
        of(|killed| matches!(killed, Killed::Camera(..))),
        of(|killed| matches!(killed, Killed::Supervisor(..))),
    );
}
