//! `fsx` on two files of a directory at once.

use std::path::Path;
use std::process::Command;

/// As many operations as `SLACKLINE_FSX` says, or 100,000: half of them on each file, each with a seed
/// of its own.
pub fn twice_at_once(directory: &Path) {
    let all = std::env::var("SLACKLINE_FSX").map_or(100_000, |all| all.parse::<u64>().unwrap());
    let half = (all / 2).to_string();
    let begin = |seed: &str| {
        let mut fsx = Command::new("fsx");
        fsx.args(["-q", "-S", seed, "-N", &half, "-P", "/tmp", &format!("x{seed}")]);
        fsx.current_dir(directory).spawn().expect("fsx runs")
    };
    // Both are waited for, whatever becomes of one.
    let ended = ["7", "8"].map(begin).map(|mut fsx| fsx.wait().unwrap());
    assert!(ended.iter().all(|status| status.success()), "fsx: {ended:?}");
}
