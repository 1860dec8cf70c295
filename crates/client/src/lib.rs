//! What a program links to use Slackline: blocking calls, without a runtime.
//!
//! ```no_run
//! use client::Client;
//! use client::control::{Contract, VolumeCreate};
//! use std::io::{Read, Write};
//! use units::{Bytes, Rate};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect(client::default_socket())?;
//! client.volume_create(&VolumeCreate::new("video", Bytes::GIB))?;
//! let contract = Contract {
//!     rate_bytes_per_second: Rate::per_second(1_000_000),
//!     block_bytes: Bytes::kib(256),
//!     burst_bytes: Bytes::kib(256),
//! };
//! let mut writer = client.writer("video", contract, Bytes::ZERO)?;
//! writer.write_all(b"on its way")?;
//! let durable = writer.sync()?; // everything before this offset survives a crash
//! writer.close()?;
//! let mut reader = client.reader("video", contract, Bytes::ZERO)?;
//! let mut back = Vec::new();
//! reader.read_to_end(&mut back)?;
//! # Ok(()) }
//! ```
//!
//! Invariants: an error of the daemon arrives as the [`Problem`]
//! that it is; a reader or writer that is dropped closes its stream; nothing here
//! queues more than the protocol's bounds. Windows are mapped where the daemon can
//! share them, and otherwise carried over a socket: nobody who calls sees a difference,
//! but in speed.

#[cfg(feature = "tokio")]
pub mod aio;
mod best_effort;
mod carried_reader;
mod carried_writer;
mod connection;
mod error;
mod file;
mod file_reader;
mod forks;
mod growing;
mod http;
mod in_time;
mod interrupt;
mod kept;
mod line;
mod naming;
mod patience;
mod pieces;
mod reader;
mod shared_reader;
mod shared_writer;
mod socket;
mod undecided;
mod updater;
mod writer;

pub use best_effort::{BestEffort, Completion, Tag};
pub use error::Error;
pub use file::{Contract, File, OpenOptions, ReadRange, Target, are_apart};
pub use in_time::{InTime, NoInTime};
pub use interrupt::when_interrupted;
pub use naming::{Durable, ENTRIES_MAX, Found, Replace, Which};
pub use patience::set_answer_within;
/// The longest name of a volume, in bytes.
pub const VOLUME_NAME_MAX: usize = wire::frame::NAME_MAX;
pub use pieces::{Peek, Piece};
pub use reader::{Reader, Sought};
pub use units;
pub use updater::Updater;
pub use wire::{Code, Problem, Refusal, control};
pub use writer::{Durability, Writer};

use carried_reader::CarriedReader;
use carried_writer::CarriedWriter;
use shared_reader::SharedReader;
use shared_writer::SharedWriter;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::{Bytes, Rate};
use wire::control::{
    Access, BlockAsk, BlockChosen, BusSet, Disk, DiskProfile, Events, Health, Mode, Overview, Plan,
    PlanRequest, PolicySet, PolicyState, Priority, Quotas, Service, Status, Stream, StreamBegins,
    StreamChange, StreamClosed, StreamOpen, StreamOpened, Streams, TokenMade, TokenMake, Tokens,
    Volume, VolumeCreate, VolumeResize, Volumes,
};

/// Where the daemon's control socket is unless somebody says otherwise: that of a daemon of this
/// user's own, or else that of the machine's, `/run/slackline/slackline.sock`.
pub fn default_socket() -> PathBuf {
    socket::default()
}

/// Where the control socket of a daemon is that this user serves, unless somebody says otherwise.
pub fn own_socket() -> PathBuf {
    socket::own()
}

/// A daemon, by its socket. Each control call is a connection of its own, where they are not
/// [kept](Client::keeping_connections).
#[derive(Clone, Debug)]
pub struct Client {
    door: http::Door,
    /// Whether windows are mapped.
    shares: bool,
    /// Requests of its streams may be late so often, in parts of a billion.
    miss: Option<u64>,
    /// Its programs lose nothing while their streams are slowed.
    buffered: bool,
    /// Its writers make their volume larger, up to this.
    grows_to: Bytes,
    /// Whose its writes are, and those of its clones; zero: nobody's who has a number.
    writer: Arc<AtomicU64>,
}

/// The result of a call.
pub type Result<T> = std::result::Result<T, Error>;

impl Client {
    /// The daemon at this control socket; fails where none answers.
    pub fn connect(socket: impl Into<PathBuf>) -> Result<Self> {
        let client = Self::at(socket);
        client.health()?;
        Ok(client)
    }

