//! A value that copies share until one of them changes it.

use alloc::sync::Arc;
use core::ops::{Deref, DerefMut};

/// Cloned at the cost of a count; a change copies the value where it is shared just then.
#[derive(Clone, Debug)]
pub(crate) struct CopyOnWrite<T>(Arc<T>);

impl<T> CopyOnWrite<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T> Deref for CopyOnWrite<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for CopyOnWrite<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_share_until_one_of_them_changes_and_who_is_alone_copies_nothing() {
        let first = CopyOnWrite::new([1]);
        let mut second = first.clone();
        assert!(Arc::ptr_eq(&first.0, &second.0));
        second[0] = 2;
        assert_eq!((first[0], second[0]), (1, 2));
        let before = Arc::as_ptr(&second.0);
        second[0] = 3;
        assert_eq!(Arc::as_ptr(&second.0), before);
    }
}
