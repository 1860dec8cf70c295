//! No file of tests is forgotten. A crate whose tests are one program says so with
//! `autotests = false`; a file that neither that program nor the manifest names would never run,
//! and nothing else says so.

use crate::finding::Finding;
use std::collections::BTreeMap;

/// Findings in the crates of `files`, path to text.
pub fn check(files: &BTreeMap<String, String>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, text) in files {
        let Some((folder, file)) = path.split_once("/tests/") else { continue };
        let manifest = files.get(&format!("{folder}/Cargo.toml")).map_or("", String::as_str);
        let is_target = matches!(file.split_once('/'), None | Some((_, "main.rs")));
        if !file.ends_with(".rs") || !is_target || !has_line(manifest, "autotests = false") {
            continue;
        }
        let program = files.get(&format!("{folder}/tests/main.rs")).map_or("", String::as_str);
        let is_named = has_line(manifest, &format!("path = \"tests/{file}\""))
            || has_line(manifest, &format!("name = \"{}\"", file.trim_end_matches(".rs")))
            || has_line(program, &format!("mod {};", file.trim_end_matches(".rs")))
            || has_line(program, &format!("#[path = \"{file}\"]"));
        if !is_named && !text.is_empty() {
            let text = "runs in no test: name it in tests/main.rs, or as a [[test]] in Cargo.toml";
            found.push(Finding::new(path, 0, "forgotten", text));
        }
    }
    found
}

fn has_line(text: &str, line: &str) -> bool {
    text.lines().any(|one| one.trim() == line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_no_program_of_tests_names_is_found() {
        let manifest = "autotests = false\n[[test]]\nname = \"all\"\npath = \"tests/main.rs\"\n\
                        [[test]]\nname = \"apart\"\npath = \"tests/apart/main.rs\"\n\
                        [[test]]\nname = \"replay\"\n";
        let mut files = BTreeMap::new();
        let mut add = |path: &str, text: &str| files.insert(path.to_string(), text.to_string());
        add("crates/a/Cargo.toml", manifest);
        add(
            "crates/a/tests/main.rs",
            "mod rings;\n// mod gone;\n#[path = \"beside/main.rs\"]\nmod beside;\n",
        );
        for test in
            ["rings.rs", "replay.rs", "gone.rs", "apart/main.rs", "apart/part.rs", "beside/main.rs"]
        {
            add(&format!("crates/a/tests/{test}"), "#[test]\n");
        }
        add("crates/a/tests/lost/main.rs", "#[test]\n");
        add("crates/b/Cargo.toml", "[package]\n");
        add("crates/b/tests/by_itself.rs", "#[test]\n");
        let found: Vec<_> = check(&files).into_iter().map(|finding| finding.path).collect();
        assert_eq!(found, ["crates/a/tests/gone.rs", "crates/a/tests/lost/main.rs"]);
    }
}