    /// The same, without a look whether one answers.
    pub fn at(socket: impl Into<PathBuf>) -> Self {
        Self {
            door: http::Door::new(socket.into()),
            shares: true,
            miss: None,
            buffered: false,
            grows_to: Bytes::ZERO,
            writer: Arc::default(),
        }
    }

    /// The control socket.
    pub fn socket(&self) -> &Path {
        &self.door.socket
    }

    /// The same daemon, whose control calls use the connections of those before: for programs that make many. A
    /// connection that waits for its next call holds one of the user's places at the daemon.
    #[must_use]
    pub fn keeping_connections(mut self) -> Self {
        self.door.kept = Some(kept::Kept::default());
        self
    }

    /// The same daemon, of which no window is mapped: for comparisons, and for programs
    /// that must not map memory.
    pub fn without_shared_windows(mut self) -> Self {
        self.shares = false;
        self
    }

    /// The same daemon, whose best-effort writes by this client have a number, so that
    /// [`file_facts`](Client::file_facts) tells of others' changes only: below 2^60, and nobody
    /// else's.
    pub fn as_writer(mut self, number: NonZeroU64) -> Self {
        self.writer = Arc::new(AtomicU64::new(number.get()));
        self
    }

    /// The number of its writes, where they have one.
    pub fn writer_number(&self) -> Option<NonZeroU64> {
        NonZeroU64::new(self.writer.load(Ordering::Relaxed))
    }

    /// Writes by connections that this client, or a clone of it, makes from now on have another number. What
    /// goes by those that it has made is others' by then: a write that was not answered may be done yet.
    pub fn set_writer_number(&self, number: NonZeroU64) {
        self.writer.store(number.get(), Ordering::Relaxed);
    }

    /// The same daemon, while it serves the pool of this identity ([`Health::pool_id`]): a daemon that
    /// serves another one refuses every call ([`Code::OtherPool`]). What goes by a connection of its own
    /// (bytes without a contract) is not looked at: ask something first.
    #[must_use]
    pub fn of_pool(mut self, id: &str) -> Self {
        self.door.pool = Some(id.into());
        self
    }

    /// The same client, whose [`run_heard`](Client::run_heard) is that of its own calls alone.
    #[must_use]
    pub fn heard_apart(&self) -> Self {
        let mut apart = self.clone();
        apart.door.run = Arc::default();
        apart
    }

    /// The run ([`Health::run`]) of the daemon that has answered the last call of this client, or of one
    /// that it was cloned from or to; none while no daemon has said one.
    pub fn run_heard(&self) -> Option<u64> {
        Some(self.door.run.load(Ordering::Relaxed)).filter(|&run| run != 0)
    }

    /// That the daemon answers, and what it serves.
    pub fn health(&self) -> Result<Health> {
        http::call(&self.door, "GET", "/v1/health", None::<&()>)
    }

    /// Everything at one instant.
    pub fn status(&self) -> Result<Status> {
        http::call(&self.door, "GET", "/v1/status", None::<&()>)
    }

    /// Everything at one instant, with what a person should know of it.
    pub fn overview(&self) -> Result<Overview> {
        http::call(&self.door, "GET", "/v1/overview", None::<&()>)
    }

    /// The last events that this user may see, with numbers above `after`.
    pub fn events(&self, after: u64) -> Result<Events> {
        http::call(&self.door, "GET", &format!("/v1/events?after={after}"), None::<&()>)
    }

    /// A token that acts as this user, with less than he may.
    pub fn token_make(&self, request: &TokenMake) -> Result<TokenMade> {
        http::call(&self.door, "POST", "/v1/tokens", Some(request))
    }

    /// This user's tokens that are good.
    pub fn tokens(&self) -> Result<Tokens> {
        http::call(&self.door, "GET", "/v1/tokens", None::<&()>)
    }

    /// Revokes a token, and all that were narrowed from it.
    pub fn token_revoke(&self, number: u64) -> Result<()> {
        http::call_without_answer(&self.door, "DELETE", &format!("/v1/tokens/{number}"))
    }

    /// How the disks are scheduled, and what that promises.
    pub fn policy(&self) -> Result<PolicyState> {
        http::call(&self.door, "GET", "/v1/policy", None::<&()>)
    }

    /// Schedules the disks by another policy from now on, and the pool keeps that. Refused where
    /// an open contract would not be kept.
    pub fn set_policy(&self, policy: &str) -> Result<PolicyState> {
        let policy = Some(policy.into());
        self.change_policy(&PolicySet { policy, ..PolicySet::default() })
    }

