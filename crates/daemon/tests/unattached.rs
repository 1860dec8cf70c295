//! A stream to which no connection comes. The clock of this test is the
//! runtime's own, which is set forward.

use crate::support::{Fake, Volume};
use daemon::limits::ATTACH_WITHIN;
use daemon::pool::{Ask, Entry, Reply};
use daemon::quotas::Peer;
use daemon::sessions::{AttachError, Opened, Sessions};
use node::{Mode, Op, StreamId};
use std::sync::Arc;
use std::time::Duration;
use units::{Bytes, Rate};

async fn open(ask: &Ask, sessions: &Arc<Sessions>) -> StreamId {
    let contract =
        node::Contract { rate: Rate::per_second(1000), block: Bytes::kib(4), burst: Bytes::kib(4) };
    let (mode, start) = (Mode::Write, Bytes::ZERO);
    let op = Op::StreamOpen { volume: "v".into(), mode, contract, start };
    let Ok(Reply::Stream { stream, .. }) = ask.call(op).await else { panic!("not opened") };
    let owner = Peer { uid: 0, gid: 0, groups: [].into(), scope: None };
    sessions.add(Opened {
        stream,
        mode,
        volume: "v".into(),
        start,
        owner,
        buffered: false,
        grows_to: Bytes::ZERO,
        shared: None,
    });
    stream
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_a_connection_is_closed_in_time_and_one_with_it_is_not() {
    let pool = Arc::new(Fake::default());
    pool.state().volumes.insert("v".into(), Volume { size: 1 << 20, ..Volume::default() });
    let ask = Entry(pool.clone()).own();
    let sessions = Sessions::new(ask.clone());
    let alone = open(&ask, &sessions).await;
    let carried = open(&ask, &sessions).await;
    let attached = sessions.attach(carried).unwrap();
    assert!(matches!(sessions.attach(carried), Err(AttachError::Attached)));

    tokio::time::sleep(ATTACH_WITHIN - Duration::from_millis(1)).await;
    assert!(pool.state().streams.contains_key(&alone.0), "not before its time");
    tokio::time::sleep(Duration::from_millis(2)).await;
    assert_eq!(pool.state().closed, [(alone.0, 0)]);
    assert!(matches!(sessions.attach(alone), Err(AttachError::NoSuchStream)));

    tokio::time::sleep(ATTACH_WITHIN * 10).await;
    assert!(pool.state().streams.contains_key(&carried.0));
    // A connection whose task ends in whatever way takes its stream along.
    drop(attached);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(pool.state().streams.is_empty());
}
