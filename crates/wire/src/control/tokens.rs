//! Tokens, as they are asked for and listed.

use crate::quantity;
use serde::{Deserialize, Serialize};
use units::Rate;

/// What a token lets its holder do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum TokenVerb {
    /// Read bytes, and what is known of volumes.
    Read,
    /// Write bytes, grow and shrink.
    Write,
    /// Make and delete volumes.
    Create,
    /// Give volumes names, owners, modes and contracts; with all volumes, what concerns the pool.
    Manage,
}

/// Asks for a token that acts as the asker. What is left out is not restricted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TokenMake {
    /// For volumes of these names,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<String>,
    /// and for those whose names begin so; for all where both are empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<String>,
    /// For these verbs; for all where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verbs: Vec<TokenVerb>,
    /// For contracts of at most this rate.
    #[serde(default, with = "quantity::option", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub rate_max_bytes_per_second: Option<Rate>,
    /// Until this second, counted from 1970 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_seconds: Option<u64>,
}

/// What a daemon knows of a token: not the token itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TokenFacts {
    /// By which it is revoked, with all that were narrowed from it.
    pub number: u64,
    /// The user that it acts as.
    pub user: String,
    /// What it is held to, in words.
    pub restrictions: Vec<String>,
    /// The second since 1970 from which on it is good for nothing; none: for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_seconds: Option<u64>,
}

/// A new token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TokenMade {
    /// The token. It is shown this once: the daemon does not keep it.
    pub token: String,
    /// What is known of it.
    pub facts: TokenFacts,
}

impl std::fmt::Debug for TokenMade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TokenMade {{ number: {} }}", self.facts.number)
    }
}

/// The tokens that are neither revoked nor over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Tokens {
    /// In the order of their numbers.
    pub tokens: Vec<TokenFacts>,
}

/// A player in a browser may read the bytes of a volume, with the cookie that came with this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PlayerLet {
    /// For so many seconds it begins to; what it has begun then goes on.
    pub seconds: u64,
}
