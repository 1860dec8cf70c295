//! Settings of the daemon: what the command's flags say, then what the
//! configuration file says, then the defaults.
//!
//! Invariant: a setting is read from the first of the three that has it; a list
//! of disks, and one of shares, is taken whole, never joined.

use crate::files;
use crate::limits::{CACHE_SHARE_MAX, KEEP_ALIVE, KEEP_ALIVE_MAX, KEEP_ALIVE_MIN};
use crate::log;
use crate::quotas::{Names, Rules};
use crate::tcp::Listen;
use crate::tls::Certificate;
use node::Policy;
use node::limits::MEMORY_MIN;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use units::{Bytes, Duration};

/// Settings that may each be missing: a configuration file, or a set of flags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// The pool's disks: `PATH` or `emulated:MODEL:PATH`. None means unset.
    pub disks: Vec<String>,
    /// The control socket's path.
    pub socket: Option<PathBuf>,
    /// Permissions of both sockets, octal, for example `"0660"`.
    #[serde(deserialize_with = "from_text")]
    pub socket_mode: Option<SocketMode>,
    /// Memory for windows and transfers, for example `"256MiB"`.
    #[serde(deserialize_with = "from_text")]
    pub memory: Option<Bytes>,
    /// Scheduling of the disks: `slack`, or another by its name.
    #[serde(deserialize_with = "policy_from_text")]
    pub policy: Option<Policy>,
    /// Settings of the policy by their names, for example `{ register-least = "20ms" }`.
    pub policy_settings: BTreeMap<String, String>,
    /// False takes every contract; only for comparisons.
    pub admission: Option<bool>,
    /// How much earlier than its deadline a request must be done, so that a
    /// host that wakes late does no harm, for example `"5ms"`.
    #[serde(deserialize_with = "from_text")]
    pub host_latency: Option<Duration>,
    /// Time between commits of the metadata log, for example `"1s"`.
    #[serde(deserialize_with = "from_text")]
    pub commit_interval: Option<Duration>,
    /// A stream whose program is silent for so long ends, for example `"5min"`; `"0s"`: none
    /// does.
    #[serde(deserialize_with = "from_text")]
    pub keep_alive: Option<Duration>,
    /// False: disks whose profiles do not hold are measured again only when asked for.
    pub remeasure: Option<bool>,
    /// True: the pool's disks may be parts of one drive, though contracts may then be late.
    pub shared_drive: Option<bool>,
    /// False: every stream has its bytes from the disk.
    pub share_reads: Option<bool>,
    /// False: best effort has its bytes from the disk, and nothing is read ahead.
    pub cache_reads: Option<bool>,
    /// What users have of what is cached, for example `{ alice = 3 }`: three times what another
    /// one has who wants as much. 1 where nothing is said.
    pub cache_shares: BTreeMap<String, u32>,
    /// Listen for HTTP over TCP here: an address or a name, and a port.
    pub listen: Option<String>,
    /// Listen for NBD over TCP here.
    pub nbd_listen: Option<String>,
    /// The certificate for both (PEM), with those above it; one of the daemon's own where there
    /// is none,
    pub tls_cert: Option<PathBuf>,
    /// and its key (PEM).
    pub tls_key: Option<PathBuf>,
    /// True: TCP without encryption, on loopback addresses alone.
    pub plain_tcp: Option<bool>,
    /// Where the daemon keeps its certificate and what its tokens are checked with, in a
    /// directory for each pool.
    pub state_dir: Option<PathBuf>,
    /// A command that is run for each event, with the event as JSON on its standard input.
    pub event_hook: Option<PathBuf>,
    /// In which form the daemon says what happens: `text`, `json` or `journal`.
    #[serde(deserialize_with = "from_text")]
    pub log_format: Option<log::Format>,
    /// How much of it: `error`, `warn`, `info` or `debug`.
    #[serde(deserialize_with = "from_text")]
    pub log_level: Option<log::Level>,
    /// Who may hold how much.
    pub quota: Option<Rules>,
    /// How contracts on ordinary files are given.
    pub files: Option<files::Settings>,
}

