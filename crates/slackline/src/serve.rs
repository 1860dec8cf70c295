//! `slackline serve`: the daemon.

use crate::Common;
use crate::failure::Failure;
use daemon::config::{Options, SocketMode};
use daemon::log::{self, Format, Level};
use daemon::serve::{ServeOptions, Serving};
use daemon::socket::Claim;
use engine::DeviceSpec;
use node::Policy;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::{Bytes, Duration};

/// Serve a pool until told to stop.
///
/// A setting is taken from its flag, else from the configuration file, else from
/// its default. SIGTERM, SIGINT, and a terminal that is closed stop the daemon in order: every writer is
/// synced first. Under `nohup` it goes on without its terminal.
#[derive(clap::Args)]
pub struct Args {
    /// The pool's disks, in any order: a file, a block device, or
    /// emulated:MODEL:FILE
    #[arg(value_name = "DEVICE")]
    devices: Vec<String>,
    /// Read settings from this file (TOML) [default: where no DEVICE is named,
    /// /etc/slackline/slackline.toml]
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,
    /// Permissions of the sockets [default: 0660]
    #[arg(long, value_name = "OCTAL")]
    socket_mode: Option<SocketMode>,
    /// Memory for windows and transfers [default: 256MiB]
    #[arg(long, value_name = "SIZE")]
    memory: Option<Bytes>,
    /// Scheduling of the disks; docs/policies.md says what each promises [default: slack]
    #[arg(long, value_name = "NAME", value_parser = policies::named)]
    policy: Option<Policy>,
    /// A setting of the policy; docs/policies.md lists those of each. Can be repeated
    #[arg(long = "policy-setting", value_name = "NAME=VALUE", value_parser = crate::given::setting)]
    policy_settings: Vec<(String, String)>,
    /// Take every contract; only for comparisons
    #[arg(long)]
    no_admission: bool,
    /// How much earlier than its deadline a request must be done, so that a host
    /// that wakes late does no harm [default: 2ms]
    #[arg(long, value_name = "TIME")]
    host_latency: Option<Duration>,
    /// Time between commits of the metadata log [default: 1s]
    #[arg(long, value_name = "TIME")]
    commit_interval: Option<Duration>,
    /// End a stream whose program is silent for so long, unless it said that it pauses; 0s: none
    /// [default: 5min]
    #[arg(long, value_name = "TIME")]
    keep_alive: Option<Duration>,
    /// Do not measure disks again whose profiles do not hold, unless asked to
    #[arg(long)]
    no_remeasure: bool,
    /// Serve disks that are parts of one drive, and give contracts on files of a drive that the
    /// pool has, though contracts on both may be late
    #[arg(long)]
    shared_drive: bool,
    /// Read each stream's bytes from the disk, also those that another stream has just read or
    /// written; docs/caching.md
    #[arg(long)]
    no_share_reads: bool,
    /// Read what best effort asks for from the disk, also what was read before, and nothing ahead;
    /// docs/caching.md
    #[arg(long)]
    no_cache_reads: bool,
    /// Listen for HTTP over TLS here, for those who show a token (`slackline token make`);
    /// docs/tcp.md [default: nowhere]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Listen for block devices (NBD) over TLS here, for the same [default: nowhere]
    #[arg(long, value_name = "HOST:PORT")]
    nbd_listen: Option<String>,
    /// The certificate for both (PEM), with those above it [default: one that the daemon makes,
    /// and whose fingerprint it prints]
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Listen without TLS, which goes on loopback addresses only
    #[arg(long)]
    plain_tcp: bool,
    /// Keep the certificate, and what tokens are checked with, in a directory under this one
    /// [default: /var/lib/slackline as root, else $XDG_STATE_HOME/slackline]
    #[arg(long, value_name = "DIRECTORY")]
    state_dir: Option<PathBuf>,
    /// Run this command for each event, with the event as JSON on its standard input: the path of
    /// a program, without arguments
    #[arg(long, value_name = "COMMAND")]
    event_hook: Option<PathBuf>,
    /// Say what happens as lines of text, as JSON, or to systemd's journal with fields: text, json or
    /// journal [default: journal where standard error leads there, else text]
    #[arg(long, value_name = "FORM")]
    log_format: Option<Format>,
    /// How much of it: error, warn, info, or debug, which tells of each stream [default: info]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<Level>,
    /// Do not ask for real-time priority
    #[arg(long)]
    no_realtime: bool,
    /// End at once, as if killed, when standard input ends: for who starts a daemon
    /// that must not outlive him
    #[arg(long, hide = true)]
    end_with_input: bool,
}

/// The machine's settings, which the unit names, too.
const SETTINGS: &str = "/etc/slackline/slackline.toml";

/// A host that is late by more is hardly one that keeps time: somebody may have mistaken the unit.
const HOST_LATENCY_USUAL: Duration = Duration::from_secs(1);

