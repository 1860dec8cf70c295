//! No two modules of a crate import each other, not by way of others either: who reads one
//! must not have to read all.
//!
//! A module imports what it names by `crate::`, by `super::`, or by the name of a module in its
//! folder; to hand something on from its folder (`pub use`) is no import. A module and what lies in
//! its folder are told apart, and the root of a crate (`lib.rs`,
//! `main.rs`) is a module like others; that a module declares another is no import. A `mod.rs` or a
//! root that only declares and re-exports is no member of a circle: what is named through it is
//! where it comes from. Tests, and modules for tests alone, do not count.

use crate::finding::Finding;
use crate::modules::{self, Modules};
use std::collections::{BTreeMap, BTreeSet};

/// Circles between a folder, or a root, and its own parts that were there when these began to count: where
/// each is told, and of how many modules it is. None may come, and none may grow.
const KNOWN: &[(&str, usize)] = &[
    ("crates/client/src/lib.rs", 12),
    ("crates/daemon/src/api/mod.rs", 6),
    ("crates/daemon/src/data/mod.rs", 9),
    ("crates/daemon/src/files/mod.rs", 2),
    ("crates/daemon/src/http/mod.rs", 3),
    ("crates/daemon/src/nbd/mod.rs", 3),
    ("crates/daemon/src/pool.rs", 7),
    ("crates/disk/src/model/mod.rs", 2),
    ("crates/fuzz/src/surfaces/mod.rs", 4),
    ("crates/lab/src/experiment.rs", 2),
    ("crates/lab/src/experiments/clockwise/section_7_1/mod.rs", 3),
    ("crates/lab/src/experiments/mod.rs", 6),
    ("crates/lab/src/experiments/semi_preemptible/mod.rs", 10),
    ("crates/mount/src/server/mod.rs", 2),
    ("crates/node/src/best_effort/mod.rs", 4),
    ("crates/node/src/plan/mod.rs", 3),
    ("crates/preload/src/lib.rs", 2),
    ("crates/python/src/lib.rs", 2),
    ("crates/sim/src/machine/mod.rs", 4),
    ("crates/sim/src/traces/mod.rs", 7),
    ("crates/sim/src/workload/cello/mod.rs", 3),
    ("crates/slackline/src/demo/mod.rs", 17),
    ("crates/slackline/src/rwrt/mod.rs", 3),
    ("crates/slackline/src/top/mod.rs", 3),
];

/// The circles in each crate, one finding for each that is not known.
pub fn check(files: &BTreeMap<String, String>) -> Vec<Finding> {
    check_beside(files, KNOWN)
}

fn check_beside(files: &BTreeMap<String, String>, known: &[(&str, usize)]) -> Vec<Finding> {
    let mut crates = modules::of(files);
    let mut left: BTreeMap<&str, usize> = known.iter().copied().collect();
    let mut found = Vec::new();
    for (len, circle) in crates.values_mut().flat_map(circles) {
        let is_known = left.remove(&*circle.path).is_some_and(|most| len <= most);
        found.extend((!is_known).then_some(circle));
    }
    let gone = left.into_keys().map(|file| {
        let text = "is in no circle any more: take it off the list in crates/xtask/src/circles.rs";
        Finding::new(file, 0, "circles", text)
    });
    found.extend(gone);
    found
}

