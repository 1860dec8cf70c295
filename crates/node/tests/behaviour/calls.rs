//! Each operation is answered with what its type says.

use crate::driver::*;
use node::{
    Access, Mode, Operation, Placement, Playout, Service, Span, WriteRange, calls, ring_size,
};
use std::convert::Infallible;
use units::{Bytes, Duration};

/// The answer, by its type: another kind of reply panics.
fn ask<O: Operation>(driver: &mut Driver, op: O) -> O::Answer<Span, Span, Infallible> {
    let op = op.into();
    let said = format!("{op:?}");
    O::answer(driver.ask(op).unwrap_or_else(|error| panic!("{said}: {error}")))
}

#[test]
fn each_operation_is_answered_with_what_its_type_says() {
    let mut driver = Setup::new(1).with(|config| config.memory = Bytes::mib(64)).open();
    let (access, placement) = (Access::default, Placement::default);
    let named = |name: &str| String::from(name);
    let on = &mut driver;
    let (name, size) = (named("v"), Bytes::mib(4));
    ask(on, calls::VolumeCreate { name, size, placement: placement(), access: access() });
    let size = ring_size(Bytes::mib(80), 1, Bytes::MIB).unwrap();
    let (name, keep) = (named("ring"), None);
    ask(on, calls::RingCreate { name, size, placement: placement(), access: access(), keep });
    ask(on, calls::RingKeep { name: named("ring"), keep: Some(Duration::from_secs(60)) });
    ask(on, calls::VolumeResize { name: named("v"), size: Bytes::mib(5), may_cut: false });
    let rooms = Vec::new();
    let (name, size) = (named("v"), Bytes::mib(6));
    let may_cut = false;
    ask(on, calls::VolumeResizeWithin { name, size, may_cut, rooms });
    ask(on, calls::VolumeAccess { name: named("v"), access: access() });
    ask(on, calls::VolumeTimes { name: named("v"), accessed: Some(1), modified: None });
    let (name, to) = (named("v"), named("w"));
    ask(
        on,
        calls::VolumeRename {
            name,
            to,
            replace: false,
            keep_as: None,
            is: None,
            only: None,
            keep_directory: false,
        },
    );

    // Best effort.
    let room = ask(on, calls::Room { len: BLOCK, target: None });
    ask(on, calls::Release { span: room });
    let span = ask(on, calls::Room { len: BLOCK, target: None });
    on.memory.put(span.offset, &pattern(1, Bytes::ZERO, BLOCK));
    let range = WriteRange::new(Bytes::ZERO, BLOCK);
    ask(on, calls::Write { volume: named("w"), range, span, priority: None });
    ask(on, calls::Sync {});
    ask(on, calls::VolumeExtend { name: named("w"), length: Bytes::mib(3) });
    ask(
        on,
        calls::VolumeTruncate { name: named("w"), length: Bytes::mib(2), unless_changed: None },
    );
    let (volume, offset) = (named("w"), Bytes::ZERO);
    let read = ask(on, calls::Read { volume, offset, len: BLOCK, priority: None });
    assert!(on.bytes(read) == pattern(1, Bytes::ZERO, BLOCK));
    ask(on, calls::Release { span: read });

    // Streams.
    let rate = RATE;
    let block = ask(on, calls::Block { volume: named("w"), mode: Mode::Read, rate });
    assert!(block.get().is_power_of_two());
    let start = Bytes::ZERO;
    let (volume, contract) = (named("w"), usual());
    let stream = calls::StreamOpen { volume, mode: Mode::Read, contract, start };
    let reader = ask(on, stream).stream;
    ask(on, calls::StreamBegin { stream: reader });
    let next = ask(on, calls::StreamRead { stream: reader, len_max: BLOCK });
    let Playout::Data { bytes, offset } = next else { panic!("{next:?} is no data") };
    assert_eq!((bytes.len, offset), (BLOCK, Bytes::ZERO));
    ask(on, calls::StreamAdvance { stream: reader, len: BLOCK });
    let ready = ask(on, calls::StreamSeek { stream: reader, to: Bytes::mib(2) });
    assert!(ready.at <= ready.steady && ready.seeks == 0);
    on.run_to(ready.steady);
    let end = ask(on, calls::StreamRead { stream: reader, len_max: BLOCK });
    assert_eq!(end, Playout::End);
    let opened = ask(on, calls::StreamChange { stream: reader, contract: usual() });
    assert_eq!(opened.stream, reader);
    assert_eq!(ask(on, calls::StreamClose { stream: reader }), None, "nothing of a reader's");
    let (volume, mode) = (named("ring"), Mode::Write);
    let writer = ask(on, calls::StreamOpen { volume, mode, contract: usual(), start }).stream;
    let room = ask(on, calls::StreamRoom { stream: writer, len_max: BLOCK });
    ask(on, calls::StreamWrite { stream: writer, len: room.len });
    assert_eq!(ask(on, calls::StreamSync { stream: writer }), BLOCK);
    let beyond = Bytes::ZERO;
    assert_eq!(ask(on, calls::StreamDurable { stream: writer, beyond }), BLOCK);
    assert_eq!(ask(on, calls::StreamClose { stream: writer }), Some(BLOCK));

    // Contracts of answers in time, and the pool's own.
    let (every, len) = (Duration::from_millis(500), Bytes::kib(4));
    let service = Service::Latency { len, within: every, every };
    let handle = ask(on, calls::HandleOpen { volume: named("w"), service });
    ask(on, calls::HandleClose { handle });
    ask(on, calls::VolumeService { name: named("w"), service });
    ask(on, calls::VolumeService { name: named("w"), service: Service::default() });
    ask(on, calls::HostLatency { latency: Duration::from_millis(1) });
    ask(on, calls::Delivery { takes: Duration::from_micros(10) });
    ask(on, calls::Plan {});
    ask(on, calls::VolumeDelete { name: named("w"), only: None, keep_directory: false });
    ask(on, calls::Shutdown {});
}
