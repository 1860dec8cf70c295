//! Quantities in JSON: plain integers, whose unit stands in the field's name.

use serde::{Deserialize, Deserializer, Serializer};
use units::{Bytes, Duration, Rate};

/// A quantity that is one integer on the wire.
pub(crate) trait Quantity: Copy {
    /// In bytes, bytes per second or nanoseconds.
    fn number(self) -> u64;
    /// From the same.
    fn from_number(number: u64) -> Self;
}

impl Quantity for Bytes {
    fn number(self) -> u64 {
        self.get()
    }
    fn from_number(number: u64) -> Self {
        Self::new(number)
    }
}
impl Quantity for Rate {
    fn number(self) -> u64 {
        self.get()
    }
    fn from_number(number: u64) -> Self {
        Self::per_second(number)
    }
}
impl Quantity for Duration {
    fn number(self) -> u64 {
        self.as_nanos()
    }
    fn from_number(number: u64) -> Self {
        Self::from_nanos(number)
    }
}

pub(crate) fn serialize<Q: Quantity, S: Serializer>(value: &Q, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(value.number())
}
pub(crate) fn deserialize<'de, Q: Quantity, D: Deserializer<'de>>(from: D) -> Result<Q, D::Error> {
    u64::deserialize(from).map(Q::from_number)
}

/// Where the quantity may be missing.
pub(crate) mod option {
    use super::{Deserialize, Deserializer, Quantity, Serializer};
    use serde::Serialize;

    pub(crate) fn serialize<Q: Quantity, S: Serializer>(
        value: &Option<Q>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        value.map(Q::number).serialize(to)
    }
    pub(crate) fn deserialize<'de, Q: Quantity, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Q>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Q::from_number))
    }
}
