//! The life of the daemon: open, listen, serve, stop.
//!
//! Stopping: take no new connection, and let those go that have asked for nothing; close
//! every stream, writers synced, and tell its program; let control requests under way
//! end; commit. Only then is the process gone, with status 0. Each step that waits for
//! clients has an end (`limits`), behind which the next is done all the same. Where a part of the daemon
//! ends by itself, it stops in the same way, with a failure: to be started again.

use crate::api::Control;
use crate::config::{Settings, SocketMode};
use crate::data::House;
use crate::door::{Door, Kind};
use crate::events::{Events, Hook};
use crate::files::{Files, Together};
use crate::limits::{
    CONTROL_STOP_WITHIN, DATA_STOP_WITHIN, DISKS_STOP_WITHIN, KEEP_ALIVE, connections_for,
};
use crate::live::Live;
use crate::pool::{Entry, Pool};
use crate::quotas::{self, Quotas, Whole};
use crate::sessions::Sessions;
use crate::socket::{Claim, SocketError};
use crate::tcp::{Gate, Listen};
pub use crate::timely::Serving;
use crate::timely::TimelyThreads;
use crate::tls::TlsError;
use crate::tokens::Tokens;
use crate::{control, data, descriptors, nbd, notify, overview, routes};
use node::calls;
use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use units::{Bytes, Duration};

/// What a daemon serves by, beside its pool.
pub struct ServeOptions {
    /// Permissions of both sockets.
    pub mode: SocketMode,
    /// Who may hold how much.
    pub quotas: Arc<Quotas>,
    /// The files under contract.
    pub files: Arc<Files>,
    /// A stream's program may be silent for so long; zero: for ever.
    pub keep_alive: Duration,
    /// Which threads carry answers under contract.
    pub timely: Serving,
    /// Where to listen on TCP.
    pub listen: Listen,
    /// Where the daemon keeps its state, in a directory for each pool.
    pub state: Option<PathBuf>,
    /// A command that is run for each event.
    pub event_hook: Option<PathBuf>,
}

impl ServeOptions {
    /// Of a daemon whose pool has so much space for volumes.
    pub fn new(settings: &Settings, space: Bytes) -> Self {
        let whole = Whole { memory: settings.node.memory, space };
        let administrators = vec![0, quotas::own_uid()];
        let quotas = Quotas::new(&settings.quota, whole, administrators);
        let files = Files::new(&settings.files, settings.node.host_latency);
        let (mode, keep_alive) = (settings.socket_mode, settings.keep_alive);
        let (listen, state) = (settings.listen.clone(), settings.state.clone());
        let (timely, event_hook) = (Serving::InRealTime, settings.event_hook.clone());
        Self { mode, quotas, files, keep_alive, timely, listen, state, event_hook }
    }
}

/// As by default, for this user alone.
impl From<SocketMode> for ServeOptions {
    fn from(mode: SocketMode) -> Self {
        let (rules, node) = (quotas::Rules::default(), crate::config::node_default());
        // Of a pool that it does not know, nobody takes too much space.
        let whole = Whole { memory: node.memory, space: Bytes::MAX };
        let quotas = Quotas::new(&rules, whole, vec![0, quotas::own_uid()]);
        let files = Files::new(&Default::default(), node.host_latency);
        let (keep_alive, timely, listen) = (KEEP_ALIVE, Serving::Apart, Listen::default());
        let (state, event_hook) = (None, None);
        Self { mode, quotas, files, keep_alive, timely, listen, state, event_hook }
    }
}

/// Why the daemon ended in disorder.
#[derive(Debug)]
pub enum ServeError {
    /// No socket.
    Socket(SocketError),
    /// The pool could not make everything durable.
    Stop(node::Error),
    /// The disks did not come to rest in time.
    Late,
    /// This part of it ended before it was told to.
    Ended(&'static str),
    /// Nothing can be served over TCP as it was asked for.
    Tcp(TlsError),
    /// The key and the list of tokens cannot be used.
    Tokens(Box<wire::Problem>),
    /// The runtime could not start.
    Runtime(std::io::Error),
}

/// Serves `pool` until a signal (SIGTERM, SIGINT, or SIGHUP unless that is ignored), then stops in order.
pub fn run(pool: Arc<dyn Pool>, claim: &Claim, options: ServeOptions) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // The disks have threads of their own, and what is under contract (`timely`); these only
        // move bytes and words.
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(ServeError::Runtime)?;
    let kept = Arc::clone(&pool);
    let result = runtime.block_on(async {
        let stop = signalled().map_err(ServeError::Runtime)?;
        serve(pool, claim, options, stop).await
    });
    // Whatever still hangs on a connection has been told; it is not waited for.
    runtime.shutdown_background();
    if let Err(ServeError::Late) = result {
        // Its end would wait for the disk that hangs. The process ends without it.
        std::mem::forget(kept);
    }
    result
}