/// Runs the daemon.
pub fn run(args: Args, common: &Common) -> Result<(), Failure> {
    if args.end_with_input {
        end_with_input();
    }
    let installed = Path::new(SETTINGS);
    let config = args.config.as_deref().or_else(|| or_installed(&args.devices, installed));
    let file = match config {
        Some(path) => Options::from_file(path)?,
        None => Options::default(),
    };
    let realtime = !args.no_realtime;
    // What is said here goes before what the pool keeps.
    let says_policy = args.policy.is_some() || !args.policy_settings.is_empty();
    let flags = Options {
        disks: args.devices,
        socket: common.socket.clone(),
        socket_mode: args.socket_mode,
        memory: args.memory,
        policy: args.policy,
        policy_settings: args.policy_settings.into_iter().collect(),
        admission: args.no_admission.then_some(false),
        host_latency: args.host_latency,
        commit_interval: args.commit_interval,
        keep_alive: args.keep_alive,
        remeasure: args.no_remeasure.then_some(false),
        shared_drive: args.shared_drive.then_some(true),
        share_reads: args.no_share_reads.then_some(false),
        cache_reads: args.no_cache_reads.then_some(false),
        cache_shares: BTreeMap::new(),
        listen: args.listen,
        nbd_listen: args.nbd_listen,
        tls_cert: args.tls_cert,
        tls_key: args.tls_key,
        plain_tcp: args.plain_tcp.then_some(true),
        state_dir: args.state_dir,
        event_hook: args.event_hook,
        log_format: args.log_format,
        log_level: args.log_level,
        quota: None,
        files: None,
    };
    let mut settings =
        flags.or(file).settle(|| common.named_socket().unwrap_or_else(client::own_socket))?;
    log::start(settings.log_format, settings.log_level)
        .map_err(|error| Failure::new(format!("no thread for the log: {error}"), "try again"))?;
    let host_latency = settings.node.host_latency;
    if host_latency > HOST_LATENCY_USUAL {
        tracing::warn!(
            "host_latency is {host_latency}: each request has to be done so much before its deadline, and \
             windows are so much longer; few contracts fit, and no answer is promised sooner"
        );
    }
    let specs: Vec<DeviceSpec> = crate::given::specs(&settings.disks)?;
    let claim = Claim::new(&settings.socket)?;
    let shared_drive = settings.shared_drive;
    settings.files.realtime = realtime;
    settings.files.shared_drive = shared_drive;
    settings.files.pool_drives = engine::pool_drives(&specs);
    let config = settings.node;
    let find_policy = if says_policy { None } else { Some(daemon::config::kept_policy as _) };
    let options = engine::Options {
        config,
        realtime,
        shared_drive,
        share_reads: settings.share_reads,
        cache_reads: settings.cache_reads,
        cache_shares: settings.cache_shares_by_number().into_iter().collect(),
        find_policy,
        ..engine::Options::default()
    };
    let pool = engine::Pool::open(&specs, options)?;
    for warning in pool.warnings() {
        tracing::warn!("{warning}");
    }
    let space = pool.status().disks.iter().map(|disk| disk.capacity).sum();
    let timely = if realtime { Serving::InRealTime } else { Serving::Apart };
    let options = ServeOptions { timely, ..ServeOptions::new(&settings, space) };
    let served = daemon::serve::run(Arc::new(pool), &claim, options);
    log::flush();
    Ok(served?)
}

/// The settings that `make install` lays down, where no disk is named and they are there.
fn or_installed<'a>(devices: &[String], settings: &'a Path) -> Option<&'a Path> {
    (devices.is_empty() && settings.exists()).then_some(settings)
}

/// Ends this process when standard input does. What was acknowledged is on the
/// medium, as after any kill.
fn end_with_input() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(1);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_installed_settings_are_read_where_no_disk_is_named() {
        let dir = tempfile::tempdir().expect("there is room");
        let settings = dir.path().join("slackline.toml");
        assert_eq!(or_installed(&[], &settings), None, "not installed");
        std::fs::write(&settings, "").expect("there is room");
        assert_eq!(or_installed(&[], &settings), Some(&*settings));
        assert_eq!(or_installed(&["disk.img".into()], &settings), None);
    }

    #[test]
    fn the_unit_names_the_same_settings() {
        let unit = include_str!("../../../packaging/slackline.service");
        assert!(unit.contains(&format!("serve --config {SETTINGS}\n")));
    }

    /// A disk behind USB that spun up for 20 s was an ENOENT ten times within a minute: the pool was not
    /// served until somebody came, and one camera's memory was the end of all of them.
    #[test]
    fn the_units_go_on_trying_and_outlive_one_command() {
        let pool = include_str!("../../../packaging/slackline.service");
        let cameras = include_str!("../../../packaging/slackline-cameras.service");
        let has = |unit: &str, line: &str| unit.lines().any(|one| one == line);
        for unit in [pool, cameras] {
            for line in ["StartLimitIntervalSec=0", "Restart=on-failure", "RestartSec=5"] {
                assert!(has(unit, line), "{line}");
            }
            assert!(has(unit, &format!("RestartPreventExitStatus={}", crate::failure::USAGE)));
        }
        assert!(has(pool, "After=local-fs.target time-sync.target"));
        assert!(has(cameras, "OOMPolicy=continue"));
    }
}
