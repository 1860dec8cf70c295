//! What the laboratory notices: `cargo run -q -p xtask -- constants [HOW_MANY [SEED]]`.
//!
//! Draws constants of the drive models and of the schedulers that the laboratory uses, makes
//! each a fifth larger or smaller, one at a time, and runs all quick experiments. A constant is
//! *noticed* where a claim is contradicted that has no reason for it. Where the run fails
//! otherwise, as by a table of the documents, that is said apart: it says nothing of a paper.
//!
//! A model is text that the test's program holds, so it is changed there, and nothing is built
//! anew. A constant of a scheduler is changed in the sources, and changed back: who interrupts
//! this looks at `git status`.

use serde_json::Value as Json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use toml::{Table, Value};

/// The models that the laboratory's simulated experiments use.
const MODELS: [&str; 5] =
    ["quantum-atlas-ii", "seagate-st318437lw", "seagate-cheetah", "wd400bb", "hitachi-travelstar"];

/// Where the schedulers that it runs have constants. What bounds the effort of an analysis
/// (`sched/src/limits.rs`) decides nothing, and is left out.
const SCHEDULERS: [&str; 7] = [
    "crates/policies/src/abiss.rs",
    "crates/policies/src/anticipatory.rs",
    "crates/policies/src/cfq.rs",
    "crates/policies/src/deadline.rs",
    "crates/policies/src/noop.rs",
    "crates/policies/src/ucsb.rs",
    "crates/sched/src/request.rs", // of slack
];

const HOW_MANY: usize = 40;
const SEED: u64 = 19;

/// A constant, and a fifth more or less of it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Constant {
    /// All numbers of a key of a model's file: `zones.cylinders`.
    Model { name: &'static str, key: String },
    /// The number that stands in a line of a source file.
    Source { file: &'static str, line: usize, name: String },
}

/// What came of one.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// So many claims are contradicted; the first of them.
    Noticed(usize, String),
    /// No claim is; the run fails otherwise, as by a table of the documents.
    Otherwise,
    Unnoticed,
    /// It is no model any more: a check of the model's own refuses it.
    Refused,
}

/// Tries `HOW_MANY` constants drawn by `SEED`.
///
/// # Errors
/// Where nothing can be built, or the laboratory contradicts a paper as it is.
pub fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    let number = |at: usize, or: u64| {
        arguments
            .get(at)
            .map_or(Ok(or), |word| word.parse().map_err(|_| format!("{word}: a number")))
    };
    let (count, seed) = (number(0, HOW_MANY as u64)? as usize, number(1, SEED)?);
    // A copy: what is built with another constant of a scheduler takes its place.
    let built = build(root)?;
    let program = built.with_file_name("quick-as-it-is");
    fs::copy(&built, &program).map_err(|error| format!("{}: {error}", program.display()))?;
    if try_program(root, &program)? != Outcome::Unnoticed {
        return Err("the laboratory's quick run fails as it is; mend that first".into());
    }
    let all = every(root)?;
    println!("{} constants; {count} of them, drawn by seed {seed}", all.len());
    let (mut noticed, mut tried) = (0, 0);
    for at in order(all.len(), seed) {
        if tried == count {
            break;
        }
        let up = (at as u64).wrapping_mul(seed | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 1;
        let (what, outcome) = match &all[at] {
            Constant::Model { name, key } => try_model(root, &program, name, key, up)?,
            Constant::Source { file, line, name } => try_source(root, file, *line, name, up)?,
        };
        let said = match outcome {
            Outcome::Refused => {
                println!("-- | {what} | refused by the model's own check; another is drawn");
                continue;
            }
            Outcome::Noticed(claims, first) => {
                noticed += 1;
                format!("noticed by {claims} claims; {first}")
            }
            Outcome::Otherwise => {
                "no claim; the run fails otherwise, as by a document's table".into()
            }
            Outcome::Unnoticed => "unnoticed".into(),
        };
        tried += 1;
        println!("{tried} | {what} | {said}");
    }
    println!("constants: {tried} changed by a fifth, {noticed} noticed by claims");
    Ok(())
}

/// The numbers below `count` in an order that follows from `seed`.
fn order(count: usize, seed: u64) -> Vec<usize> {
    let mut state = seed;
    let mut next = || {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let mut order: Vec<(u64, usize)> = (0..count).map(|at| (next(), at)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, at)| at).collect()
}

