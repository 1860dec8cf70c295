//! Byte tables: where each field of each on-disk structure lies.
//!
//! A table is written once, here and in `format.rs`; the encoders, the decoders
//! and docs/on-disk-format.md all use it. Fields lie one behind the other
//! without gaps, numbers are little-endian.

/// One field of an on-disk structure.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// As the document calls it.
    pub name: &'static str,
    /// Bytes from the start of the structure.
    pub offset: usize,
    /// Bytes.
    pub len: usize,
    /// What it says.
    pub meaning: &'static str,
}

/// One structure's table.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// As the document calls the structure.
    pub name: &'static str,
    /// In the order in which they lie.
    pub fields: &'static [Field],
}

impl Field {
    /// Writes `value` into the field; it must fit.
    pub(crate) fn put(&self, structure: &mut [u8], value: u64) {
        let bytes = value.to_le_bytes();
        assert!(bytes[self.len.min(8)..].iter().all(|&byte| byte == 0), "{} overflows", self.name);
        structure[self.offset..self.offset + self.len].copy_from_slice(&bytes[..self.len]);
    }
    /// Reads a number.
    pub(crate) fn get(&self, structure: &[u8]) -> u64 {
        let mut bytes = [0; 8];
        bytes[..self.len].copy_from_slice(self.bytes(structure));
        u64::from_le_bytes(bytes)
    }
    /// Reads a number of at most four bytes.
    pub(crate) fn get_u32(&self, structure: &[u8]) -> u32 {
        u32::try_from(self.get(structure)).expect("the field has at most four bytes")
    }
    /// Reads a number of at most two bytes.
    pub(crate) fn get_u16(&self, structure: &[u8]) -> u16 {
        u16::try_from(self.get(structure)).expect("the field has at most two bytes")
    }
    /// The field as it lies there.
    pub(crate) fn bytes<'a>(&self, structure: &'a [u8]) -> &'a [u8] {
        &structure[self.offset..self.offset + self.len]
    }
    /// Writes `bytes` into the field, zeros behind them.
    pub(crate) fn put_bytes(&self, structure: &mut [u8], bytes: &[u8]) {
        let field = &mut structure[self.offset..self.offset + self.len];
        let (head, tail) = field.split_at_mut(bytes.len());
        head.copy_from_slice(bytes);
        tail.fill(0);
    }
}

/// Gives each field its offset.
pub(crate) const fn placed<const N: usize>(mut fields: [Field; N]) -> [Field; N] {
    let (mut i, mut offset) = (0, 0);
    while i < N {
        fields[i].offset = offset;
        offset += fields[i].len;
        i += 1;
    }
    fields
}

/// Where the last field ends.
pub(crate) const fn end(fields: &[Field]) -> usize {
    let last = &fields[fields.len() - 1];
    last.offset + last.len
}

/// Declares one table as a module: a constant per field, `TABLE` and `LEN`.
macro_rules! layout {
    ($(#[$doc:meta])* $module:ident, $name:literal { $($field:ident, $len:literal, $meaning:literal;)* }) => {
        $(#[$doc])*
        pub(crate) mod $module {
            use crate::layout::{Field, Table, end, placed};
            #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
            enum Place { $($field),* }
            const FIELDS: &[Field] = &placed([
                $(Field { name: stringify!($field), offset: 0, len: $len, meaning: $meaning }),*
            ]);
            $(#[doc = $meaning] #[allow(dead_code)]
            pub(crate) const $field: Field = FIELDS[Place::$field as usize];)*
            /// For the document.
            pub(crate) const TABLE: Table = Table { name: $name, fields: FIELDS };
            /// Bytes of the whole.
            pub(crate) const LEN: usize = end(FIELDS);
        }
    };
}
pub(crate) use layout;
