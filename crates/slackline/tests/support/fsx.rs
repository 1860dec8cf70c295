//! `fsx` on two files of a directory at once.

use std::path::Path;
use std::process::{Command, Stdio};

/// As many operations as `SLACKLINE_FSX` says, or 100,000: half of them on each file, each with a seed
/// of its own.
pub fn twice_at_once(directory: &Path) {
    let all = std::env::var("SLACKLINE_FSX").map_or(100_000, |all| all.parse::<u64>().unwrap());
    let half = (all / 2).max(1).to_string();
    let begin = |seed: &str| {
        let mut fsx = Command::new("fsx");
        fsx.args(["-q", "-S", seed, "-N", &half, "-P", "/tmp", &format!("x{seed}")]);
        let fsx = fsx.current_dir(directory).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        (seed.to_owned(), fsx.expect("fsx runs"))
    };
    // Both are waited for, whatever becomes of one.
    for (seed, ended) in ["7", "8"].map(begin).map(|(seed, fsx)| (seed, fsx.wait_with_output())) {
        let ended = ended.unwrap();
        let said =
            [ended.stdout, ended.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
        assert!(ended.status.success(), "fsx with the seed {seed}: {}", said.join("\n"));
    }
}