fn every(root: &Path) -> Result<Vec<Constant>, String> {
    let mut all = Vec::new();
    for name in MODELS {
        let (_, table) = model(root, name)?;
        let keys = keys(&table);
        all.extend(keys.into_iter().map(|key| Constant::Model { name, key }));
    }
    for file in SCHEDULERS {
        let text = read(&root.join(file))?;
        all.extend(constants(&text).map(|(line, name)| Constant::Source { file, line, name }));
    }
    Ok(all)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn model(root: &Path, name: &str) -> Result<(String, Table), String> {
    let text = read(&root.join(format!("models/{name}.toml")))?;
    let table = text.parse().map_err(|error| format!("{name}: {error}"))?;
    Ok((text, table))
}

/// The keys of a model whose numbers can change: not the seed, and not what is nothing.
fn keys(table: &Table) -> Vec<String> {
    let mut keys = Vec::new();
    let mut add = |key: &str, value: &Value| {
        let changed = changed(value, true);
        if key != "seed" && changed != *value {
            keys.push(key.to_owned());
        }
    };
    for (key, value) in table {
        each(key, value, &mut add);
    }
    keys.sort();
    keys.dedup();
    keys
}

/// Calls `add` for each key below `key` that is no table: of all tables of a list together.
fn each(key: &str, value: &Value, add: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Table(table) => {
            table.iter().for_each(|(name, value)| each(&format!("{key}.{name}"), value, add));
        }
        Value::Array(all) if all.iter().all(Value::is_table) => {
            all.iter().for_each(|value| each(key, value, add));
        }
        value => add(key, value),
    }
}

/// A fifth more or less of every number. Of a list of distances and times the times change.
fn changed(value: &Value, up: bool) -> Value {
    match value {
        Value::Integer(number) => Value::Integer(integer(*number, up)),
        Value::Float(number) => Value::Float(number * factor(up)),
        Value::String(text) => Value::String(quantity(text, up)),
        Value::Array(all) => {
            let has_times = all.iter().any(Value::is_str);
            let one = |value: &Value| match value {
                Value::Integer(_) if has_times => value.clone(),
                value => changed(value, up),
            };
            Value::Array(all.iter().map(one).collect())
        }
        value => value.clone(),
    }
}

fn factor(up: bool) -> f64 {
    if up { 1.2 } else { 0.8 }
}

/// At least one more or less, where it is something.
fn integer(number: i64, up: bool) -> i64 {
    let fifth = ((number as f64) * 0.2).round().max(1.0) as i64;
    match number {
        0 => 0,
        number if up => number + fifth,
        number => number - fifth,
    }
}

/// A number with its unit, as "1.2ms"; another text stays.
fn quantity(text: &str, up: bool) -> String {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    match number.parse::<f64>() {
        Ok(number) if unit.len() < 6 && number > 0.0 => {
            let digits = format!("{:.4}", number * factor(up));
            format!("{}{unit}", digits.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text.to_owned(),
    }
}

/// Changes `key` in all places of a table.
fn change(table: &mut Table, key: &str, up: bool) {
    let (first, rest) = key.split_once('.').map_or((key, None), |(a, b)| (a, Some(b)));
    let Some(value) = table.get_mut(first) else { return };
    match (rest, value) {
        (None, value) => *value = changed(value, up),
        (Some(rest), Value::Table(inner)) => change(inner, rest, up),
        (Some(rest), Value::Array(all)) => {
            let tables = all.iter_mut().filter_map(Value::as_table_mut);
            tables.for_each(|inner| change(inner, rest, up));
        }
        _ => {}
    }
}

fn try_model(
    root: &Path,
    program: &Path,
    name: &str,
    key: &str,
    up: bool,
) -> Result<(String, Outcome), String> {
    let what = format!("{name}: {key} {}", sign(up));
    let (text, mut table) = model(root, name)?;
    change(&mut table, key, up);
    let mut new = table.to_string();
    if new.len() > text.len() {
        return Err(format!("{name}: the changed model is longer than its file"));
    }
    new.extend(std::iter::repeat_n('\n', text.len() - new.len()));
    let bytes = fs::read(program).map_err(|error| format!("{}: {error}", program.display()))?;
    let (mut copy, mut places) = (bytes.clone(), 0);
    for at in places_of(&bytes, text.as_bytes()) {
        copy[at..at + new.len()].copy_from_slice(new.as_bytes());
        places += 1;
    }
    if places == 0 {
        return Err(format!("{}: does not hold {name}", program.display()));
    }
    let scratch = program.with_file_name("quick-with-another-constant");
    let io = |error: std::io::Error| format!("{}: {error}", scratch.display());
    fs::copy(program, &scratch).map_err(io)?;
    fs::write(&scratch, copy).map_err(io)?;
    let outcome = try_program(root, &scratch);
    fs::remove_file(&scratch).map_err(io)?;
    Ok((what, outcome?))
}

fn places_of<'a>(bytes: &'a [u8], text: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let first = text[0];
    let starts = bytes.iter().enumerate().filter(move |(_, byte)| **byte == first);
    starts.map(|(at, _)| at).filter(|&at| bytes[at..].starts_with(text))
}

fn sign(up: bool) -> &'static str {
    if up { "+20 %" } else { "-20 %" }
}

