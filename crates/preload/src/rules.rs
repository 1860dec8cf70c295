//! Which paths are volumes, and what is asked for them: from the environment, once.

use client::units::{Bytes, Rate};
use client::{Contract, Error, File, OpenOptions};
use libc::c_int;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::OnceLock;

const PREFIX: &str = "SLACKLINE_PREFIX";
const PREFIX_DEFAULT: &str = "/slackline";

/// What the environment says.
pub struct Rules {
    prefix: String,
    socket: Option<PathBuf>,
    contract: Option<Contract>,
    create: Option<Bytes>,
}

/// The rules of this process.
pub fn rules() -> &'static Rules {
    static RULES: OnceLock<Rules> = OnceLock::new();
    RULES.get_or_init(Rules::read)
}

impl Rules {
    fn read() -> Self {
        let prefix = std::env::var(PREFIX).unwrap_or_else(|_| PREFIX_DEFAULT.into());
        let contract = quantity("SLACKLINE_RATE").map(|rate: Rate| {
            let mut contract = Contract::at(rate);
            if let Some(block) = quantity("SLACKLINE_BLOCK") {
                contract = contract.block(block);
            }
            if let Some(burst) = quantity("SLACKLINE_BURST") {
                contract = contract.burst(burst);
            }
            contract
        });
        Self {
            prefix: prefix.trim_end_matches('/').into(),
            socket: std::env::var_os("SLACKLINE_SOCKET").map(PathBuf::from),
            contract,
            create: quantity("SLACKLINE_CREATE"),
        }
    }

    /// The volume that a path names, if it is one.
    pub fn volume<'a>(&self, path: &'a str) -> Option<&'a str> {
        let below = path.strip_prefix(self.prefix.as_str())?.strip_prefix('/')?;
        let name = below.trim_start_matches('/');
        (!name.is_empty()).then_some(name)
    }

    /// Where the daemon is.
    pub fn socket(&self) -> PathBuf {
        self.socket.clone().unwrap_or_else(client::default_socket)
    }

    /// Opens a volume with the flags of `open(2)`; says what is wrong where a person
    /// can see it, because `errno` cannot.
    pub fn open(&self, name: &str, flags: c_int) -> Result<File, Error> {
        let opened = self.options(flags).open(&format!("slackline:{name}"));
        if let Err(error) = &opened {
            let making = flags & libc::O_CREAT != 0;
            match error.errno() {
                libc::ENOENT if making && self.create.is_none() => eprintln!(
                    "slackline: {error}\n  next: say how large it shall be: SLACKLINE_CREATE=1GiB"
                ),
                // Programs look for files that are not there all the time.
                libc::ENOENT => {}
                _ => eprintln!("slackline: {name}: {error}\n  next: {}", error.next_step()),
            }
        }
        opened
    }

    fn options(&self, flags: c_int) -> OpenOptions {
        let mode = flags & libc::O_ACCMODE;
        let mut open = File::options();
        open.socket(self.socket());
        open.read(mode != libc::O_WRONLY).write(mode != libc::O_RDONLY);
        let truncates = flags & libc::O_TRUNC != 0 && mode != libc::O_RDONLY;
        open.truncate(truncates).append(flags & libc::O_APPEND != 0);
        if let Some(contract) = self.contract {
            open.contract(contract);
        }
        match self.create {
            Some(size) if flags & libc::O_CREAT != 0 => open.create(size),
            _ => &mut open,
        };
        open
    }

    /// What a program should move at a time, as long as nothing is open.
    pub fn block(&self) -> Bytes {
        self.contract.map_or(Bytes::kib(64), |contract| contract.terms().block_bytes)
    }
}

/// A quantity of the environment. One that cannot be read is told and not used.
fn quantity<T: FromStr<Err: std::fmt::Display>>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    match text.parse() {
        Ok(quantity) => Some(quantity),
        Err(error) => {
            eprintln!("slackline: {name}={text}: {error}");
            None
        }
    }
}
