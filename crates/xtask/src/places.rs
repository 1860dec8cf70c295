//! Committed files name no place of the machine they were written on: no
//! absolute path of a home or a workplace, no package index but the public one.

use crate::finding::Finding;

/// Directories of one machine. Written in pieces: this file is checked too.
const PLACES: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/Use", "rs/")];

/// The only source of packages that a lock file may name.
const PUBLIC_INDEX: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Settings that point a package tool at another index.
const INDEX_SETTINGS: [&str; 5] = [
    concat!("replace", "-with"),
    concat!("[regis", "tries"),
    concat!("index", "-url"),
    concat!("GO", "PROXY="),
    concat!("npm_config_", "registry"),
];

/// Findings in any text file.
pub fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        for place in PLACES {
            if names_place(line, place) {
                let text = format!("names {place}, a place of one machine; use a relative path");
                found.push(Finding::new(path, number, "places", text));
            }
        }
        for setting in INDEX_SETTINGS {
            if line.contains(setting) {
                let text = format!("`{setting}` points at a package index; leave that to the user");
                found.push(Finding::new(path, number, "places", text));
            }
        }
        if path.ends_with("Cargo.lock") && names_other_source(line) {
            let text = "a package from elsewhere than the public index; depend on a released one";
            found.push(Finding::new(path, number, "places", text));
        }
    }
    found
}

/// True where `place` starts a path, and is not the middle of a longer one.
fn names_place(line: &str, place: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || "._-~}".contains(c);
    line.match_indices(place).any(|(at, _)| !line[..at].ends_with(goes_on))
}

fn names_other_source(line: &str) -> bool {
    line.strip_prefix("source = ").is_some_and(|source| source.trim_matches('"') != PUBLIC_INDEX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_of_one_machine_is_found_and_a_longer_path_is_not() {
        for place in PLACES {
            let found = |text: String| check("docs/x.md", &text).len();
            assert_eq!(found(format!("see {place}notes.txt")), 1);
            assert_eq!(found(format!("`{place}x` and ({place}y)")), 1, "once a line");
            assert_eq!(found(format!("src{place}frame")), 0);
            assert_eq!(found(format!("https://example.org{place}x")), 0);
        }
    }

    #[test]
    fn another_package_index_is_found() {
        let lock = |source: &str| check("Cargo.lock", &format!("source = \"{source}\"\n")).len();
        assert_eq!(lock(PUBLIC_INDEX), 0);
        assert_eq!(lock("registry+https://mirror.example.org/index"), 1);
        assert_eq!(lock("git+https://example.org/x?rev=1#1"), 1);
        assert_eq!(check(".cargo/config.toml", &format!("{} = \"x\"", INDEX_SETTINGS[0])).len(), 1);
    }
}