/// All settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The pool's disks; at least one.
    pub disks: Vec<String>,
    /// The control socket's path; the data socket is beside it.
    pub socket: PathBuf,
    /// Permissions of both sockets.
    pub socket_mode: SocketMode,
    /// The pool's disks may be parts of one drive.
    pub shared_drive: bool,
    /// Streams have from memory what others of their volume have just read or written.
    pub share_reads: bool,
    /// What best effort has read is cached, and read ahead.
    pub cache_reads: bool,
    /// What users, by name or number, have of that beside each other.
    pub cache_shares: BTreeMap<String, NonZeroU32>,
    /// How the pool is set up.
    pub node: node::Config,
    /// A stream's program may be silent for so long; zero: for ever.
    pub keep_alive: Duration,
    /// Where to listen on TCP.
    pub listen: Listen,
    /// Where the daemon keeps its state; none where the system names no place.
    pub state: Option<PathBuf>,
    /// A command that is run for each event.
    pub event_hook: Option<PathBuf>,
    /// In which form the daemon says what happens; none: as standard error asks for.
    pub log_format: Option<log::Format>,
    /// How much of it.
    pub log_level: Option<log::Level>,
    /// Who may hold how much.
    pub quota: Rules,
    /// How contracts on ordinary files are given.
    pub files: files::Settings,
}

/// How a pool is set up where nobody says otherwise: as the engine does it.
pub fn node_default() -> node::Config {
    engine::Options::default().config
}

/// Where a daemon of this user's keeps its state, as the service manager or the system says.
fn default_state() -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(given) = named("STATE_DIRECTORY") {
        return std::env::split_paths(&given).next();
    }
    if crate::quotas::own_uid() == 0 {
        return Some("/var/lib/slackline".into());
    }
    let home = || Some(PathBuf::from(named("HOME")?).join(".local/state"));
    Some(named("XDG_STATE_HOME").map(PathBuf::from).or_else(home)?.join("slackline"))
}

/// The policy that a pool keeps, if there is such a one.
pub fn kept_policy(kept: &store::KeptPolicy) -> Result<Policy, String> {
    policies::chosen(&kept.name, kept.settings.iter().map(|(name, value)| (&name[..], *value)))
}

/// Permission bits of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketMode(pub u32);

impl FromStr for SocketMode {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match u32::from_str_radix(text, 8) {
            Ok(mode) if mode <= 0o777 => Ok(Self(mode)),
            _ => Err("not a file mode; write for example 0660"),
        }
    }
}

/// A policy by its name.
fn policy_from_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Policy>, D::Error> {
    let text = String::deserialize(from)?;
    policies::named(&text).map(Some).map_err(serde::de::Error::custom)
}

pub(crate) fn from_text<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr,
    T::Err: Display,
{
    let text = Option::<String>::deserialize(from)?;
    text.map(|text| text.parse().map_err(serde::de::Error::custom)).transpose()
}

/// Why there are no settings. The text says what, and the second what to do.
#[derive(Debug)]
pub struct ConfigError {
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub next_step: String,
}

/// What to do about a configuration file.
const LISTED: &str = "correct the configuration file; packaging/slackline.toml of the source lists all \
                      settings, and is installed as /etc/slackline/slackline.toml";

impl Options {
    /// The settings in a configuration file (TOML).
    pub fn from_file(path: &Path) -> Result<Self, ConfigError> {
        let error = |what: String, next_step: &str| ConfigError {
            what: format!("configuration file {}: {what}", path.display()),
            next_step: next_step.into(),
        };
        let text = std::fs::read_to_string(path)
            .map_err(|cause| error(cause.to_string(), "correct the path given with --config"))?;
        toml::from_str(&text).map_err(|cause| {
            let what = cause.to_string().trim().replace('\n', "\n  ");
            error(what, LISTED)
        })
    }

