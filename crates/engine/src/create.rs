//! Making a pool: devices, their profiles, and the metadata of an empty pool.

use crate::buses::{self, BusSpec};
use crate::device::{Device, DeviceSpec};
use crate::error::PoolError;
use crate::pool::Pool;
use crate::{calibrate, drives, metadata};
use disk::Profile;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use store::{Id, NewDisk, NewPool};
use units::{Bytes, Duration};

/// An emulated drive that orders its commands itself has so many at a time: twice as many gain a
/// few percent more, and who comes next waits for twice as many.
const QUEUE_MAX: u32 = 8;

/// How a pool is made.
#[derive(Clone, Debug, Default)]
pub struct CreateOptions {
    /// The size of each file; for an emulated disk, of its backing file, to which
    /// the model is scaled. Needed for files that do not exist yet.
    pub size: Option<Bytes>,
    /// Destroy what is on the devices.
    pub force: bool,
    /// Take this for the profile of every file and block device, at its own
    /// capacity, in place of timing it.
    pub profile: Option<Profile>,
    /// Buses that several of the disks share.
    pub buses: Vec<BusSpec>,
    /// Devices may be parts of one drive, though contracts on them may then be late.
    pub shared_drive: bool,
    /// For how long what commands mostly cost is timed on each file and block device; some
    /// seconds where nothing is said.
    pub measure: Option<Duration>,
    /// Hears that devices are timed, when that begins.
    pub begins: Option<fn()>,
    /// Hears how much of that is left.
    pub tell: Option<fn(&Path, Duration)>,
}

/// What was made.
#[derive(Clone, Debug)]
pub struct Created {
    /// The pool's identity, in hexadecimal.
    pub id: String,
    /// The disks, in the pool's order, with what they cost.
    pub disks: Vec<(DeviceSpec, Profile)>,
    /// What the system did not permit, and what to do about it.
    pub warnings: Vec<String>,
}

impl Pool {
    /// Makes an empty pool on these devices. Files that do not exist are made;
    /// files and block devices are timed, which writes to them; an emulated disk
    /// is profiled from its model.
    ///
    /// # Errors
    /// [`PoolError::HoldsData`] where there is something on a device already and
    /// [`CreateOptions::force`] is not set. Files that were made are removed
    /// again when there is an error.
    pub fn create(
        name: &str,
        specs: &[DeviceSpec],
        options: &CreateOptions,
    ) -> Result<Created, PoolError> {
        if specs.is_empty() {
            return Err(PoolError::NoDevices);
        }
        let (mut devices, mut warnings) = (Vec::new(), Vec::new());
        let made = open_new(specs, options, &mut devices, &mut warnings)
            .and_then(|()| make(name, &devices, options));
        if made.is_err() {
            devices.iter().for_each(Device::remove_if_made);
        }
        let (id, profiles) = made?;
        let disks = specs.iter().cloned().zip(profiles).collect();
        Ok(Created { id: id.to_string(), disks, warnings })
    }
}

fn open_new(
    specs: &[DeviceSpec],
    options: &CreateOptions,
    devices: &mut Vec<Device>,
    warnings: &mut Vec<String>,
) -> Result<(), PoolError> {
    for spec in specs {
        devices.push(Device::open_new(spec, options.size, options.force, warnings)?);
    }
    // Files that had to be made are there now. Nothing has been written yet.
    drives::check(specs, options.shared_drive, warnings)
}

fn make(
    name: &str,
    devices: &[Device],
    options: &CreateOptions,
) -> Result<(Id, Vec<Profile>), PoolError> {
    let is_timed = |device: &Device| device.model.is_none() && options.profile.is_none();
    if let Some(begins) = options.begins.filter(|_| devices.iter().any(is_timed)) {
        begins();
    }
    let profiles: Result<Vec<_>, _> =
        devices.iter().map(|device| profile(device, options)).collect();
    let mut profiles = profiles?;
    buses::assign(&options.buses, &mut profiles)?;
    let mut disks = Vec::new();
    for (device, profile) in devices.iter().zip(&profiles) {
        let (id, profile) = (random_id()?, profile.to_toml().into_bytes());
        disks.push(NewDisk { id, capacity: device.size, profile });
    }
    let pool_id = random_id()?;
    metadata::format(NewPool { name: name.to_owned(), pool_id, disks }, devices)?;
    Ok((pool_id, profiles))
}

fn profile(device: &Device, options: &CreateOptions) -> Result<Profile, PoolError> {
    match (&device.model, &options.profile) {
        (Some(model), _) => {
            let held = u32::try_from(model.depth()).unwrap_or(u32::MAX);
            Ok(Profile::of(model).with_queue(held.min(QUEUE_MAX)))
        }
        (None, Some(given)) => Ok(Profile { capacity: device.size, ..given.clone() }),
        (None, None) => {
            let path = device.spec.path();
            let tell = |left| options.tell.map_or((), |tell| tell(path, left));
            let time = options.measure.unwrap_or(calibrate::SPREAD_TIME);
            calibrate::profile(device, time, &tell)
        }
    }
}

/// An identity that nothing else has.
fn random_id() -> Result<Id, PoolError> {
    let path = Path::new("/dev/urandom");
    let mut id = [0; 16];
    let drawn = File::open(path).and_then(|mut random: File| random.read_exact(&mut id));
    drawn.map_err(|error: io::Error| PoolError::io(path, "draw a random identity")(error))?;
    Ok(Id(id))
}
