//! One name, one thing: whoever uses a crate sees no two types of one name in it.
//!
//! What a user of a crate sees are the public types of its modules that are public, of what
//! they re-export, and of crates of the house that they re-export whole. A type that is seen
//! in two places is one. Types in the body of a macro are not known here.
//!
//! What clashes for a reason, or is to be renamed by whoever works in that room, stands in
//! [`ALLOWED`]; a line there that no clash needs is a finding too.

use crate::finding::Finding;
use crate::modules::{self, Modules};
use crate::workspace::Workspace;
use std::collections::{BTreeMap, BTreeSet};

/// A clash that may stay: in the surface of which crate, of which name, and why.
type Allowed<'a> = (&'a str, &'a str, &'a str);

/// Clashes that there are.
const ALLOWED: &[Allowed<'_>] = &[
    ("daemon", "Settings", "of the daemon, and of files under contract: `config` holds both"),
    ("disk", "Mechanics", "of a simulated drive, and what the profiler found of a real one"),
    ("node", "Wanted", "what a plan is asked for, and what a caller wants to do with a volume"),
    ("sim", "Arrivals", MACHINE),
    ("sim", "Kind", "of a frame of a film, and of an event of a history: each in its module"),
    ("sim", "Latencies", MACHINE),
    ("sim", "LoadPlan", MACHINE),
    ("sim", "Pace", MACHINE),
    ("sim", "Place", "of a scenario's load, and in a trace's text: each in its module"),
    ("sim", "Places", "of a command that a search tries, and of a machine's load"),
    ("sim", "StreamPlan", MACHINE),
    ("sim", "Tally", "of a machine, and of one program of a world"),
];

/// Why `sim` has some words twice.
const MACHINE: &str = "a machine is disks with schedules alone and a scenario a whole pool; both \
    are planned in the same words, and no user takes from both";

/// Where this list is.
const PATH: &str = "crates/xtask/src/names.rs";

/// Where a type is made: crate, then modules.
type Definition = Vec<String>;

/// The types of one name in one surface, by where they are made.
type Surface = BTreeMap<String, BTreeSet<Definition>>;

/// One thing that a module re-exports: the path, and the name that it has from there on
/// (`*` for all).
struct Export {
    path: Vec<String>,
    name: String,
}

/// The clashes in each crate, one finding for each name.
pub fn check(files: &BTreeMap<String, String>, workspace: &Workspace) -> Vec<Finding> {
    let mut crates = modules::of(files);
    crates.values_mut().for_each(|modules| drop(modules::take_tests(modules)));
    let libraries = workspace.rooms().map(|(room, _)| room);
    let libraries: BTreeSet<&str> = libraries.filter(|room| has_library(files, room)).collect();
    clashes(&crates, &libraries, ALLOWED)
}

fn has_library(files: &BTreeMap<String, String>, room: &str) -> bool {
    files.contains_key(&format!("crates/{room}/src/lib.rs"))
}

fn clashes(
    crates: &BTreeMap<&str, Modules>,
    libraries: &BTreeSet<&str>,
    allowed: &[Allowed<'_>],
) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut needed = BTreeSet::new();
    for &room in libraries {
        let mut walk = Walk { crates, seen: BTreeSet::new(), surface: Surface::new() };
        walk.module(room, &[]);
        for (name, definitions) in
            walk.surface.iter().filter(|(_, definitions)| definitions.len() > 1)
        {
            if allowed.iter().any(|(there, what, _)| (*there, *what) == (room, name.as_str())) {
                needed.insert((room, name.clone()));
                continue;
            }
            let definitions: Vec<String> =
                definitions.iter().map(|definition| definition.join("::")).collect();
            let text = format!(
                "users of `{room}` see {} types of the name `{name}`: in {}; give each thing its \
                 own name, or re-export less",
                definitions.len(),
                definitions.join(", ")
            );
            found.push(Finding::new(&format!("crates/{room}/src/lib.rs"), 0, "names", text));
        }
    }
    for (room, name, _) in allowed {
        if !needed.contains(&(*room, String::from(*name))) {
            let text = format!("`{room}` has one `{name}` by now; take the line away");
            found.push(Finding::new(PATH, 0, "names", text));
        }
    }
    found
}

/// A way through all that a user of one crate sees.
struct Walk<'a> {
    crates: &'a BTreeMap<&'a str, Modules>,
    /// Modules that were looked at.
    seen: BTreeSet<Definition>,
    surface: Surface,
}

