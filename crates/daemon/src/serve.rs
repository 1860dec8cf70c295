//! The life of the daemon: open, listen, serve, stop.
//!
//! Stopping: take no new connection; let control requests under way end; close
//! every stream, writers synced, and tell its program; commit. Only then is the
//! process gone, with status 0.

use crate::api::{self, Control};
use crate::config::{Settings, SocketMode};
use crate::data::House;
use crate::files::{Files, Together};
use crate::limits::{
    CONTROL_CONNECTIONS_MAX, CONTROL_STOP_WITHIN, DATA_CONNECTIONS_MAX, STOP_WITHIN,
};
use crate::pool::{Ask, Pool};
use crate::quotas::{self, Peer, Quotas};
use crate::sessions::Sessions;
use crate::socket::{Claim, SocketError};
use crate::{data, limited::Limited, notify};
use node::Op;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

/// What a daemon serves by, beside its pool.
pub struct Manners {
    /// Permissions of both sockets.
    pub mode: SocketMode,
    /// Who may hold how much.
    pub quotas: Arc<Quotas>,
    /// The files under contract.
    pub files: Arc<Files>,
}

impl Manners {
    /// Of a daemon with a pool of so much memory.
    pub fn new(settings: &Settings) -> Self {
        let administrators = vec![0, quotas::own_uid()];
        let quotas = Quotas::new(&settings.quota, settings.node.memory, administrators);
        let files = Files::new(&settings.files, settings.node.host_latency);
        Self { mode: settings.socket_mode, quotas, files }
    }
}

/// As by default, for this user alone.
impl From<SocketMode> for Manners {
    fn from(mode: SocketMode) -> Self {
        let (rules, node) = (quotas::Rules::default(), crate::config::node_default());
        let quotas = Quotas::new(&rules, node.memory, vec![0, quotas::own_uid()]);
        Self { mode, quotas, files: Files::new(&Default::default(), node.host_latency) }
    }
}

/// Why the daemon ended in disorder.
#[derive(Debug)]
pub enum ServeError {
    /// No socket.
    Socket(SocketError),
    /// The pool could not make everything durable.
    Stop(node::Error),
    /// It did not stop in time.
    Late,
    /// The runtime could not start.
    Runtime(std::io::Error),
}

/// Serves `pool` until a signal (SIGTERM or SIGINT), then stops in order.
pub fn run(pool: Arc<dyn Pool>, claim: &Claim, manners: Manners) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // The disks have threads of their own; these only move bytes and words.
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(ServeError::Runtime)?;
    let result = runtime.block_on(async {
        let stop = signalled().map_err(ServeError::Runtime)?;
        serve(pool, claim, manners, stop).await
    });
    // Whatever still hangs on a connection has been told; it is not waited for.
    runtime.shutdown_background();
    result
}

/// Ends at the first signal to stop. A second one ends the process at once.
fn signalled() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
        tokio::spawn(async move {
            tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
            eprintln!("slackline: told to stop twice; stopping without the final commit");
            std::process::exit(1);
        });
    })
}

/// Serves `pool` until `stop`, then stops in order.
pub async fn serve(
    pool: Arc<dyn Pool>,
    claim: &Claim,
    manners: impl Into<Manners>,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let Manners { mode, quotas, files } = manners.into();
    let (control_listener, data_listener) = claim.listen(mode).map_err(ServeError::Socket)?;
    let ask = Ask(Arc::new(Together { pool, files: Arc::clone(&files) }));
    let sessions = Sessions::new(ask.clone());
    let control = Control {
        ask: ask.clone(),
        sessions: Arc::clone(&sessions),
        quotas: Arc::clone(&quotas),
        files: Arc::clone(&files),
        data_socket: claim.data_path(),
        since: ask.0.status().now,
    };
    let (stopping, is_stopping) = watch::channel(false);
    let control = tokio::spawn(serve_control(control_listener, control, is_stopping));
    let connections = Arc::new(Semaphore::new(DATA_CONNECTIONS_MAX));
    let house = House { ask: ask.clone(), sessions: Arc::clone(&sessions), quotas, files };
    let data = serve_data(data_listener, house, &connections);
    let name = ask.0.description().name;
    eprintln!("slackline: serving pool \"{name}\" at {}", claim.control_path().display());
    notify::tell("READY=1");
    tokio::select! {
        () = stop => {}
        () = data => unreachable!("accepting never ends"),
        () = watchdog(&ask) => unreachable!("watching never ends"),
    }
    eprintln!("slackline: stopping");
    notify::tell("STOPPING=1");
    stopping.send_replace(true);
    let stopped = stop_all(&ask, &sessions, &connections, control);
    tokio::time::timeout(STOP_WITHIN, stopped).await.unwrap_or(Err(ServeError::Late))?;
    eprintln!("slackline: stopped; everything acknowledged is on the medium");
    Ok(())
}

async fn stop_all(
    ask: &Ask,
    sessions: &Arc<Sessions>,
    connections: &Semaphore,
    control: JoinHandle<()>,
) -> Result<(), ServeError> {
    sessions.stop_all().await;
    // A control connection that hangs is cut; its request has had its time.
    let cut = control.abort_handle();
    if tokio::time::timeout(CONTROL_STOP_WITHIN, control).await.is_err() {
        cut.abort();
    }
    // A stream that a late control request has opened.
    sessions.stop_all().await;
    let all = connections.acquire_many(DATA_CONNECTIONS_MAX as u32).await;
    drop(all.expect("never closed"));
    ask.done(Op::Shutdown).await.map_err(ServeError::Stop)
}

async fn serve_control(
    listener: UnixListener,
    control: Control,
    mut stopping: watch::Receiver<bool>,
) {
    let listener = Limited::new(listener, CONTROL_CONNECTIONS_MAX);
    let service = api::router(control).into_make_service_with_connect_info::<Peer>();
    let stop = async move { drop(stopping.wait_for(|&stopping| stopping).await) };
    let served = axum::serve(listener, service).with_graceful_shutdown(stop).await;
    if let Err(error) = served {
        eprintln!("slackline: the control socket failed: {error}");
    }
}

/// Takes data connections, each in a task of its own that holds one permit.
async fn serve_data(listener: UnixListener, house: House, connections: &Arc<Semaphore>) {
    loop {
        let connection = accept(&listener).await;
        let Ok(place) = Arc::clone(connections).try_acquire_owned() else {
            data::refuse_busy(connection, DATA_CONNECTIONS_MAX).await;
            continue;
        };
        let house = house.clone();
        tokio::spawn(async move {
            data::serve(connection, house).await;
            drop(place);
        });
    }
}

/// The next connection. Out of descriptors, it waits until there are some.
async fn accept(listener: &UnixListener) -> UnixStream {
    loop {
        match listener.accept().await {
            Ok((connection, _)) => return connection,
            Err(error) => {
                eprintln!("slackline: cannot take a connection: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Tells the service manager that the pool answers, as often as it wants to know.
async fn watchdog(ask: &Ask) {
    let Some(interval) = notify::watchdog_interval() else {
        return std::future::pending().await;
    };
    loop {
        tokio::time::sleep(interval).await;
        // Takes the pool's lock: a pool that hangs keeps the word from being sent.
        let _ = ask.0.status();
        notify::tell("WATCHDOG=1");
    }
}
