//! Where something is written in a scenario, for who has to correct it.

use crate::failure::Failure;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// Where something is written, for who has to correct it.
pub struct Source<'a> {
    pub path: &'a Path,
    pub text: &'a str,
}

impl Source<'_> {
    /// What is wrong with something, and what to do.
    pub fn wrong<T>(&self, what: &Spanned<T>, said: &str, next: &str) -> Failure {
        let before = &self.text[..what.span().start.min(self.text.len())];
        let line = before.matches('\n').count() + 1;
        let here = self.text.lines().nth(line - 1).unwrap_or_default().trim();
        Failure::usage(format!("{}, line {line}: {here}\n  {said}", self.path.display()), next)
    }

    /// A path in the scenario is beside the scenario's own file.
    pub fn beside(&self, path: &Path) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(path)
    }
}
