//! A pool with one volume, "area", all of which is written, for both sides of a comparison to find the
//! same blocks on the medium.

use disk::Profile;
use engine::{CreateOptions, DeviceSpec, Options, Pool};
use node::{Placement, calls};
use units::Bytes;

/// What a disk is taken for whose transfers cost this beside their bytes.
fn profile(fixed: &str) -> Profile {
    let text = format!(
        r#"
            kind = "linear"
            source = "made up for a comparison"
            confidence = "none"
            capacity = "1GiB"
            flush = "1ms"
            [linear]
            depth = 32
            latency = "1ms"
            read = {{ fixed = "{fixed}", rate = "4GB/s" }}
            write = {{ fixed = "{fixed}", rate = "4GB/s" }}
        "#
    );
    Profile::parse(&text).expect("a profile")
}

/// Makes the pool on new disks of this size, with a volume as long as is said.
pub fn make(disks: &[DeviceSpec], (size, volume): (Bytes, Bytes), fixed: &str) {
    let profile = Some(profile(fixed));
    let options = CreateOptions { size: Some(size), profile, ..CreateOptions::default() };
    let created = Pool::create("bench", disks, &options).expect("a pool is made");
    created.warnings.iter().for_each(|warning| println!("warning: {warning}"));
    let pool = Pool::open(disks, Options::default()).expect("the pool opens");
    pool.warnings().iter().for_each(|warning| println!("warning: {warning}"));
    let (name, placement) = ("area".into(), Placement::default());
    let create = calls::VolumeCreate { name, size: volume, placement, access: Default::default() };
    pool.call(create).expect("a volume is made");
    for block in 0..volume / Bytes::MIB {
        let room = pool.call(calls::Room { len: Bytes::MIB, target: None });
        let mut room = room.expect("memory");
        room.chunks_exact_mut(8).zip(block << 20..).for_each(|(bytes, n)| {
            bytes.copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_ne_bytes());
        });
        pool.call_write("area", Bytes::MIB * block, room).expect("the device works");
    }
    pool.shutdown().expect("the device works");
}