/// Whether the process was started to go on when its terminal is closed, as by `nohup`.
pub fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 == 1) // of signal 1
}

/// Ends at the first signal to stop. A second one ends the process at once; a terminal that is closed
/// sends several.
fn signalled() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let hangup = if ignores_hangup() { None } else { Some(signal(SignalKind::hangup())?) };
    Ok(async move {
        let hung_up = async {
            match hangup {
                Some(mut hangup) => drop(hangup.recv().await),
                None => std::future::pending().await,
            }
        };
        let is_hung_up = tokio::select! {
            _ = terminate.recv() => false,
            _ = interrupt.recv() => false,
            () = hung_up => true,
        };
        tokio::spawn(async move {
            // Beside it comes what says the same, as of a session that ends.
            for _ in 0..1 + u32::from(is_hung_up) {
                tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
            }
            tracing::error!("told to stop twice; stopping without the final commit");
            crate::log::flush();
            std::process::exit(1);
        });
    })
}

/// Serves `pool` until `stop`, then stops in order.
pub async fn serve(
    pool: Arc<dyn Pool>,
    claim: &Claim,
    options: impl Into<ServeOptions>,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let options = options.into();
    let ServeOptions { mode, quotas, files, keep_alive, timely, listen, state, event_hook } =
        options;
    let threads = TimelyThreads::start(timely).map_err(ServeError::Runtime)?;
    let descriptors = descriptors::raise();
    let hook = event_hook.as_deref().and_then(crate::events::cannot_be_run);
    let warnings: Vec<String> = descriptors::warning(descriptors).into_iter().chain(hook).collect();
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let door = Door::new(connections_for(descriptors));
    let listeners = claim.listen(mode).map_err(ServeError::Socket)?;
    let state = state.map(|state| state.join(pool.description().name));
    let tokens = Tokens::new(state.clone());
    if !listen.is_nothing() {
        tokens.open().map_err(ServeError::Tokens)?;
    }
    let tcp = listen.start(state.as_deref()).map_err(ServeError::Tcp)?;
    let in_real_time = threads.in_real_time;
    let certificate = tcp.tls.as_ref().map(|tls| Arc::clone(&tls.kept));
    let together =
        Together { pool, files: Arc::clone(&files), in_real_time, warnings, certificate };
    let entry = Entry(Arc::new(together));
    let volumes = entry.0.status().volumes;
    for warning in crate::convert::warnings(&volumes) {
        tracing::warn!("{warning}");
    }
    let sessions = Sessions::new(entry.own());
    let (stopping, is_stopping) = watch::channel(false);
    let live = Live::new(state, is_stopping.clone());
    let mut parts = Parts::default();
    parts.begin("the record of what the disks do", Arc::clone(&live).record(entry.clone()));
    let control = Control {
        entry: entry.clone(),
        sessions: Arc::clone(&sessions),
        quotas: Arc::clone(&quotas),
        ahead: Arc::default(),
        plans: Arc::default(),
        files: Arc::clone(&files),
        tokens: Arc::clone(&tokens),
        live,
        events: Events::new(event_hook.map(Hook::start).transpose().map_err(ServeError::Runtime)?),
        data_socket: claim.data_path(),
        since: entry.0.now(),
        run: run_number(),
    };
    parts.begin("the watch for events", overview::watch(control.clone(), is_stopping.clone()));
    let kept_files = Arc::clone(&files);
    let (own, sessions_of_house) = (entry.clone(), Arc::clone(&sessions));
    let timely = threads.handle();
    let house = House {
        entry: own,
        sessions: sessions_of_house,
        quotas,
        files,
        keep_alive,
        timely,
        gathers: Arc::default(),
    };
    let quotas = Arc::clone(&house.quotas);
    let gate = Gate {
        tokens,
        quotas: Arc::clone(&quotas),
        door: Arc::clone(&door),
        timely: house.timely.clone(),
        tls: tcp.tls,
    };
    // They end with the word to stop, which each has; those they carry are in the door's book.
    if let Some(listener) = tcp.http {
        let router = routes::router_by_token(control.clone());
        let served = control::serve_tcp(listener, router, gate.clone(), is_stopping.clone());
        parts.begin("HTTP over TCP", served);
    }
    if let Some(listener) = tcp.nbd {
        let served = nbd::listen_tcp(listener, house.clone(), gate, is_stopping.clone());
        parts.begin("block devices over TCP", served);
    }
    let router = routes::router(control);
    let reception = (Arc::clone(&door), quotas, house.timely.clone());
    let control = control::serve(listeners.control, router, reception, is_stopping.clone());
    parts.begin("the control socket", control);
    let nbd = nbd::listen(listeners.nbd, house.clone(), Arc::clone(&door), is_stopping.clone());
    parts.begin("the block devices' socket", nbd);
    let data = data::listen(listeners.data, house, Arc::clone(&door), is_stopping);
    parts.begin("the data socket", data);
    let name = entry.0.description().name;
    let socket = claim.control_path().display();
    tracing::info!(pool = %name, %socket, "serving pool \"{name}\" at {socket}");
    notify::tell("READY=1");
    let ended = tokio::select! {
        () = stop => None,
        what = parts.first_ended() => Some(what),
        () = watchdog(&entry) => unreachable!("watching never ends"),
        never = kept_files.forget_in_time() => match never {},
    };
    if let Some(what) = ended {
        tracing::error!(pool = %name, "{what} has ended, which it does only when the daemon stops");
    }
    tracing::info!(pool = %name, "stopping");
    notify::tell("STOPPING=1");
    stopping.send_replace(true);
    parts.end().await;
    stop_all(&entry, &sessions, &door).await?;
    let damage = entry.0.damage();
    for (disk, damage) in
        damage.iter().enumerate().filter_map(|(disk, it)| Some((disk, it.as_ref()?)))
    {
        tracing::error!(pool = %name, "disk {disk}: {damage}");
    }
    match damage.iter().any(Option::is_some) {
        true => tracing::error!(pool = %name, "stopped; what lay on that disk may be gone"),
        false => tracing::info!(pool = %name, "stopped; everything acknowledged is on the medium"),
    }
    ended.map_or(Ok(()), |what| Err(ServeError::Ended(what)))
}