    /// These settings, and those of `other` where these have none.
    ///
    /// Settings of a policy belong to it: where these name one, the other's do not count.
    pub fn or(self, other: Self) -> Self {
        let mut policy_settings = match self.policy {
            Some(_) => BTreeMap::new(),
            None => other.policy_settings,
        };
        policy_settings.extend(self.policy_settings);
        Self {
            policy_settings,
            disks: if self.disks.is_empty() { other.disks } else { self.disks },
            socket: self.socket.or(other.socket),
            socket_mode: self.socket_mode.or(other.socket_mode),
            memory: self.memory.or(other.memory),
            policy: self.policy.or(other.policy),
            admission: self.admission.or(other.admission),
            host_latency: self.host_latency.or(other.host_latency),
            commit_interval: self.commit_interval.or(other.commit_interval),
            keep_alive: self.keep_alive.or(other.keep_alive),
            remeasure: self.remeasure.or(other.remeasure),
            shared_drive: self.shared_drive.or(other.shared_drive),
            share_reads: self.share_reads.or(other.share_reads),
            cache_reads: self.cache_reads.or(other.cache_reads),
            cache_shares: match self.cache_shares.is_empty() {
                true => other.cache_shares,
                false => self.cache_shares,
            },
            listen: self.listen.or(other.listen),
            nbd_listen: self.nbd_listen.or(other.nbd_listen),
            tls_cert: self.tls_cert.or(other.tls_cert),
            tls_key: self.tls_key.or(other.tls_key),
            plain_tcp: self.plain_tcp.or(other.plain_tcp),
            state_dir: self.state_dir.or(other.state_dir),
            event_hook: self.event_hook.or(other.event_hook),
            log_format: self.log_format.or(other.log_format),
            log_level: self.log_level.or(other.log_level),
            quota: self.quota.or(other.quota),
            files: self.files.or(other.files),
        }
    }

    /// All settings: these, and the defaults where these have none.
    pub fn settle(self, socket: impl FnOnce() -> PathBuf) -> Result<Settings, ConfigError> {
        if self.disks.is_empty() {
            return Err(ConfigError {
                what: "no disk to serve".into(),
                next_step: "name the pool's disks: `slackline serve DEVICE...`, or `disks = \
                    [...]` in the configuration file"
                    .into(),
            });
        }
        let default = node_default();
        let memory = self.memory.unwrap_or(default.memory);
        if memory < MEMORY_MIN {
            return Err(ConfigError {
                what: format!("{memory} of memory is too little to serve from"),
                next_step: format!("give at least {MEMORY_MIN} with --memory"),
            });
        }
        let policy = self.policy.unwrap_or(default.policy);
        let mut chosen = self.policy_settings.iter();
        let policy = chosen.try_fold(policy, |policy, (name, text)| policy.with(name, text));
        let policy = policy.map_err(|error| ConfigError {
            what: error.to_string(),
            next_step: "correct it; docs/policies.md lists the settings of each policy".into(),
        })?;
        let keep_alive = self.keep_alive.unwrap_or(KEEP_ALIVE);
        if !keep_alive.is_zero() && !(KEEP_ALIVE_MIN..=KEEP_ALIVE_MAX).contains(&keep_alive) {
            return Err(ConfigError {
                what: format!("a program cannot be given {keep_alive} of silence (keep_alive)"),
                next_step: format!("give it {KEEP_ALIVE_MIN} to {KEEP_ALIVE_MAX}, or 0s: for ever"),
            });
        }
        let cache_reads = self.cache_reads.unwrap_or(true);
        let shares = self.cache_shares.into_iter().map(|(user, share)| {
            let given = NonZeroU32::new(share).filter(|share| share.get() <= CACHE_SHARE_MAX);
            given.map(|share| (user.clone(), share)).ok_or(ConfigError {
                what: format!("{user} cannot have a share of {share} of what is cached"),
                next_step: format!("give it 1 to {CACHE_SHARE_MAX} (cache_shares)"),
            })
        });
        let cache_shares = shares.collect::<Result<_, _>>()?;
        let certificate = match (self.tls_cert, self.tls_key) {
            (Some(certificate), Some(key)) => Some(Certificate::Given(certificate, key)),
            (None, None) => None,
            _ => {
                return Err(ConfigError {
                    what: "a certificate and its key belong together".into(),
                    next_step: "give both tls_cert and tls_key, or neither".into(),
                });
            }
        };
        let is_plain = self.plain_tcp.unwrap_or(false);
        if is_plain && certificate.is_some() {
            return Err(ConfigError {
                what: "TCP without encryption has no certificate".into(),
                next_step: "leave out plain_tcp, or the certificate".into(),
            });
        }
        if is_plain && self.listen.is_none() && self.nbd_listen.is_none() {
            return Err(ConfigError {
                what: "plain_tcp says how to listen, and nothing says where".into(),
                next_step: "add listen or nbd_listen, or leave out plain_tcp".into(),
            });
        }
        let listen = Listen { http: self.listen, nbd: self.nbd_listen, certificate, is_plain };
        let quota = self.quota.unwrap_or_default().settled();
        if let Some(what) = quota.wrong() {
            return Err(ConfigError { what, next_step: LISTED.into() });
        }
        Ok(Settings {
            files: self.files.unwrap_or_default(),
            listen,
            state: self.state_dir.or_else(default_state),
            event_hook: self.event_hook,
            log_format: self.log_format,
            log_level: self.log_level,
            quota,
            disks: self.disks,
            keep_alive,
            shared_drive: self.shared_drive.unwrap_or(false),
            share_reads: self.share_reads.unwrap_or(true),
            cache_reads,
            cache_shares,
            socket: self.socket.unwrap_or_else(socket),
            socket_mode: self.socket_mode.unwrap_or(SocketMode(0o660)),
            node: node::Config {
                policy,
                admission: self.admission.unwrap_or(default.admission),
                memory: memory.round_down(Bytes::MIB),
                host_latency: self.host_latency.unwrap_or(default.host_latency),
                commit_interval: self.commit_interval.unwrap_or(default.commit_interval),
                remeasure: self.remeasure.unwrap_or(default.remeasure),
            },
        })
    }
}

