//! Making, recovering and checking a pool's metadata: the store's state machines
//! over devices, one I/O after the other.

use crate::aligned::Aligned;
use crate::device::{Device, DeviceSpec};
use crate::error::PoolError;
use crate::sys;
use std::io;
use std::os::unix::fs::FileExt;
use store::{
    Checking, Formatting, Io, IoError, IoKind, NewPool, OpenError, Opened, Opening, Report,
};
use units::Bytes;

/// A state machine that asks for I/O.
trait Machine {
    fn poll(&mut self) -> Option<Io>;
    fn done(&mut self, id: store::IoId, result: Result<Vec<u8>, IoError>);
}

macro_rules! machine {
    ($type:ty) => {
        impl Machine for $type {
            fn poll(&mut self) -> Option<Io> {
                <$type>::poll(self)
            }
            fn done(&mut self, id: store::IoId, result: Result<Vec<u8>, IoError>) {
                <$type>::done(self, id, result);
            }
        }
    };
}
machine!(Formatting);
machine!(Opening);
machine!(Checking);

/// Writes the metadata of an empty pool.
pub(crate) fn format(new: NewPool, devices: &[Device]) -> Result<(), PoolError> {
    let error = |error| PoolError::Format { devices: paths(devices), error };
    let mut formatting = Formatting::new(new).map_err(error)?;
    run(&mut formatting, devices);
    formatting.finish().map_err(error)
}

/// Recovers the pool that lies on the devices.
pub(crate) fn open(devices: &[Device]) -> Result<Opened, PoolError> {
    let mut opening = Opening::new(&capacities(devices));
    run(&mut opening, devices);
    opening.finish().map_err(|error| unopened(devices, error))
}

/// Recovers the pool and writes nothing: what recovery writes is kept in memory.
pub(crate) fn look(devices: &[Device]) -> Result<Opened, PoolError> {
    let mut opening = Opening::new(&capacities(devices));
    let mut written = Vec::new();
    while let Some(io) = opening.poll() {
        let result = perform_dry(&mut written, io.disk.as_usize(), devices, io.kind);
        opening.done(io.id, result.map_err(|error| IoError(sys::errno(&error))));
    }
    opening.finish().map_err(|error| unopened(devices, error))
}

/// A disk that was made as a file is larger than what a model makes of that: nobody has cut it.
fn unopened(devices: &[Device], error: OpenError) -> PoolError {
    if let OpenError::CutShort { device, capacity, expected } = error
        && let Some(Device { spec: DeviceSpec::Emulated { model, path }, file, .. }) =
            devices.get(device.as_usize())
        && sys::size(file).is_ok_and(|whole| whole >= expected)
    {
        let (path, model) = (path.clone(), model.clone());
        return PoolError::OtherModel { path, model, capacity, expected };
    }
    PoolError::Open { devices: paths(devices), error }
}

/// A write that was not made: the device's place, the offset, the bytes.
type Unmade = (usize, u64, Vec<u8>);

fn perform_dry(
    written: &mut Vec<Unmade>,
    disk: usize,
    devices: &[Device],
    kind: IoKind,
) -> io::Result<Vec<u8>> {
    match kind {
        IoKind::Read { offset, len } => {
            let mut bytes = perform(&devices[disk], IoKind::Read { offset, len })?;
            let start = offset.get();
            for (_, at, new) in written.iter().filter(|&&(other, ..)| other == disk) {
                let from = start.max(*at);
                let to = (start + len.get()).min(at + new.len() as u64);
                if from < to {
                    let new = &new[(from - at) as usize..(to - at) as usize];
                    bytes[(from - start) as usize..(to - start) as usize].copy_from_slice(new);
                }
            }
            Ok(bytes)
        }
        IoKind::Write { offset, bytes } => {
            written.push((disk, offset.get(), bytes));
            Ok(Vec::new())
        }
        IoKind::Flush => Ok(Vec::new()),
    }
}

/// Reads everything and writes nothing.
pub(crate) fn check(devices: &[Device]) -> Report {
    let mut checking = Checking::new(&capacities(devices));
    run(&mut checking, devices);
    checking.finish()
}

fn capacities(devices: &[Device]) -> Vec<Bytes> {
    devices.iter().map(|device| device.size).collect()
}

fn paths(devices: &[Device]) -> Vec<std::path::PathBuf> {
    devices.iter().map(|device| device.spec.path().to_owned()).collect()
}

/// Does what a machine asks for until it asks for no more.
fn run(machine: &mut impl Machine, devices: &[Device]) {
    while let Some(io) = machine.poll() {
        let device = &devices[io.disk.as_usize()];
        let result = perform(device, io.kind).map_err(|error| IoError(sys::errno(&error)));
        machine.done(io.id, result);
    }
}

fn perform(device: &Device, kind: IoKind) -> io::Result<Vec<u8>> {
    match kind {
        IoKind::Read { offset, len } => {
            let mut bytes = Aligned::zeroed(len);
            let len = len.as_usize();
            device.file.read_exact_at(&mut bytes[..len], offset.get())?;
            Ok(bytes[..len].to_vec())
        }
        IoKind::Write { offset, bytes } => {
            let copy = Aligned::copy_of(&bytes);
            device.file.write_all_at(&copy[..bytes.len()], offset.get())?;
            Ok(Vec::new())
        }
        IoKind::Flush => device.file.sync_data().map(|()| Vec::new()),
    }
}