impl Walk<'_> {
    /// Everything public of a module.
    fn module(&mut self, room: &str, place: &[String]) {
        let definition = definition(room, place);
        let Some(code) = self.code(room, place) else { return };
        if !self.seen.insert(definition.clone()) {
            return;
        }
        for name in types(&code) {
            self.surface.entry(name).or_default().insert(definition.clone());
        }
        for child in public_modules(&code) {
            self.module(room, &[place, &[child]].concat());
        }
        for export in exports(&code) {
            self.export(room, place, &export);
        }
    }

    /// What a module re-exports.
    fn export(&mut self, room: &str, place: &[String], export: &Export) {
        let Some((room, path)) = self.absolute(room, place, &export.path) else { return };
        if export.name == "*" || self.code(&room, &path).is_some() {
            self.module(&room, &path);
        } else if let Some((definition, _)) = self.find(&room, &path, 0) {
            self.surface.entry(export.name.clone()).or_default().insert(definition);
        }
    }

    /// The crate that a path is in, and the rest of it; `None` for crates from outside.
    fn absolute(
        &self,
        room: &str,
        place: &[String],
        path: &[String],
    ) -> Option<(String, Vec<String>)> {
        let mut at = place.to_vec();
        let mut rest = path;
        while let Some((first, others)) = rest.split_first() {
            match first.as_str() {
                "crate" => at.clear(),
                "super" => drop(at.pop()),
                "self" => {}
                _ => break,
            }
            rest = others;
        }
        let (first, others) = rest.split_first()?;
        let child = [&at[..], std::slice::from_ref(first)].concat();
        let is_own = rest.len() < path.len() || self.code(room, &child).is_some();
        let declares = |code: String| types(&code).contains(first);
        if is_own || self.code(room, &at).is_some_and(declares) {
            return Some((room.into(), [&at[..], rest].concat()));
        }
        self.crates.contains_key(first.as_str()).then(|| (first.clone(), others.to_vec()))
    }

    /// Where the type of this path is made, through re-exports.
    fn find(&self, room: &str, path: &[String], depth: u32) -> Option<(Definition, String)> {
        let (name, place) = path.split_last()?;
        let code = self.code(room, place).filter(|_| depth < 8)?;
        if types(&code).contains(name) {
            return Some((definition(room, place), name.clone()));
        }
        let all = exports_of_any_kind(&code);
        all.iter().find_map(|export| {
            let (room, mut path) = self.absolute(room, place, &export.path)?;
            match export.name.as_str() {
                "*" => path.push(name.clone()),
                other if other != name => return None,
                _ => {}
            }
            self.find(&room, &path, depth + 1)
        })
    }

    fn code(&self, room: &str, place: &[String]) -> Option<String> {
        Some(self.crates.get(room)?.get(place)?.code.clone())
    }
}

fn definition(room: &str, place: &[String]) -> Definition {
    [&[String::from(room)], place].concat()
}

/// The statements of a module that stand in no braces but those of an import.
fn statements(code: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let (mut depth, mut in_import) = (0, false);
    for character in code.chars() {
        let last = all.last_mut().expect("there is one at least");
        match character {
            '{' if depth == 0 && is_import(last) => {
                in_import = true;
                last.push('{');
            }
            '}' if in_import && depth == 0 => last.push('}'),
            '{' if !in_import => {
                depth += 1;
                if depth == 1 {
                    last.push('{');
                }
            }
            '}' if !in_import => {
                depth -= 1;
                if depth == 0 {
                    all.push(String::new());
                }
            }
            ';' if depth == 0 => {
                in_import = false;
                all.push(String::new());
            }
            _ if depth == 0 => last.push(character),
            _ => {}
        }
    }
    all.iter().map(|one| without_attributes(one).trim().to_string()).collect()
}

fn is_import(statement: &str) -> bool {
    let words = without_attributes(statement);
    let words = words.trim_start();
    let words = match words.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')').map_or(rest, |(_, rest)| rest),
        Some(rest) => rest,
        None => words,
    };
    words.trim_start().starts_with("use ")
}

fn without_attributes(statement: &str) -> &str {
    let mut rest = statement.trim_start();
    while let Some(attribute) = rest.strip_prefix("#[").or_else(|| rest.strip_prefix("#![")) {
        let mut depth = 1;
        let end = attribute.find(|c| {
            depth += i32::from(c == '[') - i32::from(c == ']');
            depth == 0
        });
        let Some(end) = end else { return "" };
        rest = attribute[end + 1..].trim_start();
    }
    rest
}

/// The public types that a module makes.
fn types(code: &str) -> Vec<String> {
    let kinds = ["struct ", "enum ", "trait ", "unsafe trait ", "type ", "union "];
    let made = |statement: String| {
        let rest = statement.strip_prefix("pub ")?.trim_start();
        let rest = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?.trim_start();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
        Some(rest[..end.unwrap_or(rest.len())].to_string())
    };
    statements(code).into_iter().filter_map(made).collect()
}

fn public_modules(code: &str) -> Vec<String> {
    let named = |statement: String| {
        Some(statement.strip_prefix("pub ")?.trim_start().strip_prefix("mod ")?.trim().to_string())
    };
    let all = statements(code).into_iter().filter_map(named);
    all.filter(|name| !name.contains('{')).collect()
}

/// What a module re-exports to everybody.
fn exports(code: &str) -> Vec<Export> {
    trees(code, |statement| statement.strip_prefix("pub ")?.trim_start().strip_prefix("use "))
}

/// The same, and what it only imports or re-exports within its crate: a public path may lead
/// through these.
fn exports_of_any_kind(code: &str) -> Vec<Export> {
    trees(code, |statement| {
        is_import(statement).then(|| statement.split_once("use ").map_or("", |(_, tree)| tree))
    })
}