    /// Schedules the disks by another policy or with other settings. Refused where an open
    /// contract would not be kept.
    pub fn change_policy(&self, to: &PolicySet) -> Result<PolicyState> {
        http::call(&self.door, "PUT", "/v1/policy", Some(to))
    }

    /// Uses another profile (TOML) for a disk from now on, and stores it.
    pub fn disk_profile(&self, disk: u16, profile: &str) -> Result<Disk> {
        let body = DiskProfile { profile: profile.into() };
        http::call(&self.door, "PUT", &format!("/v1/disks/{disk}/profile"), Some(&body))
    }

    /// Says which disks share a bus from now on. Refused where an open contract would not fit.
    pub fn bus_set(&self, bus: &BusSet) -> Result<Vec<Disk>> {
        http::call(&self.door, "PUT", "/v1/bus", Some(bus))
    }

    /// Measures a disk again in the background; what comes of it is in the status.
    pub fn disk_reprofile(&self, disk: u16) -> Result<Disk> {
        let path = format!("/v1/disks/{disk}/reprofile");
        http::call(&self.door, "POST", &path, None::<&()>)
    }

    /// All volumes that this user may read or owns.
    pub fn volumes(&self) -> Result<Vec<Volume>> {
        let all: Volumes = http::call(&self.door, "GET", "/v1/volumes", None::<&()>)?;
        Ok(all.volumes)
    }

    /// One volume.
    pub fn volume(&self, name: &str) -> Result<Volume> {
        http::call(&self.door, "GET", &volume_path(name), None::<&()>)
    }

    /// Makes a volume and reserves its space, durably.
    pub fn volume_create(&self, create: &VolumeCreate) -> Result<Volume> {
        http::call(&self.door, "POST", "/v1/volumes", Some(create))
    }

    /// Grows or shrinks a volume, durably, also while it is in use. Refused
    /// ([`Code::WouldCut`]) where that would cut what is recorded.
    pub fn volume_resize(&self, name: &str, size: Bytes) -> Result<Volume> {
        let resize = VolumeResize { size_bytes: size, ..VolumeResize::default() };
        http::call(&self.door, "PATCH", &volume_path(name), Some(&resize))
    }

    /// As [`Client::volume_resize`]; what is recorded beyond `size` is lost.
    pub fn volume_cut(&self, name: &str, size: Bytes) -> Result<Volume> {
        let resize = VolumeResize { size_bytes: size, may_cut: true, ..VolumeResize::default() };
        http::call(&self.door, "PATCH", &volume_path(name), Some(&resize))
    }

    /// Cuts what is recorded to `length`, durably; all space of the volume stays reserved.
    pub fn volume_truncate(&self, name: &str, length: Bytes) -> Result<Volume> {
        let cut = VolumeResize { size_bytes: length, keep_space: true, ..VolumeResize::default() };
        http::call(&self.door, "PATCH", &volume_path(name), Some(&cut))
    }

    /// Says whose a volume is and who may do what with it, durably. What is open stays
    /// open.
    pub fn volume_access(&self, name: &str, access: &Access) -> Result<Volume> {
        let path = format!("{}/access", volume_path(name));
        http::call(&self.door, "PUT", &path, Some(access))
    }

    /// Removes a volume and its data, durably.
    pub fn volume_delete(&self, name: &str) -> Result<()> {
        http::call_without_answer(&self.door, "DELETE", &volume_path(name))
    }

    /// Serves what no stream of a volume carries in this way from now on, also what
    /// waits; it is kept with the volume.
    pub fn volume_service(&self, name: &str, service: &Service) -> Result<Volume> {
        let path = format!("{}/service", volume_path(name));
        http::call(&self.door, "PUT", &path, Some(service))
    }

    /// Which block suits a stream of this rate on a volume, by the profiles of its disks:
    /// what [`Contract`] has where the program names none.
    pub fn block_for(&self, volume: &str, mode: Mode, rate: Rate) -> Result<Bytes> {
        let path = format!("{}/block", volume_path(volume));
        let ask = BlockAsk { mode, rate_bytes_per_second: rate };
        let chosen: BlockChosen = http::call(&self.door, "POST", &path, Some(&ask))?;
        Ok(chosen.block_bytes)
    }

    /// All streams.
    pub fn streams(&self) -> Result<Vec<Stream>> {
        let all: Streams = http::call(&self.door, "GET", "/v1/streams", None::<&()>)?;
        Ok(all.streams)
    }

