//! What a name stands for: a volume of the pool, or a file beside it.

use std::path::PathBuf;

/// The word before a volume's name where a name alone could be a path.
const SCHEME: &str = "slackline:";

/// What is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A volume: `NAME` or `slackline:NAME`.
    Volume(String),
    /// An existing file outside the pool, by its absolute path.
    Path(PathBuf),
}

impl Target {
    /// What `name` stands for: an absolute path is a file, anything else a volume.
    pub fn parse(name: &str) -> Self {
        match name.strip_prefix(SCHEME) {
            Some(volume) => Self::Volume(volume.into()),
            None if name.starts_with('/') => Self::Path(name.into()),
            None => Self::Volume(name.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_volume_and_an_absolute_path_a_file() {
        let volume = |name: &str| Target::Volume(name.into());
        assert_eq!(Target::parse("video"), volume("video"));
        assert_eq!(Target::parse("slackline:video"), volume("video"));
        assert_eq!(Target::parse("slackline:/x"), volume("/x"), "said, so it is");
        assert_eq!(Target::parse("/srv/film.mkv"), Target::Path("/srv/film.mkv".into()));
    }
}
