//! The packages of the workspace and all they depend on, from `cargo metadata`.
//!
//! Invariant: `uses` holds normal and build dependencies only. What a test uses
//! ships to nobody, so dev-dependencies are outside every rule but licences.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// One package, ours or not.
#[derive(Clone, Debug, Default)]
pub struct Package {
    /// The package's name in its manifest.
    pub name: String,
    /// For a member in `crates/`: the name of its folder.
    pub room: Option<String>,
    /// The licence expression; none where the manifest has none.
    pub licence: Option<String>,
    /// The file that its library starts with; none for a procedural macro,
    /// which runs in the compiler and is not linked.
    pub library: Option<String>,
    /// Indices into [`Workspace::packages`].
    pub uses: Vec<usize>,
}

/// The dependency graph for this machine's platform, with all features on.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    /// In no particular order.
    pub packages: Vec<Package>,
}

impl Workspace {
    /// Asks cargo, without the network: a build has fetched all that is needed.
    pub fn load(root: &Path) -> Result<Self, String> {
        let host = stdout_of(Command::new("rustc").arg("-vV"))?;
        let host = host.lines().find_map(|line| line.strip_prefix("host: "));
        let host = host.ok_or("rustc -vV names no host")?;
        let json = stdout_of(
            Command::new("cargo")
                .args(["metadata", "--format-version=1", "--all-features", "--offline"])
                .args(["--filter-platform", host])
                .current_dir(root),
        )
        .map_err(|error| format!("{error}\nrun `cargo fetch` once, then again"))?;
        let root = root.canonicalize().map_err(|error| format!("{}: {error}", root.display()))?;
        Self::parse(&json, &root.to_string_lossy())
    }

    /// The features of all packages that are linked into `package` when it is
    /// built alone, one package a line: `name vX.Y.Z|feature,feature`.
    pub fn features(root: &Path, package: &str) -> Result<String, String> {
        let tree = ["tree", "--offline", "--all-features", "--prefix=none", "--no-dedupe"];
        let what = ["--edges=normal,no-proc-macro", "--format={p}|{f}", "--package", package];
        stdout_of(Command::new("cargo").args(tree).args(what).current_dir(root))
    }

    /// Reads the output of `cargo metadata` for a workspace at `root`.
    pub fn parse(json: &str, root: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(json).map_err(|e| format!("metadata: {e}"))?;
        let mut packages: Vec<Package> = Vec::new();
        let mut numbers = BTreeMap::new();
        for package in array(&value["packages"]) {
            numbers.insert(text(&package["id"])?, packages.len());
            packages.push(Package {
                name: text(&package["name"])?.into(),
                room: room(text(&package["manifest_path"])?, root),
                licence: package["license"].as_str().map(Into::into),
                library: library(&package["targets"]),
                uses: Vec::new(),
            });
        }
        for node in array(&value["resolve"]["nodes"]) {
            let user = numbers[text(&node["id"])?];
            for used in array(&node["deps"]) {
                let ships = array(&used["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev");
                if ships {
                    packages[user].uses.push(numbers[text(&used["pkg"])?]);
                }
            }
        }
        Ok(Self { packages })
    }

    /// The members that live in `crates/`, as (room, package).
    pub fn rooms(&self) -> impl Iterator<Item = (&str, &Package)> {
        self.packages.iter().filter_map(|p| Some((p.room.as_deref()?, p)))
    }

    /// The packages that `package` names in its manifest.
    pub fn uses<'a>(&'a self, package: &'a Package) -> impl Iterator<Item = &'a Package> {
        package.uses.iter().map(|&used| &self.packages[used])
    }
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| format!("metadata: expected a string, found {value}"))
}

/// The source of the target that others link, if there is one.
fn library(targets: &Value) -> Option<String> {
    let is_library =
        |target: &&Value| array(&target["kind"]).iter().any(|kind| kind == "lib" || kind == "rlib");
    array(targets).iter().find(is_library)?["src_path"].as_str().map(Into::into)
}

/// `crates/X/Cargo.toml` under `root` is the room `X`.
fn room(manifest: &str, root: &str) -> Option<String> {
    let inside = manifest.strip_prefix(root)?.strip_prefix("/crates/")?;
    let room = inside.strip_suffix("/Cargo.toml")?;
    (!room.contains('/')).then(|| room.into())
}

/// Standard output of `command`, or its standard error as the error.
pub fn stdout_of(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim_end()));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{name}: output is not text"))
}

/// Small graphs for the tests of rules.
#[cfg(test)]
pub fn planted(packages: &[(&str, Option<&str>, &[usize])]) -> Workspace {
    let package = |&(name, licence, uses): &(&str, Option<&str>, &[usize])| Package {
        name: name.rsplit('/').next().unwrap_or(name).into(),
        room: name.strip_prefix("crates/").map(Into::into),
        licence: licence.map(Into::into),
        library: Some(format!("{name}/src/lib.rs")),
        uses: uses.to_vec(),
    };
    Workspace { packages: packages.iter().map(package).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_gives_rooms_and_shipped_edges_only() {
        let json = r#"{
            "packages": [
                {"id": "a", "name": "x-sched", "manifest_path": "/r/crates/sched/Cargo.toml",
                 "license": "MIT", "targets": [
                    {"kind": ["test"], "src_path": "/r/t.rs"},
                    {"kind": ["lib"], "src_path": "/r/crates/sched/src/lib.rs"}]},
                {"id": "b", "name": "x-units", "manifest_path": "/r/crates/units/Cargo.toml",
                 "license": null, "targets": [{"kind": ["proc-macro"], "src_path": "/r/m.rs"}]},
                {"id": "c", "name": "serde", "manifest_path": "/c/serde/Cargo.toml",
                 "license": "MIT OR Apache-2.0"}],
            "resolve": {"nodes": [
                {"id": "a", "deps": [
                    {"pkg": "b", "dep_kinds": [{"kind": null}, {"kind": "dev"}]},
                    {"pkg": "c", "dep_kinds": [{"kind": "dev"}]}]}]}}"#;
        let workspace = Workspace::parse(json, "/r").unwrap();
        let rooms: Vec<_> = workspace.rooms().map(|(room, _)| room).collect();
        assert_eq!(rooms, ["sched", "units"]);
        let used: Vec<_> = workspace.uses(&workspace.packages[0]).map(|p| &*p.name).collect();
        let libraries: Vec<_> = workspace.packages.iter().map(|p| p.library.as_deref()).collect();
        assert_eq!(libraries, [Some("/r/crates/sched/src/lib.rs"), None, None]);
        assert_eq!(used, ["x-units"], "what only tests use is not shipped");
        assert!(Workspace::parse("{}", "/r").unwrap().packages.is_empty());
        assert!(Workspace::parse("no json", "/r").is_err());
    }
}
