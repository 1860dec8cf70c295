//! What hangs while the daemon stops. From the stop on the clock of this test is the
//! runtime's own, which is set forward: what is waited for is counted, not waited.

use crate::support::{Fake, Volume};
use daemon::config::SocketMode;
use daemon::limits::{CLIENTS_STOP_WITHIN, GOODBYE_WITHIN};
use daemon::socket::Claim;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::time::Instant;
use units::Bytes;
use wire::frame::{Head, VERSION};

/// A read under way that never ends, on a connection that reads nothing.
async fn hang(socket: std::path::PathBuf, pool: &Fake) -> UnixStream {
    let mut connection = UnixStream::connect(socket).await.unwrap();
    connection
        .write_all(&Head::HelloVolume { version: VERSION, priority: None, writer: None }.encode(1))
        .await
        .unwrap();
    connection.write_all(b"v").await.unwrap();
    let read = Head::ReadAt { tag: 1, offset: Bytes::ZERO, len: Bytes::kib(4) };
    connection.write_all(&read.encode(0)).await.unwrap();
    while pool.state().held.is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    connection
}

#[tokio::test(flavor = "current_thread")]
async fn a_request_that_never_ends_keeps_the_daemon_from_stopping_for_a_moment_only() {
    let pool = Arc::new(Fake::default());
    pool.state().volumes.insert("v".into(), Volume { size: 1 << 20, ..Volume::default() });
    pool.state().hold_best_effort = true;
    let dir = tempfile::Builder::new().prefix("slackline-").tempdir().unwrap();
    let socket = dir.path().join("s.sock");
    let claim = Claim::new(&socket).unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let (listening, is_listening) = tokio::sync::oneshot::channel::<()>();
    // Polled for the first time after the sockets are there.
    let stopping = async move {
        listening.send(()).unwrap();
        let _ = stopped.await;
    };
    let served = daemon::serve::serve(pool.clone(), &claim, SocketMode(0o600), stopping);
    let program = async {
        is_listening.await.unwrap();
        let connection = hang(wire::socket::data_path(&socket), &pool).await;
        tokio::time::pause();
        drop(stop);
        (connection, Instant::now())
    };
    let (served, (_connection, since)) = tokio::join!(served, program);
    let took = since.elapsed();
    served.expect("it stops in order");
    assert!(took >= GOODBYE_WITHIN, "nothing hung: {took:?}");
    assert!(took <= CLIENTS_STOP_WITHIN, "{took:?}");
}
