//! Quantities in JSON: plain integers, whose unit stands in the field's name.
//!
//! Both ways they are held to the limits of [`Outside`]: what is read is refused beyond
//! them, and what is written stays at them, so that each end can read the other.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};
use units::Outside;

pub(crate) fn serialize<Q: Outside, S: Serializer>(value: &Q, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(value.to_outside())
}
pub(crate) fn deserialize<'de, Q: Outside, D: Deserializer<'de>>(from: D) -> Result<Q, D::Error> {
    Q::from_outside(u64::deserialize(from)?).map_err(D::Error::custom)
}

/// Where the quantity may be missing.
pub(crate) mod option {
    use super::{Deserialize, Deserializer, Error, Outside, Serializer};
    use serde::Serialize;

    pub(crate) fn serialize<Q: Outside, S: Serializer>(
        value: &Option<Q>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        value.map(Q::to_outside).serialize(to)
    }
    pub(crate) fn deserialize<'de, Q: Outside, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Q>, D::Error> {
        let number = Option::<u64>::deserialize(from)?;
        number.map(Q::from_outside).transpose().map_err(D::Error::custom)
    }
}
