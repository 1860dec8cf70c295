//! Other users: a test of the same program, run by somebody else in a process of its own.
#![allow(dead_code)] // each test file uses its part

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// A user that no system has, with his groups, the first of them his own.
#[derive(Clone, Copy, Debug)]
pub struct User {
    pub uid: u32,
    pub groups: &'static [u32],
}

/// Runs the test `name` of this program as `user`, who may pass through `dir`; gives what
/// it said. It must say "all tried".
pub fn run_as(user: User, dir: &Path, name: &str, variables: &[(&str, &str)]) -> String {
    let program = dir.join("program");
    if !program.exists() {
        // Where everybody may read and run it.
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    }
    for path in [&program, dir] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let groups: Vec<String> = user.groups.iter().map(ToString::to_string).collect();
    let output = Command::new("setpriv")
        .args(["--reuid", &user.uid.to_string(), "--regid", &groups[0]])
        .args(["--groups", &groups.join(",")])
        .arg(&program)
        .args(["--exact", name, "--nocapture"])
        .envs(variables.iter().copied())
        .current_dir("/")
        .output()
        .expect("setpriv, of util-linux");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("all tried"), "{said}\n{complained}");
    said
}