    /// One stream.
    pub fn stream(&self, id: u64) -> Result<Stream> {
        http::call(&self.door, "GET", &format!("/v1/streams/{id}"), None::<&()>)
    }

    /// Gives any open stream another rate or burst, in the same blocks.
    pub fn stream_change(&self, id: u64, contract: control::Contract) -> Result<Stream> {
        let path = format!("/v1/streams/{id}");
        http::call(&self.door, "PATCH", &path, Some(&StreamChange { contract }))
    }

    /// Closes any stream, also another program's; a writer is synced first.
    pub fn stream_close(&self, id: u64) -> Result<StreamClosed> {
        http::call(&self.door, "DELETE", &format!("/v1/streams/{id}"), None::<&()>)
    }

    /// Ends the contract of a handle on a volume, also another program's, and its connection.
    pub fn handle_end(&self, volume: &str, handle: u64) -> Result<Volume> {
        let path = format!("{}/handles/{handle}", volume_path(volume));
        http::call(&self.door, "DELETE", &path, None::<&()>)
    }

    /// The same client, of whose streams each request may be late with a probability of so many
    /// parts in a billion, at most 100,000,000: more of them fit on a device that is seldom slow.
    /// (A daemon that does not know this refuses them.)
    #[must_use]
    pub fn at_odds(&self, miss_per_billion: u64) -> Self {
        Self { miss: Some(miss_per_billion), ..self.clone() }
    }

    /// The same client, whose programs hold their bytes until they are taken: `slackline status` does not
    /// warn of their streams where these are slowed to their rate. (A daemon that does not know this refuses
    /// them.)
    #[must_use]
    pub fn buffered(&self) -> Self {
        Self { buffered: true, ..self.clone() }
    }

    /// Who may hold how much, and holds.
    pub fn quotas(&self) -> Result<Quotas> {
        http::call(&self.door, "GET", "/v1/quota", None::<&()>)
    }

    /// Whether a list of streams would fit, and what would.
    pub fn plan(&self, plan: &PlanRequest) -> Result<Plan> {
        http::call(&self.door, "POST", "/v1/plan", Some(plan))
    }

    /// Opens a volume for reading under contract, from `start` on.
    pub fn reader(
        &self,
        volume: &str,
        contract: control::Contract,
        start: Bytes,
    ) -> Result<Reader> {
        self.open_reader(volume, contract, Some(start), false).map(|(reader, _)| reader)
    }

    /// As [`Client::reader`], and the first bytes come as soon as they are there, as after
    /// [`Reader::seek`], which most often is within a tenth of a second; gives how soon
    /// that is at the latest, and from when on the contract holds in full. (A daemon that
    /// does not know this refuses it.)
    pub fn reader_early(
        &self,
        volume: &str,
        contract: control::Contract,
        start: Bytes,
    ) -> Result<(Reader, Sought)> {
        self.open_reader(volume, contract, Some(start), true)
    }

    /// As [`Client::reader_early`], from where what the volume holds begins: of a ring, behind what it
    /// has given up. [`Reader::offset`] tells where that is.
    pub fn reader_of_all(
        &self,
        volume: &str,
        contract: control::Contract,
    ) -> Result<(Reader, Sought)> {
        self.open_reader(volume, contract, None, true)
    }

    fn open_reader(
        &self,
        volume: &str,
        contract: control::Contract,
        start: Option<Bytes>,
        early: bool,
    ) -> Result<(Reader, Sought)> {
        let opened = self.open(volume, Mode::Read, contract, start, self.shares, early)?;
        let (socket, client) = (Path::new(&opened.data_socket), self.clone());
        let of = |begins: StreamBegins| Sought { ready: begins.ready_ns, steady: begins.steady_ns };
        let begins = opened.begins.map(of).unwrap_or_default();
        if opened.shared_window {
            return match SharedReader::attach(socket, opened.id, opened.window_bytes)? {
                Ok(reader) => Ok((Reader::shared(reader, client, opened.id, contract), begins)),
                Err(_) => {
                    client.without_shared_windows().open_reader(volume, contract, start, early)
                }
            };
        }
        let reader = CarriedReader::attach(socket, opened.id)?;
        Ok((Reader::carried(reader, client, opened.id, contract), begins))
    }

