//! The surface that SLACKLINE_SURFACE names, for libFuzzer: guided by coverage, for hours.
//! `scripts/fuzz` builds it with what that needs, and runs it.
#![no_main]

use fuzz::{SURFACES, Surface};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static CHOSEN: LazyLock<&Surface> = LazyLock::new(|| {
    let name = std::env::var("SLACKLINE_SURFACE").unwrap_or_default();
    Surface::named(&name).unwrap_or_else(|| {
        let names: Vec<_> = SURFACES.iter().map(|surface| surface.name).collect();
        panic!("SLACKLINE_SURFACE is {name:?}; give one of {}", names.join(", "))
    })
});

fuzz_target!(|input: &[u8]| {
    CHOSEN.check(input);
});