/// Line (from 0) and name of the constants of a source file that are times, sizes or numbers.
fn constants(text: &str) -> impl Iterator<Item = (usize, String)> + '_ {
    text.lines().enumerate().filter_map(|(at, line)| {
        let seen = ["", "pub(super) ", "pub(crate) "];
        let rest = seen.iter().find_map(|seen| line.strip_prefix(seen)?.strip_prefix("const "))?;
        let (name, rest) = rest.split_once(':')?;
        let (kind, value) = rest.split_once('=')?;
        let kind = kind.trim();
        let is_number = ["Duration", "Bytes", "u64", "[Duration; 2]"].contains(&kind);
        (is_number && in_source(value, true) != value).then(|| (at, name.trim().to_owned()))
    })
}

/// The numbers of an expression, a fifth more or less; of a product its first factor.
fn in_source(value: &str, up: bool) -> String {
    let (mut new, mut rest) = (String::new(), value);
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let end = rest[at..]
            .find(|c: char| !c.is_ascii_digit() && c != '_')
            .map_or(rest.len(), |n| at + n);
        let number: i64 = rest[at..end].replace('_', "").parse().unwrap_or(0);
        let is_factor = new.trim_end().ends_with('*') || rest[..at].trim_end().ends_with('*');
        new.push_str(&rest[..at]);
        new.push_str(&if is_factor { number } else { integer(number, up) }.to_string());
        rest = &rest[end..];
    }
    new + rest
}

fn try_source(
    root: &Path,
    file: &str,
    line: usize,
    name: &str,
    up: bool,
) -> Result<(String, Outcome), String> {
    let path = root.join(file);
    let text = read(&path)?;
    let lines: Vec<String> = text
        .lines()
        .enumerate()
        .map(|(at, it)| match it.split_once('=') {
            Some((head, value)) if at == line => format!("{head}={}", in_source(value, up)),
            _ => it.to_owned(),
        })
        .collect();
    let write =
        |text: &str| fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()));
    write(&(lines.join("\n") + "\n"))?;
    let outcome = build(root).and_then(|program| try_program(root, &program));
    write(&text)?;
    Ok((format!("{file}: {name} {}", sign(up)), outcome?))
}

/// Builds the quick run of all experiments; where its program is.
fn build(root: &Path) -> Result<PathBuf, String> {
    let arguments = ["test", "--workspace", "--test", "quick", "--no-run", "--message-format=json"];
    let built = Command::new("cargo").args(arguments).current_dir(root).output();
    let built = built.map_err(|error| format!("cargo: {error}"))?;
    if !built.status.success() {
        return Err(String::from_utf8_lossy(&built.stderr).into_owned());
    }
    let lines = String::from_utf8_lossy(&built.stdout);
    let messages = lines.lines().filter_map(|line| serde_json::from_str::<Json>(line).ok());
    let mut programs = messages
        .filter(|it| it["target"]["name"] == "quick")
        .filter_map(|it| it["executable"].as_str().map(PathBuf::from));
    programs.next_back().ok_or_else(|| "cargo told of no program".into())
}

fn try_program(root: &Path, program: &Path) -> Result<Outcome, String> {
    let ended = Command::new(program).current_dir(root.join("crates/lab")).output();
    let ended = ended.map_err(|error| format!("{}: {error}", program.display()))?;
    let said = [ended.stdout, ended.stderr].concat();
    Ok(outcome(ended.status.success(), &String::from_utf8_lossy(&said)))
}

