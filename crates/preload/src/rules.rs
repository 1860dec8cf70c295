//! Which paths are volumes, and what is asked for them: from the environment, once.

use crate::lock::Lock;
use crate::say;
use client::control::{Priority, VolumeCreate};
use client::units::{Bytes, Rate};
use client::{Client, Code, Contract, Error, File, InTime, OpenOptions, Problem, Target};
use libc::c_int;
use std::fmt::Display;
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
    in_time: Option<InTime>,
    priority: Option<Priority>,
    create: Option<Bytes>,
    /// Why nothing can be opened: what somebody wanted cannot be read, and something else
    /// would be best effort where a contract was meant.
    wrong: Option<Box<Problem>>,
}

/// The rules of this process.
pub fn rules() -> &'static Rules {
    static RULES: OnceLock<Rules> = OnceLock::new();
    RULES.get().unwrap_or_else(|| {
        let _reads = READS.lock();
        RULES.get_or_init(Rules::read)
    })
}

/// Held by who reads them: a fork waits for him.
static READS: Lock<()> = Lock::new(());

/// Before a fork.
pub fn hold() {
    READS.hold();
}

/// Behind it.
pub fn release() {
    READS.release(|()| {});
}

impl Rules {
    fn read() -> Self {
        let prefix = std::env::var(PREFIX).unwrap_or_else(|_| PREFIX_DEFAULT.into());
        let socket = std::env::var_os("SLACKLINE_SOCKET").map(PathBuf::from);
        let asked = Asked::read();
        let (asked, wrong) = asked.map_or_else(|it| (Asked::default(), Some(it)), |it| (it, None));
        let Asked { contract, in_time, priority, create } = asked;
        let prefix = prefix.trim_end_matches('/').into();
        Self { prefix, socket, contract, in_time, priority, create, wrong }
    }

    /// What of a path follows the prefix, if anything does.
    pub fn below<'a>(&self, path: &'a str) -> Option<&'a str> {
        let below = path.strip_prefix(self.prefix.as_str())?.strip_prefix('/')?;
        let name = below.trim_start_matches('/');
        (!name.is_empty()).then_some(name)
    }

    /// Below what volumes are.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether a path is the prefix itself.
    pub fn is_prefix(&self, path: &str) -> bool {
        let below = path.strip_prefix(self.prefix.as_str());
        !self.prefix.is_empty() && below.is_some_and(|rest| rest.trim_matches('/').is_empty())
    }

    /// Where the daemon is.
    pub fn socket(&self) -> PathBuf {
        self.socket.clone().unwrap_or_else(client::default_socket)
    }

    /// For control calls.
    pub fn client(&self) -> Client {
        Client::at(self.socket())
    }

    /// Opens a volume with the flags of `open(2)`; says what is wrong where a person
    /// can see it, because `errno` cannot.
    pub fn open(&self, name: &str, flags: c_int) -> Result<File, Error> {
        const NEW: c_int = libc::O_CREAT | libc::O_EXCL;
        let opened = match &self.wrong {
            Some(wrong) => Err(Error::Problem(wrong.clone())),
            None if flags & NEW == NEW => self.open_new(name, flags),
            None => self.options(flags).open_target(Target::Volume(name.into())),
        };
        if let Err(error) = &opened {
            let making = flags & libc::O_CREAT != 0;
            match error.errno() {
                libc::ENOENT if making && self.create.is_none() => say(&format!(
                    "slackline: {error}\n  next: say how large it shall be: SLACKLINE_CREATE=1GiB\n"
                )),
                // Programs look for files that are not there all the time, and wait for one that
                // another has made as a lock.
                libc::ENOENT | libc::EEXIST => {}
                _ => say(&format!("slackline: {name}: {error}\n  next: {}\n", error.next_step())),
            }
        }
        opened
    }

    /// Makes a volume and opens it. Where several want to, the daemon lets one.
    fn open_new(&self, name: &str, flags: c_int) -> Result<File, Error> {
        let client = self.client();
        let exists = || {
            let what = format!("there is already a volume {name}");
            Error::Problem(Box::new(Problem::new(Code::VolumeExists, what, "use another name")))
        };
        let Some(size) = self.create else {
            client.volume(name)?;
            return Err(exists());
        };
        if let Err(error) = client.volume_create(&VolumeCreate::new(name, size)) {
            // One that is there is that first, also where no other could be made.
            return Err(client.volume(name).map_or(error, |_| exists()));
        }
        let mut options = self.options(flags & !(libc::O_CREAT | libc::O_TRUNC));
        let opened = options.truncate(false).open_target(Target::Volume(name.into()));
        if opened.is_err() {
            client.volume_delete(name)?;
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
        if let Some(in_time) = self.in_time {
            open.in_time(in_time);
        }
        if let Some(priority) = self.priority {
            open.priority(priority);
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

/// What is asked for each volume.
#[derive(Default)]
struct Asked {
    contract: Option<Contract>,
    /// Of what no stream carries: answers in time, or which best effort goes first.
    in_time: Option<InTime>,
    priority: Option<Priority>,
    create: Option<Bytes>,
}

impl Asked {
    /// As the environment says.
    fn read() -> Result<Self, Box<Problem>> {
        let rate: Option<Rate> = quantity("SLACKLINE_RATE")?;
        let block = quantity("SLACKLINE_BLOCK")?;
        let burst = quantity("SLACKLINE_BURST")?;
        let create = quantity("SLACKLINE_CREATE")?;
        let in_time = quantity("SLACKLINE_WITHIN")?;
        let priority = quantity("SLACKLINE_PRIORITY")?.map(|Named(priority)| priority);
        if in_time.is_some() && rate.is_some() {
            return Err(wrong(
                "SLACKLINE_WITHIN is set, and SLACKLINE_RATE is, too".into(),
                "set one of them: a program has answers in time, or a stream",
            ));
        }
        let Some(rate) = rate else {
            let without = [("SLACKLINE_BLOCK", block), ("SLACKLINE_BURST", burst)];
            return match without.into_iter().find(|(_, given)| given.is_some()) {
                Some((name, _)) => Err(wrong(
                    format!("{name} is set, and SLACKLINE_RATE is not"),
                    "set SLACKLINE_RATE as well, or neither",
                )),
                None => Ok(Self { contract: None, in_time, priority, create }),
            };
        };
        let contract = Contract::at(rate);
        let contract = block.map_or(contract, |block| contract.block(block));
        let contract = burst.map_or(contract, |burst| contract.burst(burst));
        Ok(Self { contract: Some(contract), in_time, priority, create })
    }
}

/// A priority by its name.
struct Named(Priority);

impl FromStr for Named {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "interactive" => Ok(Self(Priority::Interactive)),
            "normal" => Ok(Self(Priority::Normal)),
            "background" => Ok(Self(Priority::Background)),
            _ => Err("none of interactive, normal and background"),
        }
    }
}

fn wrong(what: String, next_step: &str) -> Box<Problem> {
    Box::new(Problem::new(Code::Invalid, what, next_step))
}

/// A quantity of the environment.
fn quantity<T: FromStr<Err: Display>>(name: &str) -> Result<Option<T>, Box<Problem>> {
    let Some(text) = std::env::var_os(name) else { return Ok(None) };
    let text = text.to_string_lossy();
    let parsed = text.parse().map(Some);
    parsed.map_err(|error| {
        wrong(format!("{name}={text}: {error}"), "correct the variable, or unset it")
    })
}
