//! What both worlds are asked for.

use disk::{Model, Profile};
use node::{Config, Contract, Policy};
use sim::Random;
use std::time::Duration;
use units::{Bytes, Rate};

/// The disk.
const MODEL: &str = "quantum-atlas-ii";
pub const CAPACITY: Bytes = Bytes::GIB;
/// At most so many films run.
pub const FILMS_MAX: usize = 3;
/// What the reads without a contract read, and how much at a time.
pub const FILES: Bytes = Bytes::mib(48);
pub const READ: Bytes = Bytes::kib(8);
const READS_APART: Duration = Duration::from_millis(50);

/// A read without a contract.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// Since the begin.
    pub at: Duration,
    /// Where in the volume.
    pub offset: Bytes,
}

/// The load, and how long it lasts.
pub struct Load {
    pub time: Duration,
    pub reads: Vec<Read>,
    pub model: Model,
    pub profile: Profile,
}

impl Load {
    /// The load of so long; always the same.
    pub fn new(time: Duration) -> Self {
        let mut random = Random::new(71);
        let mut reads = Vec::new();
        let mut at = Duration::ZERO;
        loop {
            // Exponential gaps make arrivals independent of each other.
            let uniform = (random.below(1 << 53) + 1) as f64 / (1u64 << 53) as f64;
            at += READS_APART.mul_f64(-uniform.ln());
            if at >= time {
                break;
            }
            reads.push(Read { at, offset: READ * random.below(FILES / READ) });
        }
        let model = Model::named(MODEL).expect("it is built in");
        let model = model.scaled(CAPACITY).expect("a gibibyte of it");
        let profile = Profile::of(&model);
        Self { time, reads, model, profile }
    }

    /// How much a film needs.
    pub fn film(&self) -> Bytes {
        let seconds = units::Duration::from_secs(self.time.as_secs() + 4);
        contract().rate.bytes_in(seconds).round_up(Bytes::MIB)
    }

    /// Every volume with its size, in the order in which they lie on the disk. What
    /// begins with `rest` keeps the others apart, and is empty.
    pub fn volumes(&self) -> Vec<(String, Bytes)> {
        let mut volumes = vec![("files".to_owned(), FILES)];
        for film in 0..FILMS_MAX {
            volumes.push((format!("rest-{film}"), Bytes::mib(200)));
            volumes.push((film_name(film), self.film()));
        }
        volumes
    }
}

/// What a film is called.
pub fn film_name(film: usize) -> String {
    format!("film-{film}")
}

/// What each film asks for.
pub fn contract() -> Contract {
    Contract { rate: Rate::per_second(1_000_000), block: Bytes::kib(512), burst: Bytes::ZERO }
}

/// How the node is set up.
pub fn config(policy: Policy) -> Config {
    Config {
        policy,
        // The films fit by the exact analysis; what a policy makes of them is the question.
        admission: policy.keeps_contracts(),
        memory: Bytes::mib(64),
        host_latency: units::Duration::from_millis(2),
        commit_interval: units::Duration::from_secs(1),
        remeasure: true,
    }
}
