//! What the command reads: scenarios, and lists to plan.

use super::files;
use command::reading;
use std::path::Path;

/// What other files a text names lie beside this one, where there are none.
fn path() -> &'static Path {
    Path::new("/nonexistent/a/file.toml")
}

/// True where a text may name a file of this machine, which no test shall depend on:
/// absolute paths lead out of [`path`], and keys may be written with escapes.
fn leads_out(text: &str) -> bool {
    let has_one = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let slash = text.replace("B/s", "").replace("bit/s", "").contains('/');
    has_one(&["\\u", "\\U", "\\x"]) || (slash && has_one(&["trace", "file"]))
}

/// A scenario is taken or refused with a line.
pub fn scenario(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else { return false };
    if leads_out(text) {
        return false;
    }
    match reading::scenario(path(), text) {
        Ok(_) => true,
        Err(told) => {
            assert!(told.contains("next: ") && told.len() < 64 << 10, "{told}");
            false
        }
    }
}

pub fn scenarios() -> Vec<Vec<u8>> {
    let names = ["broken-disk", "cameras", "database", "instrument", "machines", "playout"];
    let files = files(&names.map(|name| format!("scenarios/{name}.toml")));
    // Comments lead out.
    let without = |text: String| {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| format!("{line}\n")).collect::<String>().into_bytes()
    };
    files.into_iter().filter_map(|text| String::from_utf8(text).ok()).map(without).collect()
}

/// A list to plan, and its entries in the words of the command's line.
pub fn plan(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else { return false };
    let line = text.lines().next().unwrap_or_default();
    let told = [reading::list(path(), text).err(), reading::stream(line).err()];
    assert!(told.iter().flatten().all(|told| told.contains("next: ")));
    told.contains(&None)
}

pub fn plans() -> Vec<Vec<u8>> {
    let mut all = files(&["examples/cameras.toml".into()]);
    all.push(b"name=cam,count=10,mode=write,rate=2MB/s,block=512KiB,disks=0+2,zone=outer".into());
    all.push(b"class=latency,within=30ms,every=100ms".into());
    all.push(b"class=best-effort,rate=1MB/s,period=2s".into());
    all
}