fn trees(code: &str, tree: impl Fn(&str) -> Option<&str>) -> Vec<Export> {
    let mut all = Vec::new();
    for statement in statements(code) {
        if let Some(tree) = tree(&statement) {
            flatten(&[], tree, &mut all);
        }
    }
    all
}

fn flatten(before: &[String], tree: &str, all: &mut Vec<Export>) {
    let names = |text: &str| -> Vec<String> {
        let names = text.split("::").map(str::trim).filter(|name| !name.is_empty());
        names.map(Into::into).collect()
    };
    if let Some((head, inner)) = tree.split_once('{') {
        let before = [before, &names(head)].concat();
        let inner = inner.rsplit_once('}').map_or(inner, |(inner, _)| inner);
        let (mut depth, mut from) = (0, 0);
        for (at, character) in inner.char_indices().chain([(inner.len(), ',')]) {
            match character {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    let part = inner.get(from..at).unwrap_or_default().trim();
                    if !part.is_empty() {
                        flatten(&before, part, all);
                    }
                    from = at + 1;
                }
                _ => {}
            }
        }
        return;
    }
    let (path, renamed) = match tree.split_once(" as ") {
        Some((path, name)) => (path, Some(name.trim().to_string())),
        None => (tree, None),
    };
    let mut path = [before, &names(path)].concat();
    let Some(name) = renamed.or_else(|| path.last().cloned()) else { return };
    if path.last().is_some_and(|last| last == "*" || last == "self") {
        path.pop();
    }
    all.push(Export { path, name });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)], allowed: &[Allowed<'_>]) -> Vec<String> {
        let path = |file: &str| format!("crates/{}", file.replacen('/', "/src/", 1));
        let files = files.iter().map(|(file, text)| (path(file), String::from(*text)));
        let files: BTreeMap<String, String> = files.collect();
        let crates = modules::of(&files);
        let libraries = crates.keys().copied().filter(|room| has_library(&files, room)).collect();
        clashes(&crates, &libraries, allowed).into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn two_public_types_of_one_name_are_found_and_private_ones_are_not() {
        let all = |a: &'static str, root: &'static str| {
            found(&[("x/lib.rs", root), ("x/a.rs", a), ("x/b.rs", "pub enum Word { A, B }")], &[])
        };
        let root = "pub mod a;\nmod b;\npub use b::Word;";
        let text = all("/// A word.\n#[derive(Clone)]\npub struct Word { pub a: u8 }", root);
        assert_eq!(text.len(), 1, "{text:?}");
        assert!(text[0].contains("2 types of the name `Word`"), "{text:?}");
        assert!(text[0].contains("x::a, x::b"), "{text:?}");
        assert_eq!(all("pub type Word = u8;", root).len(), 1, "an alias is a type");
        assert_eq!(all("pub trait Word {}", root).len(), 1, "a trait is one");
        assert_eq!(all("pub(crate) struct Word;", root), [""; 0]);
        assert_eq!(all("fn f() { pub struct Word; }", root), [""; 0]);
        assert_eq!(all("pub struct Word;", "mod a;\npub mod b;\nuse a::Word;"), [""; 0]);
    }

    #[test]
    fn a_type_that_is_seen_in_two_places_is_one() {
        let root = "pub mod a;\npub use a::{Word, inner::*};\npub use crate::a as other;";
        let a = "pub mod inner;\npub struct Word;\npub use self::inner::Deep;";
        let files = [("x/lib.rs", root), ("x/a.rs", a), ("x/a/inner.rs", "pub struct Deep;")];
        assert_eq!(found(&files, &[]), [""; 0]);
    }

    #[test]
    fn a_crate_that_re_exports_another_has_its_names_too() {
        let units = ("units/lib.rs", "mod size;\npub use size::Bytes;");
        let size = ("units/size.rs", "pub struct Bytes(u64);");
        let all = |root: &'static str| found(&[units, size, ("x/lib.rs", root)], &[]);
        assert_eq!(all("pub use units;\npub struct Bytes;").len(), 1);
        assert_eq!(all("pub use units::*;\npub struct Bytes;").len(), 1);
        assert_eq!(all("pub use units::{Bytes};\npub struct Other;"), [""; 0]);
        assert_eq!(all("pub use units::Bytes as Size;\npub struct Bytes;"), [""; 0]);
        assert_eq!(all("use units::Bytes as Size;\npub struct Bytes;"), [""; 0]);
        assert_eq!(all("pub use serde::Bytes;\npub struct Bytes;"), [""; 0], "from outside");
    }

    #[test]
    fn a_clash_may_be_allowed_and_a_line_that_allows_none_is_found() {
        let files = [("x/lib.rs", "pub mod a;\npub struct Word;"), ("x/a.rs", "pub struct Word;")];
        assert_eq!(found(&files, &[("x", "Word", "a reason")]), [""; 0]);
        let text = found(&files, &[("x", "Word", "a reason"), ("x", "Other", "a reason")]);
        assert_eq!(text.len(), 1, "{text:?}");
        assert!(text[0].contains("one `Other` by now"), "{text:?}");
    }
}
