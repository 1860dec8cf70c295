//! Why a model or a profile cannot be used, and what to do about it.

use alloc::string::String;
use core::fmt;

/// What is wrong with a model or a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The text is no TOML, or not of this form; the parser says where.
    Syntax(String),
    /// A value that no disk has; says which and what would do.
    Invalid(String),
    /// No model of this name is built in; lists those that are.
    NoSuchModel {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(what) => write!(f, "{}", what.trim_end()),
            Self::Invalid(what) => write!(f, "{what}"),
            Self::NoSuchModel { name, known } => {
                write!(f, "no disk model is called {name:?}; there is {known}")
            }
        }
    }
}
impl core::error::Error for Error {}

/// Returns an [`Error::Invalid`] with a formatted text unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err($crate::Error::Invalid(alloc::format!($($text)+)));
        }
    };
}
pub(crate) use ensure;