/// Each circle, with how many modules it has.
fn circles(modules: &mut Modules) -> Vec<(usize, Finding)> {
    let for_tests = modules::take_tests(modules);
    let edges: BTreeMap<&Vec<String>, BTreeSet<Vec<String>>> =
        modules.keys().map(|place| (place, imports(modules, &for_tests, place))).collect();
    let reach: BTreeMap<&Vec<String>, BTreeSet<Vec<String>>> =
        edges.keys().map(|place| (*place, reached(&edges, place))).collect();
    let mut found = Vec::new();
    let mut told = BTreeSet::new();
    for (place, theirs) in &reach {
        let circle: Vec<&Vec<String>> =
            theirs.iter().filter(|other| reach[*other].contains(*place)).collect();
        if circle.len() > 1 && told.insert(circle.clone()) {
            let name = |place: &[String]| match place {
                [] => "the root".into(),
                _ => place.join("::"),
            };
            let names: Vec<String> = circle.iter().map(|one| name(one)).collect();
            let text = format!(
                "{} modules import each other in a circle: {}; put what they share into a module \
                 of its own",
                names.len(),
                names.join(", ")
            );
            found.push((circle.len(), Finding::new(&modules[*place].file, 0, "circles", text)));
        }
    }
    found
}

/// All modules that can be reached by imports, itself where it is in a circle.
fn reached(
    edges: &BTreeMap<&Vec<String>, BTreeSet<Vec<String>>>,
    from: &Vec<String>,
) -> BTreeSet<Vec<String>> {
    let mut all = BTreeSet::new();
    let mut open = vec![from];
    while let Some(place) = open.pop() {
        for next in &edges[place] {
            if all.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    all
}

/// The modules that this one imports, but for itself.
fn imports(
    modules: &Modules,
    for_tests: &[Vec<String>],
    place: &[String],
) -> BTreeSet<Vec<String>> {
    let mut all = BTreeSet::new();
    let children: BTreeSet<&str> = modules
        .keys()
        .filter(|key| key.len() == place.len() + 1 && key.starts_with(place))
        .filter_map(|key| key.last().map(String::as_str))
        .collect();
    for path in paths(&modules[place].code, &children) {
        let mut at: Vec<String> = place.to_vec();
        for segment in &path {
            match segment.as_str() {
                "crate" => at.clear(),
                "super" => drop(at.pop()),
                name => at.push(name.into()),
            }
        }
        if !for_tests.iter().any(|tests| at.starts_with(tests)) {
            resolve(modules, &at, 0, &mut all);
        }
    }
    all.remove(place);
    all
}

/// Finds the module in which `path` names something, through those that only re-export.
fn resolve(modules: &Modules, path: &[String], depth: u32, all: &mut BTreeSet<Vec<String>>) {
    let known = (0..=path.len()).rev().find(|&len| modules.contains_key(&path[..len]));
    let Some(len) = known.filter(|_| depth < 8) else { return };
    let (place, rest) = path.split_at(len);
    let code = &modules[place].code;
    if !only_declares(code) {
        all.insert(place.to_vec());
        return;
    }
    for tree in use_paths(code) {
        let (last, before) = tree.split_last().expect("a path has a name");
        let from = [place, before].concat();
        let is_it = match rest.first() {
            Some(name) if name == "*" => true,
            Some(name) if last == "*" => modules.get(&from).is_some_and(|it| has(&it.code, name)),
            Some(name) => last == name,
            None => true,
        };
        let child = [&from[..], std::slice::from_ref(last)].concat();
        if is_it && before.first().is_some_and(|first| first != "crate" && first != "super") {
            resolve(modules, &child, depth + 1, all);
        }
    }
}

/// Whether the code has something of this name that others can name: made there, or
/// re-exported.
fn has(code: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let makes =
        ["struct ", "enum ", "fn ", "trait ", "type ", "const ", "static ", "mod ", "union "];
    let made = makes.iter().any(|word| {
        code.match_indices(word).any(|(at, _)| {
            let rest = &code[at + word.len()..];
            rest.starts_with(name) && !rest[name.len()..].starts_with(is_word)
        })
    });
    let public = code.split(';').filter_map(|statement| statement.split_once("pub use "));
    made || public
        .flat_map(|(_, tree)| use_paths(&format!("use {tree};")))
        .any(|path| path.last().is_some_and(|last| last == name || last == "*"))
}

/// Only modules, imports and attributes.
fn only_declares(code: &str) -> bool {
    let statements = code.split(';').map(str::trim).filter(|statement| !statement.is_empty());
    let mut is_empty = true;
    for statement in statements {
        is_empty = false;
        let words = statement.rsplit(']').next().unwrap_or(statement).trim();
        let words = words.trim_start_matches("pub(crate)").trim_start_matches("pub(super)");
        let words = words.trim_start().trim_start_matches("pub").trim_start();
        let declares = ["mod ", "use ", "extern crate "].iter().any(|word| words.starts_with(word));
        if !declares || words.contains(" as ") {
            return false;
        }
    }
    !is_empty
}

/// All paths that begin with `crate`, `super`, or a module of this one's folder.
fn paths(code: &str, children: &BTreeSet<&str>) -> Vec<Vec<String>> {
    let code = without_re_exports(code, children);
    let starts = |path: &Vec<String>| {
        matches!(path[0].as_str(), "crate" | "super") || children.contains(path[0].as_str())
    };
    let mut all = use_paths(&code);
    all.retain(starts);
    let of_children = children.iter().map(|child| format!("{child}::"));
    let roots: Vec<String> =
        ["crate::", "super::"].map(String::from).into_iter().chain(of_children).collect();
    for root in &roots {
        for (at, _) in code.match_indices(root.as_str()) {
            if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let end = code[at..].find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
            let path = &code[at..end.map_or(code.len(), |end| at + end)];
            if path.ends_with("::") {
                continue; // a tree, which is an import's
            }
            all.push(path.split("::").filter(|name| !name.is_empty()).map(Into::into).collect());
        }
    }
    all
}

/// Code without what a module only hands on from its folder.
fn without_re_exports(code: &str, children: &BTreeSet<&str>) -> String {
    let is_re_export = |statement: &&str| {
        let from = ["pub use ", "pub(crate) use ", "pub(super) use "]
            .iter()
            .find_map(|word| statement.rsplit_once(word))
            .map(|(_, tree)| tree.trim_start_matches("self::"));
        let first = from.and_then(|tree| tree.split("::").next());
        first.is_some_and(|first| children.contains(first.trim()))
    };
    let statements: Vec<&str> = code.split(';').filter(|it| !is_re_export(it)).collect();
    statements.join(";")
}

/// The paths of all imports, a tree as one path each.
fn use_paths(code: &str) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for (at, _) in code.match_indices("use ") {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let tree = code[at + 4..].split(';').next().unwrap_or_default();
        flatten(&[], tree, &mut all);
    }
    all
}

fn flatten(before: &[String], tree: &str, all: &mut Vec<Vec<String>>) {
    let Some((head, inner)) = tree.split_once('{') else {
        let names = tree.split("::").map(|name| name.split(" as ").next().unwrap_or(name).trim());
        let names = names.filter(|name| !name.is_empty() && *name != "self").map(String::from);
        let path: Vec<String> = before.iter().cloned().chain(names).collect();
        if !path.is_empty() {
            all.push(path);
        }
        return;
    };
    let names = head.split("::").map(str::trim).filter(|name| !name.is_empty() && *name != "self");
    let names = names.map(Into::into);
    let before: Vec<String> = before.iter().cloned().chain(names).collect();
    let inner = inner.rsplit_once('}').map_or(inner, |(inner, _)| inner);
    let (mut depth, mut from) = (0, 0);
    for (at, character) in inner.char_indices().chain([(inner.len(), ',')]) {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = inner[from..at].trim();
                if !part.is_empty() {
                    flatten(&before, part, all);
                }
                from = (at + 1).min(inner.len());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let path = |file: &str| format!("crates/node/src/{file}");
        let files = files.iter().map(|(file, text)| (path(file), String::from(*text))).collect();
        check_beside(&files, &[]).into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn a_circle_of_any_length_is_found_once_and_a_line_is_none() {
        let circle = [
            ("lib.rs", "mod a; mod b; mod c; use a::A;"),
            ("a.rs", "use crate::{b::B, d::D}; struct A;"),
            ("b.rs", "fn f(x: crate::c::C) {}"),
            ("c.rs", "use super::a; struct C;"),
            ("d.rs", "struct D;"),
        ];
        let text = found(&circle);
        assert_eq!(text.len(), 1, "{text:?}");
        assert!(text[0].contains("3 modules") && text[0].contains("a, b, c"), "{text:?}");
        assert_eq!(found(&circle[..3]), [""; 0]);
    }

    #[test]
    fn what_is_known_may_go_and_may_not_grow() {
        let files: BTreeMap<String, String> = [
            ("a", "use crate::b; fn a() {}"),
            ("b", "use crate::c; fn b() {}"),
            ("c", "use crate::a; fn c() {}"),
        ]
        .map(|(name, text)| (format!("crates/node/src/{name}.rs"), text.into()))
        .into();
        let a = "crates/node/src/a.rs";
        assert_eq!(check_beside(&files, &[(a, 3)]).len(), 0);
        assert_eq!(check_beside(&files, &[(a, 2)]).len(), 1);
        assert_eq!(check_beside(&files, &[(a, 3), ("crates/node/src/d.rs", 2)]).len(), 1);
    }

    #[test]
    fn a_root_and_a_folder_are_modules_too() {
        let root = |text: &'static str| [("lib.rs", text), ("a.rs", "use crate::K; struct A;")];
        assert_eq!(found(&root("mod a; const K: u32 = 1; fn f() -> a::A {}")).len(), 1);
        assert_eq!(found(&root("mod a; use self::a::A; const K: u32 = 1;")).len(), 1);
        // To hand something on is not to use it.
        assert_eq!(found(&root("mod a; pub use self::a::A; const K: u32 = 1;")), [""; 0]);
        let folder = |text: &'static str| [("f/mod.rs", text), ("f/a.rs", "fn a() { super::f() }")];
        assert_eq!(found(&folder("mod a; fn f() { a::a() }")).len(), 1);
        assert_eq!(found(&folder("mod a; fn f() {}")), [""; 0]);
        // What the root re-exports is where it comes from.
        let through = [
            ("lib.rs", "extern crate alloc; mod a; mod b; pub use a::A; pub use b::B;"),
            ("a.rs", "use crate::B; struct A;"),
            ("b.rs", "use crate::A; struct B;"),
        ];
        assert_eq!(found(&through).len(), 1);
    }

    #[test]
    fn what_a_module_only_re_exports_is_where_it_comes_from() {
        let all = |user: &'static str| {
            [
                (
                    "api/mod.rs",
                    "//! All.\nmod ops;\nmod words;\npub use ops::*;\npub use words::{W, X};",
                ),
                ("api/ops.rs", "use super::words::W; use crate::user::U; struct Op;"),
                ("api/words.rs", "struct W; struct X;"),
                ("user.rs", user),
            ]
        };
        assert_eq!(found(&all("use crate::api::{ops::Op, W}; struct U;")).len(), 1);
        assert_eq!(found(&all("use crate::api::*; struct U;")).len(), 1);
        assert_eq!(found(&all("use crate::api::Op; struct U;")).len(), 1);
        assert_eq!(found(&all("use crate::api::{W, X}; struct U;")), [""; 0]);
    }

    #[test]
    fn tests_may_look_anywhere() {
        let files = [
            ("lib.rs", "mod a;\n#[cfg(test)]\nmod scenes;"),
            (
                "a.rs",
                "#[cfg(test)]\nuse crate::b::B;\nfn f() {}\n#[cfg(test)]\nmod tests { use crate::b; }",
            ),
            ("b.rs", "use crate::a::f; fn g() { if cfg!(test) { crate::scenes::go() } }"),
            ("scenes.rs", "use crate::b;"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }
}
