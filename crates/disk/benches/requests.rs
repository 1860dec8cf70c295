//! How many requests a second the models serve on one core of this machine: random
//! 4 KiB, 1 MiB blocks one after another, and 1 MiB blocks anywhere. What counts is the
//! time on the processor, so that a busy machine does not show. `SLACKLINE_QUICK` in the
//! environment: a few requests, which show that it runs and nothing else.
#![allow(clippy::print_stdout)] // the rates are the result

use disk::{Drive, Emulated, Model, Profile};
use units::{Access, Bytes, Command, Direction, Instant, Lba, SECTOR};

/// Seconds that this thread has had on a processor.
fn on_processor() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split(' ').next().and_then(|field| field.parse::<u64>().ok());
    ns.expect("a Linux with scheduler statistics") as f64 / 1e9
}

/// Serves a load and prints how fast that went.
fn run(model: &Model, load: &str, len: Bytes, anywhere: bool, count: u64) {
    let (mut drive, mut now, mut random) = (Emulated::new(model), Instant::EPOCH, 1u64);
    let (sectors, span) = (len / SECTOR, model.capacity() / SECTOR);
    let mut next = 0;
    let clock = on_processor();
    for _ in 0..count {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let lba = if anywhere { (random >> 20) % (span - sectors) } else { next };
        next = if next + 2 * sectors > span { 0 } else { next + sectors };
        let direction = if random & 3 == 0 { Direction::Write } else { Direction::Read };
        let access = Access { lba: Lba::new(lba), len, direction };
        now += drive.serve(now, &Command::Transfer(access));
    }
    let rate = count as f64 / (on_processor() - clock) / 1e6;
    println!("{:<20} {load:<22} {rate:6.2} million requests/s", model.name());
}

/// Predicts the same, to see what a bound costs.
fn predict(model: &Model, count: u64) {
    let (profile, mut random, mut total) = (Profile::of(model), 1u64, 0u64);
    let span = model.capacity() / SECTOR;
    let clock = on_processor();
    let mut head = Lba::new(0);
    for _ in 0..count {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let lba = Lba::new((random >> 20) % (span - 8));
        let access = Access { lba, len: SECTOR * 8, direction: Direction::Read };
        total ^= profile.bound(head, &Command::Transfer(access)).as_nanos();
        head = access.end();
    }
    let rate = count as f64 / (on_processor() - clock) / 1e6;
    println!("{:<20} {:<22} {rate:6.2} million bounds/s ({})", model.name(), "bound", total & 1);
}

fn main() {
    let quick = std::env::var_os("SLACKLINE_QUICK").is_some();
    let count = if quick { 1_000 } else { 400_000 };
    for name in Model::names() {
        let model = Model::named(name).expect("a model that comes with the program");
        run(&model, "4 KiB anywhere", Bytes::kib(4), true, count);
        run(&model, "1 MiB in order", Bytes::MIB, false, count);
        run(&model, "1 MiB anywhere", Bytes::MIB, true, count);
        predict(&model, count);
    }
}