    /// Opens a volume for writing under contract, from `start` on.
    pub fn writer(
        &self,
        volume: &str,
        contract: control::Contract,
        start: Bytes,
    ) -> Result<Writer> {
        let opened = self.open(volume, Mode::Write, contract, start, self.shares, false)?;
        let (socket, client) = (Path::new(&opened.data_socket), self.clone());
        if opened.shared_window {
            match SharedWriter::attach(socket, opened.id, opened.window_bytes)? {
                Ok(writer) => return Ok(Writer::shared(writer, client, opened.id, contract)),
                Err(_) => return client.without_shared_windows().writer(volume, contract, start),
            }
        }
        let writer = CarriedWriter::attach(socket, opened.id)?;
        Ok(Writer::carried(writer, client, opened.id, contract))
    }

    /// As [`Client::writer`], of a volume that grows as it fills, up to `limit`
    /// ([`Writer::grow_to`]); also where it is full now. A ring needs no more than it has.
    ///
    /// # Errors
    /// As [`Client::writer`]; and where the pool, or the user's quota, has no room for one block more.
    pub fn growing_writer(
        &self,
        volume: &str,
        contract: control::Contract,
        start: Bytes,
        limit: Bytes,
    ) -> Result<Writer> {
        let found = self.volume(volume)?;
        let begin = limit.min(start.saturating_add(contract.block_bytes));
        if found.ring.is_none() && found.size_bytes < begin {
            self.grow_volume(volume, begin, Bytes::ZERO, Durable::WithNextSync)?;
        }
        let growing = Self { grows_to: limit, ..self.clone() };
        let mut writer = growing.writer(volume, contract, start)?;
        writer.grow_to(limit)?;
        Ok(writer)
    }

    /// Opens a volume to be read and changed under one contract, from `start` on, a multiple of
    /// the contract's block.
    ///
    /// # Errors
    /// As [`Client::writer`]; and where the daemon and this program cannot share memory.
    pub fn updater(
        &self,
        volume: &str,
        contract: control::Contract,
        start: Bytes,
    ) -> Result<Updater> {
        let recorded = self.volume(volume)?.length_bytes;
        let opened = self.open(volume, Mode::Update, contract, start, true, false)?;
        let socket = Path::new(&opened.data_socket);
        let stream = SharedWriter::attach(socket, opened.id, opened.window_bytes)?;
        Ok(Updater::new(stream?, self.clone(), opened.id, contract, recorded))
    }

    /// Reads and writes a volume as best effort: in the slack of the contracts.
    pub fn best_effort(&self, volume: &str) -> Result<BestEffort> {
        BestEffort::attach(
            &wire::socket::data_path(self.socket()),
            volume,
            None,
            self.writer_number(),
        )
    }

    /// As [`Client::best_effort`], under a contract of this handle's own: admission decides
    /// here, and the contract ends with the handle.
    ///
    /// # Errors
    /// As [`Client::best_effort`]; [`Code::Refused`] where the contract does not fit, and
    /// [`Code::Quota`] where it is more than the user may have.
    pub fn best_effort_in_time(&self, volume: &str, contract: InTime) -> Result<BestEffort> {
        let socket = wire::socket::data_path(self.socket());
        undecided::patiently(|| BestEffort::attach_in_time(&socket, volume, contract))
    }

    /// As [`Client::best_effort`], with a priority of this handle's own: before or behind
    /// other best effort, as far as the volume's service and the user's quota let it.
    pub fn best_effort_as(&self, volume: &str, priority: Priority) -> Result<BestEffort> {
        let socket = wire::socket::data_path(self.socket());
        BestEffort::attach(&socket, volume, Some(priority), self.writer_number())
    }

    fn open(
        &self,
        volume: &str,
        mode: Mode,
        contract: control::Contract,
        start: impl Into<Option<Bytes>>,
        shared_window: bool,
        early: bool,
    ) -> Result<StreamOpened> {
        let volume = volume.into();
        let (start_bytes, miss_per_billion) = (start.into(), self.miss);
        let open = StreamOpen {
            volume,
            mode,
            contract,
            start_bytes,
            shared_window,
            early,
            miss_per_billion,
            buffered: self.buffered,
            grows_to_bytes: self.grows_to,
        };
        undecided::patiently(|| http::call(&self.door, "POST", "/v1/streams", Some(&open)))
    }
}

/// The address of a volume. A name may have any character; in an address most
/// are written as their bytes (RFC 3986, section 2.1).
fn volume_path(name: &str) -> String {
    let mut path = String::from("/v1/volumes/");
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => path.push(byte as char),
            _ => path.push_str(&format!("%{byte:02X}")),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_is_one_part_of_an_address() {
        assert_eq!(volume_path("video-1_a"), "/v1/volumes/video-1_a");
        assert_eq!(volume_path("a b/ü.."), "/v1/volumes/a%20b%2F%C3%BC%2E%2E");
    }
}
