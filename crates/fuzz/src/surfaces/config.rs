//! The daemon's configuration.

use super::files;
use daemon::config::Options;
use std::path::PathBuf;

/// A configuration file is taken and settled, or refused.
pub fn ask(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else { return false };
    let Ok(options) = toml::from_str::<Options>(text) else { return false };
    let again = options.clone().or(Options::default());
    assert_eq!(again, options, "nothing is lost to the defaults");
    if let Err(error) = options.settle(|| PathBuf::from("/s")) {
        assert!(!error.what.is_empty() && !error.next_step.is_empty());
    }
    true
}

pub fn seeds() -> Vec<Vec<u8>> {
    let mut all = files(&["packaging/slackline.toml".into()]);
    all.push(
        b"disks = ['/dev/sdb', 'emulated:laptop:/tmp/disk']\nsocket = '/tmp/s.sock'\n\
          socket_mode = '0600'\nmemory = '64MiB'\npolicy = 'edf'\ncommit_interval = '500ms'\n\
          remeasure = false\nadmission = true\nhost_latency = '5ms'\n\
          [quota]\npreset = 'server'\n[quota.default]\nstreams = 4\n[files]\n"
            .into(),
    );
    all
}
