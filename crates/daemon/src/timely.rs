//! The threads on which connections under contract are served: few, with real-time priority
//! where the system permits it, beside those that serve everybody else.
//!
//! Invariants: streams, handles with a contract of their own, and connections to volumes that
//! have a contract when they begin are served here, and nobody else; at least one processor is
//! left to ordinary threads, where there are several, whatever these programs do.

use tokio::net::UnixStream;
use tokio::runtime::{Builder, Handle, Runtime};

/// What these threads are called.
pub const NAME: &str = "slackline-timely";
/// How many there are at the most: they only move bytes and words.
const THREADS_MAX: usize = 2;

/// Which threads serve what is under contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serving {
    /// Threads of their own, with real-time priority if that is permitted.
    InRealTime,
    /// Threads of their own, with ordinary priority.
    Apart,
    /// Those that serve everybody: for tests that stop their runtime's clock.
    WithOthers,
}

/// The threads. They end when this is dropped.
pub struct TimelyThreads {
    runtime: Option<Runtime>,
    handle: Handle,
    /// They have real-time priority.
    pub in_real_time: bool,
}

impl TimelyThreads {
    /// Starts them, with real-time priority if that is asked for and permitted.
    ///
    /// # Errors
    /// Where the system gives no threads.
    pub fn start(serving: Serving) -> std::io::Result<Self> {
        if serving == Serving::WithOthers {
            return Ok(Self { runtime: None, handle: Handle::current(), in_real_time: false });
        }
        let realtime = serving == Serving::InRealTime;
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        // The priority is that of the thread that tries, and ends with it.
        let tried = realtime.then(|| std::thread::spawn(engine::deliver_in_time).join());
        let in_real_time = matches!(tried, Some(Ok(Ok(()))));
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS_MAX.min(processors - 1).max(1))
            .thread_name(NAME)
            .on_thread_start(move || {
                if realtime {
                    // The warning of the disks' threads is of this, too.
                    let _ = engine::deliver_in_time();
                }
            })
            .enable_all()
            .build()?;
        let handle = runtime.handle().clone();
        Ok(Self { runtime: Some(runtime), handle, in_real_time })
    }

    /// The way to them.
    pub fn handle(&self) -> Timely {
        Timely(self.handle.clone())
    }
}

impl Drop for TimelyThreads {
    fn drop(&mut self) {
        // What still hangs on a connection has been told; it is not waited for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The way to the threads.
#[derive(Clone)]
pub struct Timely(Handle);

impl Timely {
    /// The same connection, watched by these threads.
    ///
    /// # Errors
    /// Those of the system.
    pub fn watch(&self, connection: UnixStream) -> std::io::Result<UnixStream> {
        let connection = connection.into_std()?;
        let _in = self.0.enter();
        UnixStream::from_std(connection)
    }

    /// Serves a connection there to its end.
    pub async fn serve(&self, served: impl Future<Output = ()> + Send + 'static) {
        // A panic there has said why; at the end of the process nothing is left to do.
        let _ = self.0.spawn(served).await;
    }
}