impl Settings {
    /// [`Settings::cache_shares`] by the numbers of users. It is warned of shares of a cache that is off,
    /// of who is not known, and of who is named twice, by name and by number, with two shares: he has the
    /// larger one.
    pub fn cache_shares_by_number(&self) -> BTreeMap<u32, NonZeroU32> {
        let users = Names::of_users();
        let mut shares = BTreeMap::new();
        if !self.cache_reads && !self.cache_shares.is_empty() {
            tracing::warn!("cache_shares say nothing while nothing is cached (cache_reads)");
        }
        for (name, &share) in &self.cache_shares {
            let Some(number) = users.number(name) else {
                tracing::warn!("cache_shares: there is no user {name}");
                continue;
            };
            let has = shares.entry(number).or_insert(share);
            if *has != share {
                tracing::warn!(
                    "cache_shares: user {number} is named twice, with {has} and {share}: the larger counts"
                );
                *has = share.max(*has);
            }
        }
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        disks = ["/dev/sdb", "emulated:laptop:/tmp/disk"]
        socket = "/tmp/s.sock"
        socket_mode = "0600"
        memory = "64MiB"
        policy = "edf"
        commit_interval = "500ms"
        remeasure = false
        shared_drive = true
        share_reads = false
        cache_reads = false
    "#;

    #[test]
    fn a_flag_goes_before_the_file_and_the_file_before_the_default() {
        let file: Options = toml::from_str(FILE).unwrap();
        let flags = Options { memory: Some(Bytes::mib(32)), ..Options::default() };
        let settings = flags.or(file).settle(|| unreachable!("the file has it")).unwrap();
        assert_eq!(settings.node.memory, Bytes::mib(32), "from the flag");
        assert_eq!(settings.node.policy, Policy::EDF, "from the file");
        assert_eq!(settings.socket_mode, SocketMode(0o600), "from the file");
        assert!(settings.shared_drive && !settings.share_reads, "from the file");
        assert!(!settings.cache_reads, "from the file");
        assert!(!settings.node.remeasure && node_default().remeasure, "from the file");
        assert_eq!(settings.node.host_latency, node_default().host_latency, "the default");
        assert_eq!(settings.disks.len(), 2);
    }

    #[test]
    fn settings_of_a_policy_belong_to_it_and_a_flag_goes_before_the_file() {
        let file = "disks = ['d']\npolicy = 'ucsb'\n\
            policy_settings = { cycle = '1s', register-least = '30ms' }";
        let flags = |policy, settings: &[(&str, &str)]| {
            let settings = settings.iter().map(|(name, text)| (name.to_string(), text.to_string()));
            let policy_settings = settings.collect();
            let file: Options = toml::from_str(file).unwrap();
            let flags = Options { policy, policy_settings, ..Options::default() };
            flags.or(file).settle(PathBuf::new).map(|settings| settings.node.policy)
        };
        let set = |policy: Policy, name, text| policy.with(name, text).unwrap();
        let ucsb = set(policies::UCSB, "register-least", "30ms");
        assert_eq!(flags(None, &[]).unwrap(), set(ucsb, "cycle", "1s"));
        assert_eq!(flags(None, &[("cycle", "2s")]).unwrap(), set(ucsb, "cycle", "2s"));
        assert_eq!(flags(Some(policies::GSS), &[]).unwrap(), policies::GSS);
        let gss = flags(Some(policies::GSS), &[("group", "9")]).unwrap();
        assert_eq!(gss, set(policies::GSS, "group", "9"));
        let error = flags(None, &[("cycle", "1ms")]).unwrap_err();
        assert_eq!(
            error.what,
            "the setting cycle is a time with its unit (20ms, 4s), from 10 ms to 86400 s"
        );
        let error = flags(Some(Policy::EDF), &[("cycle", "1s")]).unwrap_err();
        assert_eq!(error.what, "the policy edf has no settings");
    }

    #[test]
    fn the_packaged_file_is_valid_and_shows_every_default() {
        let text = include_str!("../../../packaging/slackline.toml");
        let socket = || PathBuf::from("/run/slackline/slackline.sock");
        let packaged: Options = toml::from_str(text).unwrap();
        let plain = packaged.settle(socket).unwrap();
        let shown = text.replace("\n#", "\n").replace("\n ", "\n# ");
        let shown: Options = toml::from_str(&shown).unwrap();
        assert!(shown.socket.is_some() && shown.commit_interval.is_some());
        assert_eq!(shown.settle(|| unreachable!("the file shows it")).unwrap(), plain);
    }

    #[test]
    fn how_long_a_program_may_be_silent_has_a_default_and_limits() {
        let given = |text: &str| {
            let keep_alive = (!text.is_empty()).then(|| text.parse().unwrap());
            let options = Options { disks: vec!["d".into()], keep_alive, ..Options::default() };
            let settled = options.settle(PathBuf::new);
            settled.map(|settings| settings.keep_alive).map_err(|error| error.next_step)
        };
        assert_eq!(given(""), Ok(Duration::from_secs(300)));
        assert_eq!(given("0s"), Ok(Duration::ZERO), "for ever");
        assert_eq!(given("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(given("24h"), Ok(Duration::from_secs(86_400)));
        for text in ["999ms", "25h"] {
            assert_eq!(given(text).unwrap_err(), "give it 1 s to 86400 s, or 0s: for ever");
        }
    }

    #[test]
    fn a_share_of_what_is_cached_is_a_number_with_limits() {
        for (share, is_taken) in [(0, false), (1, true), (100, true), (101, false)] {
            let cache_shares = [("ann".to_owned(), share)].into();
            let options = Options { disks: vec!["d".into()], cache_shares, ..Options::default() };
            match options.settle(PathBuf::new) {
                Ok(settings) => assert_eq!((settings.cache_shares.len(), is_taken), (1, true)),
                Err(error) => {
                    assert!(!is_taken);
                    assert_eq!(error.next_step, "give it 1 to 100 (cache_shares)");
                }
            }
        }
    }

    #[test]
    fn shares_of_what_is_cached_are_by_name_or_number() {
        let settled = |text: &str| {
            let options: Options = toml::from_str(&format!("disks = ['d']\n{text}")).unwrap();
            options.settle(PathBuf::new)
        };
        let shares = |text: &str| {
            let shares = settled(text).unwrap().cache_shares_by_number();
            shares.into_iter().map(|(user, share)| (user, share.get())).collect::<Vec<_>>()
        };
        assert_eq!(shares("cache_shares = { root = 3, 1001 = 2 }"), [(0, 3), (1001, 2)]);
        assert_eq!(shares("cache_shares = { root = 3, 0 = 2 }"), [(0, 3)], "named twice");
        assert_eq!(shares("cache_shares = { 0 = 3, root = 2 }"), [(0, 3)], "named twice");
        let off = "cache_reads = false\ncache_shares = { root = 3 }";
        assert_eq!(shares(off), [(0, 3)], "they are warned of, and change nothing");
    }

    #[test]
    fn what_is_no_setting_or_no_value_is_refused_with_its_place() {
        for (text, wanted) in [
            ("memori = \"1MiB\"", "unknown field"),
            ("memory = \"a lot\"", "write for example"),
            ("policy = \"fair\"", "no such policy"),
            ("socket_mode = \"rw\"", "not a file mode"),
            ("disks = \"/dev/sdb\"", "invalid type"),
        ] {
            let error = toml::from_str::<Options>(text).unwrap_err().to_string();
            assert!(error.contains(wanted) && error.contains("line 1"), "{text}: {error}");
        }
        let error = Options::default().settle(PathBuf::new).unwrap_err();
        assert_eq!(error.what, "no disk to serve");
    }
}
