//! What a rule has found: where, which rule, and what to do about it.

use std::fmt;

/// One violation of one rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Relative to the root of the repository.
    pub path: String,
    /// From 1; 0 where the finding concerns the whole file.
    pub line: usize,
    /// The rule's name, one word.
    pub rule: &'static str,
    /// What is wrong and what would be right.
    pub text: String,
}

impl Finding {
    /// A finding in `path` at `line` (0: the whole file).
    pub fn new(path: &str, line: usize, rule: &'static str, text: impl Into<String>) -> Self {
        Self { path: path.into(), line, rule, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}: {}", self.path, self.rule, self.text),
            line => write!(f, "{}:{line}: {}: {}", self.path, self.rule, self.text),
        }
    }
}
