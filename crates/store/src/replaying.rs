//! What records, checkpoints and labels are read into, without a disk and without judging the
//! rest of a pool: for programs that ask the decoders about bytes that no pool wrote.

use crate::api::VolumeId;
use crate::label::Label;
use crate::state::State;
use crate::store::Store;
use crate::structure::Problem;
use alloc::vec::Vec;
use units::Bytes;

/// The state of a pool, as far as its log tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaying(State);

impl Replaying {
    /// What `store` holds, committed or not.
    pub fn of(store: &Store) -> Self {
        Self(store.state.clone())
    }
    /// The same before that was opened, which leaves numbers out: the next volume gets this one.
    pub fn at(mut self, next: VolumeId) -> Self {
        self.0.next_volume = next;
        self
    }
    /// Nothing, on the disks of `store`.
    pub fn nothing(store: &Store) -> Self {
        Self(State::new(&store.geometry))
    }
    /// Applies the payload of a record, or to nothing that of a checkpoint.
    ///
    /// # Errors
    /// Why it makes no sense. The state is then to be thrown away.
    pub fn replay(&mut self, payload: &[u8]) -> Result<(), &'static str> {
        self.0.replay(payload)
    }
    /// As whoever opens the pool has it: without blocks behind the ends of volumes, which records of earlier
    /// programs name.
    pub fn opened(mut self) -> Self {
        self.0.forget_behind_ends();
        self
    }
    /// The payload of a checkpoint of this state.
    pub fn checkpoint(&self) -> Vec<u8> {
        self.0.checkpoint()
    }
}

/// Reads the label at `bytes`, which lie at `at` of some disk. Gives the block that would be
/// written for it at copy 0.
///
/// # Errors
/// What is wrong with it.
pub fn label_again(bytes: &[u8], at: Bytes) -> Result<Vec<u8>, Problem> {
    Ok(Label::read(bytes, at)?.block(0))
}
