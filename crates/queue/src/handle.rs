//! A queue as its pool holds it.

use crate::Queue;
use alloc::boxed::Box;
use core::fmt;
use core::ops::{Deref, DerefMut};

/// Where a pool finds the queue of a disk that it shares with the disk's own thread: behind
/// a lock.
pub trait Shared<W>: fmt::Debug + Send {
    /// The queue. It is locked, unless it is already, and stays so until
    /// [`Shared::release`].
    fn get(&self) -> &Queue<W>;
    /// The same, to change.
    fn get_mut(&mut self) -> &mut Queue<W>;
    /// The pool is done with it for now.
    fn release(&mut self);
}

/// The queue of one disk of a pool: the pool's own, or shared.
#[derive(Debug)]
pub struct Handle<W> {
    place: Place<W>,
    /// The pool has had it to change since [`Handle::take_news`].
    touched: bool,
}

#[derive(Debug)]
enum Place<W> {
    Here(Box<Queue<W>>),
    Shared(Box<dyn Shared<W>>),
}

impl<W> Handle<W> {
    /// A queue that is the pool's own.
    pub fn new(queue: Queue<W>) -> Self {
        Self { place: Place::Here(Box::new(queue)), touched: true }
    }

    /// From now on the queue is where `share` puts it. One that is shared stays where it is.
    pub fn share(self, share: impl FnOnce(Queue<W>) -> Box<dyn Shared<W>>) -> Self {
        let place = match self.place {
            Place::Here(queue) => Place::Shared(share(*queue)),
            shared => shared,
        };
        Self { place, touched: true }
    }

    /// Lets the disk's own thread have it, if it is shared.
    pub fn release(&mut self) {
        if let Place::Shared(shared) = &mut self.place {
            shared.release();
        }
    }

    fn get_mut(&mut self) -> &mut Queue<W> {
        match &mut self.place {
            Place::Here(queue) => queue,
            Place::Shared(shared) => shared.get_mut(),
        }
    }

    /// Whether something has come by way of the pool, since this was last asked, that the
    /// disk may start. Does not look into a queue that the pool has not changed since.
    pub fn take_news(&mut self) -> bool {
        core::mem::take(&mut self.touched) && self.get_mut().take_news()
    }

    /// Puts the queue in the state that a copy of it has, wherever it is.
    pub fn set_to(&mut self, copy: Self)
    where
        W: Clone,
    {
        **self = (*copy).clone();
    }
}

impl<W> Deref for Handle<W> {
    type Target = Queue<W>;
    fn deref(&self) -> &Queue<W> {
        match &self.place {
            Place::Here(queue) => queue,
            Place::Shared(shared) => shared.get(),
        }
    }
}

impl<W> DerefMut for Handle<W> {
    fn deref_mut(&mut self) -> &mut Queue<W> {
        self.touched = true;
        self.get_mut()
    }
}

/// The copy is its holder's own.
impl<W: Clone> Clone for Handle<W> {
    fn clone(&self) -> Self {
        Self { place: Place::Here(Box::new((**self).clone())), touched: self.touched }
    }
}
