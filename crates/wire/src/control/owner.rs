//! Whose a volume is, and who may do what with it.

use serde::{Deserialize, Serialize, de};
use std::fmt;
use std::str::FromStr;

/// Nine permission bits, as a file's. As text four octal digits, `"0640"`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Permissions(u16);

impl Permissions {
    /// These bits; none where there are more than nine.
    pub const fn new(bits: u16) -> Option<Self> {
        if bits <= 0o777 { Some(Self(bits)) } else { None }
    }
    /// The bits.
    pub const fn bits(self) -> u16 {
        self.0
    }
    /// As `ls` shows them: `rw-r-----`.
    pub fn letters(self) -> String {
        let letter = |at: u16| match self.0 & (0o400 >> at) {
            0 => '-',
            _ => ['r', 'w', 'x'][usize::from(at % 3)],
        };
        (0..9).map(letter).collect()
    }
}

impl fmt::Display for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

impl fmt::Debug for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Permissions {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const RULE: &str = "write three octal digits, owner, group and others: for example 640";
        let is_octal =
            matches!(text.len(), 3 | 4) && text.bytes().all(|c| matches!(c, b'0'..=b'7'));
        let bits = if is_octal { u16::from_str_radix(text, 8).ok() } else { None };
        bits.and_then(Self::new).ok_or(RULE)
    }
}

impl Serialize for Permissions {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Permissions {
    fn deserialize<D: de::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// Says whose a volume is from now on: what is left out stays, or, of a new volume, is as
/// its maker's, and closed to others (`"0600"`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schema(examples(json!({ "group": "video", "mode": "0640" }))))]
pub struct Access {
    /// The user, by name or number; only root names another than himself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The group, by name or number: one that the owner is in, unless root says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What owner, group and others may do, three octal digits: 4 read and see, 2 write
    /// and resize.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub mode: Option<Permissions>,
}

impl Access {
    /// True where nothing is said.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Whose a volume is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Owner {
    /// The number of its user.
    pub uid: u32,
    /// The user's name; the number where it has none.
    pub user: String,
    /// The number of its group.
    pub gid: u32,
    /// The group's name; the number where it has none.
    pub group: String,
    /// What owner, group and others may do, four octal digits.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub mode: Permissions,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_octal_in_text_and_letters_for_people() {
        let mode: Permissions = "640".parse().unwrap();
        assert_eq!((mode.bits(), mode.letters()), (0o640, "rw-r-----".into()));
        assert_eq!(serde_json::to_string(&mode).unwrap(), "\"0640\"");
        assert_eq!(serde_json::from_str::<Permissions>("\"0640\"").unwrap(), mode);
        assert_eq!(Permissions::new(0o777).unwrap().letters(), "rwxrwxrwx");
        for text in ["", "6", "64", "648", "1640", "+64", "06400", "rw-r-----", "0x1f"] {
            assert!(text.parse::<Permissions>().is_err(), "{text}");
        }
    }
}
