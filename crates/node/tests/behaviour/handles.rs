//! Several handles with contracts of their own on one volume.

use crate::driver::*;
use node::{HandleId, Op, Priority, Reply, Service};
use units::Bytes;

/// Each handle is told of, and has memory set aside, until it is closed; the others stay.
#[test]
fn each_handle_on_a_volume_has_its_own_contract_until_it_is_closed() {
    let mut driver = Setup::new(1).open();
    driver.volume("film", Bytes::mib(4));
    let mut open = || {
        let service = in_time(Bytes::kib(4), ms(1_000), ms(1_000));
        match driver.ask(Op::HandleOpen { volume: "film".into(), service }) {
            Ok(Reply::Handle { handle }) => handle,
            other => panic!("not opened: {other:?}"),
        }
    };
    let handles = [open(), open(), open()];
    let told = |driver: &Driver| -> Vec<(HandleId, u64)> {
        let volume = driver.node.volume("film").unwrap();
        let by_default = Service::BestEffort(Priority::Normal);
        assert_eq!(volume.service, by_default, "of who has no handle");
        volume.handles.iter().map(|one| (one.handle, one.operations)).collect()
    };
    let [first, second, third] = handles.map(|handle| (handle, 2));
    assert_eq!(told(&driver), [first, second, third]);
    driver.done(Op::HandleClose { handle: second.0 });
    assert_eq!(told(&driver), [first, third]);
    let set_aside = handles.map(|handle| driver.node.operations("film", Some(handle)));
    assert_eq!(set_aside, [2, 0, 2]);
}