/// What runs for as long as the daemon serves.
#[derive(Default)]
struct Parts(Vec<(&'static str, JoinHandle<()>)>);

impl Parts {
    /// One more, until the daemon stops.
    fn begin(&mut self, what: &'static str, part: impl Future<Output = ()> + Send + 'static) {
        self.0.push((what, tokio::spawn(part)));
    }

    /// Waits until one of them ends: which.
    async fn first_ended(&mut self) -> &'static str {
        poll_fn(|context| {
            let mut parts = self.0.iter_mut();
            match parts.position(|(_, part)| Pin::new(part).poll(context).is_ready()) {
                Some(at) => Poll::Ready(self.0.swap_remove(at).0),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// Waits until all have ended, which were told to stop.
    async fn end(self) {
        for (_, part) in self.0 {
            let _ = part.await; // a panic there has said why
        }
    }
}

/// A number that no start of a daemon on this machine had before: the time, in nanoseconds.
fn run_number() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// Ends everything in order. Clients are waited for no longer than
/// [`CLIENTS_STOP_WITHIN`](crate::limits::CLIENTS_STOP_WITHIN) in all, and whatever they
/// do, the pool is told to commit and to end.
async fn stop_all(entry: &Entry, sessions: &Arc<Sessions>, door: &Door) -> Result<(), ServeError> {
    // Who has asked for nothing has nothing to lose.
    door.close();
    let synced_by = Instant::now() + DISKS_STOP_WITHIN;
    let mut is_synced = timeout_at(synced_by, sessions.stop_all()).await.is_ok();
    let asked = timeout(CONTROL_STOP_WITHIN, door.is_empty_of(Kind::Control)).await;
    if asked.is_err() {
        tracing::error!("control requests that hang are cut");
    }
    door.clear();
    // A stream that a late control request has opened.
    is_synced &= timeout_at(synced_by, sessions.stop_all()).await.is_ok();
    if timeout(DATA_STOP_WITHIN, door.is_empty_of(Kind::Data)).await.is_err() {
        tracing::error!("data connections that hang are cut");
    }
    if !is_synced {
        tracing::error!("streams could not be synced in time: a disk hangs");
    }
    match timeout(DISKS_STOP_WITHIN, entry.own().call(calls::Shutdown {})).await {
        Ok(ended) => ended.map_err(ServeError::Stop),
        Err(_) => Err(ServeError::Late),
    }
}

/// Tells the service manager that the pool answers, as often as it wants to know.
async fn watchdog(entry: &Entry) {
    let Some(interval) = notify::watchdog_interval() else {
        return std::future::pending().await;
    };
    loop {
        tokio::time::sleep(interval).await;
        // Takes the pool's lock: a pool that hangs keeps the word from being sent.
        let _ = entry.0.is_read_only();
        notify::tell("WATCHDOG=1");
    }
}
