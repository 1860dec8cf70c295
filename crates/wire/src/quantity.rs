//! Quantities in JSON: plain integers, whose unit stands in the field's name.

macro_rules! quantity {
    ($module:ident, $type:ty, $get:ident, $make:path) => {
        pub(crate) mod $module {
            use serde::{Deserialize, Deserializer, Serializer};

            pub(crate) fn serialize<S: Serializer>(
                value: &$type,
                to: S,
            ) -> Result<S::Ok, S::Error> {
                to.serialize_u64(value.$get())
            }
            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
                from: D,
            ) -> Result<$type, D::Error> {
                u64::deserialize(from).map($make)
            }
        }
    };
}

quantity!(bytes, units::Bytes, get, units::Bytes::new);
quantity!(rate, units::Rate, get, units::Rate::per_second);
quantity!(nanos, units::Duration, as_nanos, units::Duration::from_nanos);

/// Durations in a list.
pub(crate) mod nanos_list {
    use serde::{Deserialize, Deserializer, Serializer};
    use units::Duration;

    pub(crate) fn serialize<S: Serializer>(list: &[Duration], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(list.iter().map(|span| span.as_nanos()))
    }
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<Duration>, D::Error> {
        let list = Vec::<u64>::deserialize(from)?;
        Ok(list.into_iter().map(Duration::from_nanos).collect())
    }
}

/// A duration that may be missing.
pub(crate) mod nanos_option {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use units::Duration;

    pub(crate) fn serialize<S: Serializer>(
        span: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        span.map(Duration::as_nanos).serialize(to)
    }
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Duration::from_nanos))
    }
}
