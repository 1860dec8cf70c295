//! Volumes that grow within a block that a reader has in its window already.

use crate::asks::*;
use crate::driver::*;
use node::*;
use units::{Bytes, Duration};
