//! Every surface is asked about its corpus and about many inputs made of it.
//! SLACKLINE_INPUTS sets how many; slow surfaces are asked about a part of them.
#![allow(clippy::print_stdout)] // the counts, for whoever runs it with --nocapture

use fuzz::{SURFACES, Surface, driver};
use std::io::Write;
use std::time::Instant;

fn inputs() -> u64 {
    let set = std::env::var("SLACKLINE_INPUTS").ok();
    set.map_or(100_000, |n| n.parse().expect("SLACKLINE_INPUTS is a number"))
}

fn stands(name: &str) {
    let surface = Surface::named(name).expect("a surface of this name");
    let (count, begin) = (inputs() / surface.one_in, Instant::now());
    let taken = driver::run(surface, count, 1).unwrap_or_else(|found| {
        let prefix = format!("slackline-{name}-");
        let file = tempfile::Builder::new().prefix(&prefix).suffix(".input").tempfile();
        let (mut file, path) = file.expect("a place for the input").keep().expect("it stays");
        file.write_all(&found.input).expect("the input can be kept");
        panic!(
            "{name}, input {}: {}\nit is in {}: {}",
            found.after,
            found.said,
            path.display(),
            found.input.escape_ascii()
        );
    });
    let rate = count as f64 / begin.elapsed().as_secs_f64();
    println!("{name}: {count} inputs, {taken} taken, {rate:.0} a second");
    assert!(taken * 1000 >= count, "{name}: hardly any of the inputs mean anything");
}

macro_rules! surfaces {
    ($($test:ident: $name:literal),* $(,)?) => {
        $(#[test] fn $test() { stands($name); })*
        #[test]
        fn every_surface_has_a_test() {
            let tested = [$($name),*];
            let untested: Vec<_> =
                SURFACES.iter().filter(|surface| !tested.contains(&surface.name)).collect();
            assert!(untested.is_empty(), "{:?}", untested.iter().map(|s| s.name).collect::<Vec<_>>());
        }
    };
}

surfaces! {
    json: "json",
    requests: "requests",
    frames: "frames",
    nbd: "nbd",
    token: "token",
    http: "http",
    attribute: "attribute",
    tree: "tree",
    window_daemon: "window-daemon",
    window_program: "window-program",
    label: "label",
    log: "log",
    checkpoint: "checkpoint",
    pool: "pool",
    profile: "profile",
    model: "model",
    scenario: "scenario",
    plan: "plan",
    trace: "trace",
    config: "config",
    quantity: "quantity",
}

/// A decoder of frames that forgets to look at how long a body may be: the driver finds it
/// by the memory that it takes, and one that trusts a length, by its panic.
#[test]
fn planted_bugs_are_found() {
    fn hungry(input: &[u8]) -> bool {
        if let Some(head) = input.get(1..5) {
            let len = u32::from_le_bytes(head.try_into().expect("four bytes"));
            std::hint::black_box(Vec::<u8>::with_capacity(len as usize));
        }
        true
    }
    fn trusting(input: &[u8]) -> bool {
        if let [_, len, rest @ ..] = input {
            std::hint::black_box(&rest[..usize::from(*len).min(64)]);
        }
        true
    }
    let frames = *Surface::named("frames").expect("a surface");
    let found = driver::run(&Surface { ask: hungry, ..frames }, 100_000, 1).expect_err("too much");
    assert!(found.said.contains("bytes of memory"), "{}", found.said);
    let found = driver::run(&Surface { ask: trusting, ..frames }, 100_000, 1).expect_err("a panic");
    assert!(found.said.contains("out of range"), "{}", found.said);
}
