//! What can go wrong, named once: the number in a data frame, the word in JSON
//! and the HTTP status all come from the one table below.
//!
//! Invariant: numbers and words are never reused for another meaning.

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $word:literal, $status:literal, $title:literal;)*) => {
        /// What went wrong, for a program to act on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
        #[serde(rename_all = "snake_case")] // gives the words of the table; a test compares
        pub enum Code {
            $($(#[$doc])* $name = $number,)*
        }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The code with this number; none where the number is unknown.
            pub const fn from_number(number: u16) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }
            /// The word for it in JSON.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }
            /// The status of an HTTP answer that carries it.
            pub const fn http_status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }
            /// What it means, for a person; the same for every occurrence.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* }
            }
        }
    };
}

codes! {
    /// Admission refused a contract.
    Refused = 1, "refused", 409, "The contract does not fit";
    /// No volume has this name.
    NoSuchVolume = 2, "no_such_volume", 404, "No such volume";
    /// The name is taken.
    VolumeExists = 3, "volume_exists", 409, "The volume exists";
    /// Streams are open on the volume.
    VolumeBusy = 4, "volume_busy", 409, "The volume is in use";
    /// No stream has this number, or it has been closed.
    NoSuchStream = 5, "no_such_stream", 404, "No such stream";
    /// The pool has no disk with this number.
    NoSuchDisk = 6, "no_such_disk", 404, "No such disk";
    /// A value outside its range.
    Invalid = 7, "invalid", 400, "A value is out of range";
    /// The pool has not so much free space.
    PoolFull = 8, "pool_full", 507, "The pool is full";
    /// The write does not fit in the volume.
    VolumeFull = 9, "volume_full", 507, "The volume is full";
    /// The access lies behind the end of the volume.
    BeyondEnd = 10, "beyond_end", 416, "Beyond the end of the volume";
    /// The memory for windows or transfers is used up.
    NoMemory = 11, "no_memory", 507, "Not enough memory";
    /// Too much is waiting; nothing was done.
    Busy = 12, "busy", 503, "Too much is waiting";
    /// A read on a writer, or a write on a reader.
    WrongMode = 13, "wrong_mode", 409, "The stream goes the other way";
    /// A disk failed.
    Device = 14, "device", 500, "A disk failed";
    /// The daemon is stopping.
    ShuttingDown = 15, "shutting_down", 503, "The daemon is stopping";
    /// Metadata can no longer be written.
    ReadOnly = 16, "read_only", 503, "The pool is read-only";
    /// The other side broke the protocol.
    Protocol = 17, "protocol", 400, "The protocol was broken";
    /// The other side speaks another version.
    Version = 18, "version", 400, "Another protocol version";
    /// Another connection carries this stream's bytes.
    Attached = 19, "attached", 409, "The stream has its connection";
    /// The request is not one that this interface knows.
    BadRequest = 20, "bad_request", 400, "The request cannot be understood";
    /// Nothing lives at this address.
    NotFound = 21, "not_found", 404, "Nothing here";
    /// The address exists, the method does not.
    MethodNotAllowed = 22, "method_not_allowed", 405, "Not with this method";
    /// The request is larger than allowed.
    TooLarge = 23, "too_large", 413, "The request is too large";
    /// The asker's user or group holds as much as it may.
    Quota = 25, "quota", 409, "The quota does not allow it";
    /// It belongs to another user.
    Forbidden = 26, "forbidden", 403, "Not permitted";
    /// A contract cannot be given on this file.
    BadFile = 27, "bad_file", 422, "No contract on this file";
    /// The volume's owner and mode do not let the asker do this.
    NotPermitted = 28, "not_permitted", 403, "The volume does not permit it";
    /// The volume has more recorded than would be left of it.
    WouldCut = 29, "would_cut", 409, "Recorded data would be lost";
    /// The stream's program was silent for too long, and has lost its contract.
    Silent = 30, "silent", 410, "The program was silent for too long";
    /// The bytes have changed since the asker knew them.
    Precondition = 31, "precondition", 412, "The bytes have changed";
    /// No token was shown over TCP, or one that is not good.
    NoToken = 40, "no_token", 401, "Show a token that is good";
    /// The token that was shown does not let its holder do this.
    TokenScope = 41, "token_scope", 403, "The token does not permit it";
    /// A ring does not hold these bytes any more.
    GivenUp = 42, "given_up", 410, "Given up by the ring";
    /// Something lies under the directory.
    NotEmpty = 43, "not_empty", 409, "The directory is not empty";
    /// What has the name is not the volume that was meant.
    OtherVolume = 44, "other_volume", 409, "Another volume has the name";
    /// No volume has so long a name.
    NameTooLong = 45, "name_too_long", 400, "The name is too long";
    /// A disk was asked, and cannot read or write this place.
    Medium = 46, "medium", 500, "A disk fails in this place";
    /// The daemon serves another pool than the request is about.
    OtherPool = 47, "other_pool", 409, "Another pool is served";
    /// A fault in Slackline itself.
    Internal = 24, "internal", 500, "A fault in Slackline";
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_code_has_its_own_number_and_word_and_comes_back_from_both() {
        let words: HashSet<_> = Code::ALL.iter().map(|code| code.word()).collect();
        assert_eq!(words.len(), Code::ALL.len());
        for &code in Code::ALL {
            assert_eq!(Code::from_number(code as u16), Some(code));
            let json = serde_json::to_string(&code).unwrap();
            assert_eq!(json, format!("\"{}\"", code.word()));
            assert_eq!(serde_json::from_str::<Code>(&json).unwrap(), code);
            assert!((400..600).contains(&code.http_status()));
        }
        assert_eq!(Code::from_number(0), None);
    }
}
