//! One surface for libFuzzer: guided by coverage, for hours. `scripts/fuzz` builds it with what
//! that needs, and runs it.
//!
//! SLACKLINE_SURFACE names the surface when it is compiled, not when it runs: so the linker drops
//! what the others reach. libFuzzer looks at every counter of the program after every input.
//! SLACKLINE_SEEDS, when it runs: a folder into which the valid inputs are put, and nothing else is
//! done but to say how long an input may be.
#![no_main]
#![allow(clippy::print_stdout)]

use fuzz::Surface;
use libfuzzer_sys::fuzz_target;

const CHOSEN: Surface = match Surface::named(env!("SLACKLINE_SURFACE")) {
    Some(surface) => *surface,
    None => panic!("SLACKLINE_SURFACE names no surface"),
};

fuzz_target!(
    init: {
        if let Some(folder) = std::env::var_os("SLACKLINE_SEEDS") {
            CHOSEN.write_seeds(folder.as_ref()).expect("a folder that can be written to");
            println!("{}", CHOSEN.len_max);
            std::process::exit(0);
        }
    },
    |input: &[u8]| {
        CHOSEN.check(input);
    }
);
