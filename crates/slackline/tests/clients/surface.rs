//! What the library for C shows: the header, the symbols and the man pages name the
//! same functions, and a `FILE` of it is one.

use crate::installed::{compile, pkg_config, prefix, root, run};
use crate::support::Scratch;
use std::collections::BTreeSet;
use std::process::Command;

/// Words that begin with `sl_` and are followed by `(`.
fn functions(text: &str) -> BTreeSet<String> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = text.match_indices("sl_").filter(|(at, _)| !text[..*at].ends_with(word));
    let names = starts.map(|(at, _)| {
        let rest = &text[at..];
        rest.split_at(rest.find(|c| !word(c)).unwrap_or(rest.len()))
    });
    names.filter(|(_, behind)| behind.starts_with('(')).map(|(name, _)| name.into()).collect()
}

#[test]
fn header_symbols_and_man_pages_name_the_same_functions() {
    let header = std::fs::read_to_string(prefix().join("include/slackline.h")).unwrap();
    // Comments name functions as well, with a section or empty parentheses.
    let declared: BTreeSet<_> = functions(&header);
    let mut nm = Command::new("nm");
    nm.args(["--dynamic", "--defined-only", "--format=posix"]);
    let symbols = run(nm.arg(prefix().join("lib/libslackline.so")));
    let exported: BTreeSet<String> =
        symbols.lines().filter_map(|line| line.split(' ').next()).map(Into::into).collect();
    assert_eq!(exported, declared, "nothing else is exported");
    let pages = std::fs::read_dir(prefix().join("share/man/man3")).unwrap();
    let told: BTreeSet<String> = pages
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .map(|name| name.trim_end_matches(".3").into())
        .collect();
    assert_eq!(told, declared, "every function has its page");
    assert!(declared.len() > 15, "{declared:?}");
}

#[test]
fn the_man_pages_have_no_mistakes() {
    for page in std::fs::read_dir(root().join("crates/capi/man")).unwrap() {
        let page = page.unwrap().path();
        let mut man = Command::new("man");
        man.args(["--warnings", "-l", "-Tutf8", "-Z"]).arg(&page).env("LC_ALL", "C.UTF-8");
        let output = man.output().expect("man-db is installed");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && said.is_empty(), "{}: {said}", page.display());
    }
}

#[test]
fn pkg_config_tells_the_version_of_the_workspace() {
    let version = run(pkg_config().args(["--modversion", "slackline"]));
    assert_eq!(version.trim(), env!("CARGO_PKG_VERSION"));
}

/// Whoever copies it has a crate of that name at that place, and the name that programs use.
#[test]
fn the_line_for_cargo_names_the_crate_that_is_there() {
    let page = std::fs::read_to_string(root().join("docs/clients.md")).unwrap();
    let line = page.lines().find(|line| line.starts_with("slackline-client = ")).expect("a line");
    let path = line.split('"').nth(1).unwrap().replace("SLACKLINE", &root().display().to_string());
    let manifest = std::fs::read_to_string(format!("{path}/Cargo.toml")).unwrap();
    assert!(manifest.contains("[package]\nname = \"slackline-client\"\n"), "{manifest}");
    assert!(manifest.contains("[lib]\nname = \"client\"\n") && line.contains("use client::File"));
}

#[test]
fn a_volume_is_a_file_of_the_c_library() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let source = dir.path("stdio.c");
    std::fs::write(&source, STDIO).unwrap();
    let program = compile(&source, &dir.path(""));
    let said = run(Command::new(program).arg(dir.path("s.sock")));
    assert_eq!(said, "line 7\nat 49\nline 9\nend\nwent to 24: there\ngrew\nrefused: disk 0\n");
}

const STDIO: &str = r#"
#include <slackline.h>
#include <string.h>

int main(int argc, char **argv)
{
    struct sl_options options = { .socket = argv[argc - 1], .size = 1 << 20,
                                  .contract = { .rate = 4000000 } };
    char line[32];
    FILE *out = sl_fopen("text", "w", &options);
    for (int i = 0; out && i < 10; i++)
        fprintf(out, "line %d\n", i);
    if (!out || fclose(out) != 0)
        return puts(sl_error()), 1;
    FILE *in = sl_fopen("text", "r", &options);
    fseek(in, 49, SEEK_SET);
    printf("%s", fgets(line, sizeof line, in));
    fseek(in, -21, SEEK_END);
    printf("at %ld\n", ftell(in));
    fseek(in, 63, SEEK_SET);
    printf("%s", fgets(line, sizeof line, in));
    puts(fgets(line, sizeof line, in) ? "more" : "end");
    fclose(in);
    options.contract.rate = 0;
    FILE *both = sl_fopen("text", "r+", &options);
    fseek(both, 24, SEEK_SET);
    fputs("there", both);
    fseek(both, 24, SEEK_SET);
    printf("went to %ld: ", ftell(both));
    memset(line, 0, sizeof line);
    puts(fread(line, 1, 5, both) == 5 ? line : "?");
    fclose(both);
    options.grow_to = 8 << 20;
    options.contract.rate = 4000000;
    FILE *grows = sl_fopen("grows", "w", &options);
    for (int i = 0; grows && i < 3 << 16; i++)
        fwrite("sixteen bytes...", 1, 16, grows);
    puts(grows && fclose(grows) == 0 ? "grew" : sl_error());
    options.contract.rate = 300000000;
    if (!sl_fopen("text", "r", &options))
        printf("refused: %.6s\n", sl_error());
    return 0;
}
"#;