/// What the quick run says.
fn outcome(passed: bool, said: &str) -> Outcome {
    if passed {
        return Outcome::Unnoticed;
    }
    if said.contains(": Invalid(") || said.contains(": Syntax(") {
        return Outcome::Refused;
    }
    let Some((_, wrong)) = said.split_once("contradicted without a reason for it:\n") else {
        return Outcome::Otherwise;
    };
    let claims: Vec<&str> = wrong
        .lines()
        .take_while(|line| line.contains(" | ") || line.contains(" broke off"))
        .collect();
    Outcome::Noticed(claims.len(), claims.first().copied().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: &str = "name = \"x\"\nsource = \"2 words\"\nrpm = 7200\nseed = 3\nsettle = \"0ms\"\n\
                         seek = [[1, \"1ms\"], [9, \"2.5ms\"]]\nbus = \"51us\"\n\
                         zones = [\n{ cylinders = 10, track = 179 },\n{ cylinders = 3, track = 1 }]\n\
                         [cache]\nsegments = 5\n[cache.buffer]\nnearest = true\nsectors = 128\n";

    #[test]
    fn keys_are_those_with_numbers() {
        let table: Table = MODEL.parse().unwrap();
        let expected = [
            "bus",
            "cache.buffer.sectors",
            "cache.segments",
            "rpm",
            "seek",
            "zones.cylinders",
            "zones.track",
        ];
        assert_eq!(keys(&table), expected);
    }

    #[test]
    fn all_numbers_of_a_key_change_and_no_other() {
        let changed = |key: &str, up: bool| {
            let mut table: Table = MODEL.parse().unwrap();
            change(&mut table, key, up);
            table
        };
        assert_eq!(changed("rpm", true)["rpm"].as_integer(), Some(8640));
        assert_eq!(changed("bus", false)["bus"].as_str(), Some("40.8us"));
        assert_eq!(changed("seek", true)["seek"].to_string(), "[[1, \"1.2ms\"], [9, \"3ms\"]]");
        let zones = changed("zones.cylinders", false);
        assert_eq!(zones["zones"][0]["cylinders"].as_integer(), Some(8));
        assert_eq!(zones["zones"][1]["cylinders"].as_integer(), Some(2));
        assert_eq!(zones["zones"][0]["track"].as_integer(), Some(179));
        assert_eq!(
            changed("cache.buffer.sectors", true)["cache"]["buffer"]["sectors"].as_integer(),
            Some(154)
        );
    }

    #[test]
    fn constants_of_sources_are_found_and_changed() {
        let text = "const A: u64 = 200;\nconst B: usize = 3;\nconst C: Bytes = Bytes::kib(40);\n\
                    const D: [Duration; 2] = [Duration::from_millis(125), Duration::from_millis(250)];\n\
                    const E: Setting = Setting::new(2);\nconst F: u64 = 32 * 1024;\nconst G: u64 = A;\n";
        let names: Vec<(usize, String)> = constants(text).collect();
        let expected = [(0, "A"), (2, "C"), (3, "D"), (5, "F")];
        assert_eq!(names, expected.map(|(at, name)| (at, name.to_owned())));
        assert_eq!(in_source(" Bytes::kib(40);", false), " Bytes::kib(32);");
        assert_eq!(in_source(" 32 * 1024;", true), " 38 * 1024;");
        assert_eq!(in_source(" 1_000;", true), " 1200;");
    }

    #[test]
    fn what_the_quick_run_says_is_told_apart() {
        assert_eq!(outcome(true, ""), Outcome::Unnoticed);
        let claims = "contradicted without a reason for it:\na | b | 1\nc | d | 2\nnote: run\n";
        assert_eq!(outcome(false, claims), Outcome::Noticed(2, "a | b | 1".into()));
        assert_eq!(outcome(false, "a model: Invalid(\"skew\")"), Outcome::Refused);
        assert_eq!(outcome(false, "docs/x.md is stale"), Outcome::Otherwise);
        assert_eq!(places_of(b"abcabd", b"ab").collect::<Vec<_>>(), [0, 3]);
        let mut order = order(9, 1);
        assert_ne!(order, super::order(9, 2));
        order.sort_unstable();
        assert_eq!(order, (0..9).collect::<Vec<_>>());
    }
}
