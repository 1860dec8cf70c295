//! One surface for libFuzzer: guided by coverage, for hours. `scripts/fuzz` builds it with what
//! that needs, and runs it.
//!
//! SLACKLINE_SURFACE names the surface when it is compiled, not when it runs: so the linker drops
//! what the others reach. libFuzzer looks at every counter of the program after every input.
#![no_main]

use fuzz::Surface;
use libfuzzer_sys::fuzz_target;

const CHOSEN: Surface = match Surface::named(env!("SLACKLINE_SURFACE")) {
    Some(surface) => *surface,
    None => panic!("SLACKLINE_SURFACE names no surface"),
};

fuzz_target!(|input: &[u8]| {
    CHOSEN.check(input);
});
