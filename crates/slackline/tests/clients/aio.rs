//! The readers and writers for programs on tokio, on a runtime of one thread.

use crate::support::{Scratch, noise};
use client::aio::{AsyncReader, AsyncWriter};
use client::control::{Contract, VolumeCreate};
use client::units::{Bytes, Rate};
use client::{Client, Code, Peek};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const LEN: u64 = 1_200_001;

fn contract() -> Contract {
    let (rate, block) = (Rate::per_second(2_000_000), Bytes::kib(64));
    Contract { rate_bytes_per_second: rate, block_bytes: block, burst_bytes: block }
}

/// Writes `bytes` by copy and in place, with syncs between.
async fn record(client: &Client, bytes: &[u8]) {
    let writer = client.writer("v", contract(), Bytes::ZERO).unwrap();
    let mut out = AsyncWriter::new(writer).unwrap();
    let (first, rest) = bytes.split_at(bytes.len() / 3);
    out.write_all(first).await.unwrap();
    // Nobody waits for this one; the next one tells of everything all the same.
    let _ = tokio::time::timeout(Duration::ZERO, out.sync()).await;
    let (second, mut rest) = rest.split_at(rest.len() / 2);
    out.write_all(second).await.unwrap();
    out.flush().await.unwrap();
    let durable = out.sync().await.unwrap();
    assert_eq!(durable.get() as usize, first.len() + second.len());
    while !rest.is_empty() {
        let room = out.room(rest.len().min(5000)).await.unwrap();
        let len = room.len();
        room.copy_from_slice(&rest[..len]);
        out.filled(len);
        rest = &rest[len..];
    }
    assert_eq!(out.close().await.unwrap().get() as usize, bytes.len());
}

/// Reads everything, the first half where it lies.
async fn play(client: &Client) -> Vec<u8> {
    let reader = client.reader("v", contract(), Bytes::ZERO).unwrap();
    let (mut video, mut back) = (AsyncReader::new(reader).unwrap(), Vec::new());
    while back.len() < LEN as usize / 2 {
        let Peek::Data(seen) = video.peek(7000).await.unwrap() else { panic!("no data") };
        let len = seen.len();
        back.extend_from_slice(seen);
        video.advance(len);
    }
    video.read_to_end(&mut back).await.unwrap();
    video.into_inner().close().unwrap();
    back
}

/// Counts the turns that others on the same thread get while `work` waits.
async fn turns<T>(work: impl Future<Output = T>) -> (T, u64) {
    let mut turns = 0;
    let others = async {
        loop {
            turns += 1;
            tokio::task::yield_now().await;
        }
    };
    // In this order: others have a turn only where the work waits.
    let done = tokio::select! {
        biased;
        done = work => done,
        () = others => unreachable!("it goes on for ever"),
    };
    (done, turns)
}

#[test]
fn a_runtime_of_one_thread_records_and_plays_and_has_turns_for_others() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let client = Client::at(dir.path("s.sock"));
    client.volume_create(&VolumeCreate::new("v", Bytes::mib(4))).unwrap();
    let bytes = noise(5, LEN).bytes();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let ((), while_writing) = turns(record(&client, &bytes)).await;
        let (back, while_reading) = turns(play(&client)).await;
        assert!(back == bytes, "{} of {}", back.len(), bytes.len());
        // Both are faster than their contract, and wait for most of half a second.
        assert!(while_writing > 20 && while_reading > 20, "{while_writing}, {while_reading}");

        let (one, two) = tokio::join!(play(&client), play(&client));
        assert!(one == bytes && two == bytes);

        let reader = client.reader("v", contract(), Bytes::ZERO).unwrap();
        let mut ended = AsyncReader::new(reader).unwrap();
        client.stream_close(ended.get_ref().stream()).unwrap();
        let error = loop {
            match ended.next_piece(&mut [0; 1 << 16]).await {
                Ok(piece) => assert!(matches!(piece, client::Piece::Data(_)), "{piece:?}"),
                Err(error) => break error,
            }
        };
        assert!(!error.to_string().is_empty());
    });
    let carried = client.without_shared_windows().reader("v", contract(), Bytes::ZERO).unwrap();
    assert_eq!(AsyncReader::new(carried).unwrap_err().code(), Some(Code::Invalid));
}

/// What a reader has in its window is read in any order without waiting on the thread, and the
/// playout point set; a writer goes elsewhere, and stays where it is where it cannot.
#[test]
fn places_of_the_window_and_other_places_are_awaited() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let client = Client::at(dir.path("s.sock"));
    client.volume_create(&VolumeCreate::new("v", Bytes::mib(4))).unwrap();
    let mut bytes = noise(6, LEN).bytes();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let writer = client.writer("v", contract(), Bytes::ZERO).unwrap();
        let mut out = AsyncWriter::new(writer).unwrap();
        out.write_all(&bytes).await.unwrap();
        let block = contract().block_bytes;
        let (sought, others) = turns(out.seek(block)).await;
        sought.unwrap();
        assert!(others > 0, "it waits for the medium");
        assert_eq!(out.get_ref().durable(), block);
        // What follows in the same 4 KiB is zeros.
        bytes[65_536..65_636].fill(7);
        bytes[65_636..69_632].fill(0);
        out.write_all(&[7; 100]).await.unwrap();
        let refused = out.seek(Bytes::mib(3) + block).await.unwrap_err();
        assert_eq!(refused.code(), Some(Code::Invalid));
        // Nobody waits for this one; the next one goes on from wherever it has gone.
        let _ = tokio::time::timeout(Duration::ZERO, out.seek(Bytes::ZERO)).await;
        out.seek(Bytes::ZERO).await.unwrap();
        assert_eq!(out.get_ref().accepted(), Bytes::ZERO);
        out.close().await.unwrap();

        let burst = Contract { burst_bytes: block * 2, ..contract() };
        let reader = client.reader("v", burst, Bytes::ZERO).unwrap();
        let mut video = AsyncReader::new(reader).unwrap();
        let mut back = vec![0; 5000];
        let same = |at: u64, back: &[u8]| back == &bytes[at as usize..at as usize + back.len()];
        for at in [100_000, 3, 65_500, 126_000] {
            let read = video.read_at(Bytes::new(at), &mut back).await.unwrap();
            assert!(matches!(read, client::Piece::Data(len) if same(at, &back[..len])), "{at}");
        }
        let far = video.read_at(Bytes::mib(1), &mut back).await.unwrap_err();
        assert_eq!(far.code(), Some(Code::Invalid));
        video.keep(block).unwrap();
        video.set_playout(Bytes::new(70_000)).await.unwrap();
        // Further on than is there: faster than its contract.
        for at in (1..12).map(|step| 70_000 + step * 60_000) {
            video.set_playout(Bytes::new(at)).await.unwrap();
            assert_eq!(video.get_ref().offset(), Bytes::new(at));
        }
        video.set_playout(Bytes::new(700_000)).await.unwrap();
        let read = video.read_at(Bytes::new(700_000), &mut back).await.unwrap();
        assert!(matches!(read, client::Piece::Data(len) if same(700_000, &back[..len])));
        assert!(video.set_playout(Bytes::ZERO).await.is_err(), "not held any more");
    });
}
