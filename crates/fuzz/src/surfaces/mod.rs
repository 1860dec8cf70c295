//! Every surface, one after the other. What each is given stands above its function.

#[cfg(feature = "daemon")]
mod config;
#[cfg(feature = "daemon")]
mod http;
#[cfg(feature = "daemon")]
mod json;
#[cfg(feature = "mount")]
mod mount;
mod nbd;
mod pool;
#[cfg(feature = "command")]
mod reading;
#[cfg(feature = "daemon")]
mod requests;
mod socket;
mod texts;
mod token;
mod window;

use crate::Surface;
use std::path::Path;

/// Memory that no decoder of a small input has a reason to exceed.
const SMALL: usize = 1 << 20;

/// All of them.
pub const SURFACES: &[Surface] = &[
    #[cfg(feature = "daemon")]
    Surface {
        name: "json",
        ask: json::ask,
        seeds: json::seeds,
        memory_max: SMALL,
        len_max: 16 << 10,
        one_in: 1,
    },
    #[cfg(feature = "daemon")]
    Surface {
        name: "requests",
        ask: requests::ask,
        seeds: requests::seeds,
        // A node, its disks and what it works out for a refusal's best offer.
        memory_max: 64 * SMALL,
        len_max: 2048,
        one_in: 50,
    },
    Surface {
        name: "frames",
        ask: socket::ask,
        seeds: socket::seeds,
        // The longest body, twice: as it comes in, and as it is kept.
        memory_max: 4 * SMALL,
        len_max: 8192,
        one_in: 1,
    },
    Surface {
        name: "nbd",
        ask: nbd::ask,
        seeds: nbd::seeds,
        memory_max: SMALL,
        len_max: 1024,
        one_in: 1,
    },
    Surface {
        name: "token",
        ask: token::ask,
        seeds: token::seeds,
        memory_max: SMALL,
        len_max: 1024,
        one_in: 1,
    },
    #[cfg(feature = "daemon")]
    Surface {
        name: "http",
        ask: http::ask,
        seeds: http::seeds,
        memory_max: SMALL,
        len_max: 1024,
        one_in: 1,
    },
    #[cfg(feature = "mount")]
    Surface {
        name: "attribute",
        ask: mount::attribute,
        seeds: mount::attributes,
        memory_max: SMALL,
        len_max: 256,
        one_in: 1,
    },
    #[cfg(feature = "mount")]
    Surface {
        name: "tree",
        ask: mount::tree,
        seeds: mount::trees,
        memory_max: SMALL,
        len_max: 192,
        one_in: 1,
    },
    Surface {
        name: "window-daemon",
        ask: window::daemon,
        seeds: window::seeds,
        memory_max: SMALL,
        len_max: 1024,
        one_in: 1,
    },
    Surface {
        name: "window-program",
        ask: window::program,
        seeds: window::seeds,
        memory_max: SMALL,
        len_max: 1024,
        one_in: 1,
    },
    Surface {
        name: "label",
        ask: pool::label,
        seeds: pool::labels,
        // The pool that it is asked about is made with the first input.
        memory_max: 4 * SMALL,
        len_max: 4096,
        one_in: 1,
    },
    Surface {
        name: "log",
        ask: pool::log,
        seeds: pool::records,
        memory_max: 4 * SMALL,
        len_max: 4096,
        one_in: 1,
    },
    Surface {
        name: "checkpoint",
        ask: pool::checkpoint,
        seeds: pool::checkpoints,
        memory_max: 4 * SMALL,
        len_max: 4096,
        one_in: 1,
    },
    Surface {
        name: "pool",
        ask: pool::ask,
        seeds: pool::pools,
        memory_max: 32 * SMALL,
        len_max: 4096,
        one_in: 10,
    },
    Surface {
        name: "profile",
        ask: texts::profile,
        seeds: texts::profiles,
        memory_max: 16 * SMALL,
        len_max: 16 << 10,
        one_in: 4,
    },
    Surface {
        name: "model",
        ask: texts::model,
        seeds: texts::models,
        memory_max: 16 * SMALL,
        len_max: 16 << 10,
        one_in: 4,
    },
    #[cfg(feature = "command")]
    Surface {
        name: "scenario",
        ask: reading::scenario,
        seeds: reading::scenarios,
        memory_max: 64 * SMALL,
        len_max: 8192,
        one_in: 10,
    },
    #[cfg(feature = "command")]
    Surface {
        name: "plan",
        ask: reading::plan,
        seeds: reading::plans,
        memory_max: 4 * SMALL,
        len_max: 8192,
        one_in: 4,
    },
    Surface {
        name: "trace",
        ask: texts::trace,
        seeds: texts::traces,
        memory_max: 4 * SMALL,
        len_max: 4096,
        one_in: 1,
    },
    #[cfg(feature = "daemon")]
    Surface {
        name: "config",
        ask: config::ask,
        seeds: config::seeds,
        memory_max: 4 * SMALL,
        len_max: 8192,
        one_in: 4,
    },
    Surface {
        name: "quantity",
        ask: texts::quantity,
        seeds: texts::quantities,
        memory_max: SMALL,
        len_max: 64,
        one_in: 1,
    },
];

/// Files of the repository.
fn files(names: &[String]) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    names.iter().filter_map(|name| std::fs::read(root.join(name)).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_used_once_and_seeds_are_taken() {
        for (i, surface) in SURFACES.iter().enumerate() {
            assert!(SURFACES[..i].iter().all(|other| other.name != surface.name));
            let seeds = (surface.seeds)();
            assert!(seeds.iter().all(|input| input.len() <= surface.len_max), "{}", surface.name);
            let taken = seeds.iter().filter(|input| surface.check(input)).count();
            // A record of a log means something only at its place, a ring may be scribbled in.
            assert!(taken * 3 >= seeds.len(), "{}: {taken} of {}", surface.name, seeds.len());
        }
    }
}
