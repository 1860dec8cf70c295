//! The libraries as `scripts/install-clients` lays them down, built once for all tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Where cargo puts what it builds in the profile of this test.
pub fn built() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_slackline")).parent().unwrap()
}

/// The prefix under which everything is installed.
pub fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        build();
        let prefix = built().join("installed-clients");
        let script = root().join("scripts/install-clients");
        run(Command::new(script).arg(&prefix).arg(built()));
        prefix
    })
}

/// Builds the libraries and the examples in Rust in the profile and at the place of this test, with all that the
/// tests need: with these alone much would be built again, with other features. `make test` has done so before,
/// since cargo lets nobody in while it builds something else, and says so in `SLACKLINE_BUILT`.
fn build() {
    if std::env::var_os("SLACKLINE_BUILT").is_some() {
        return;
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root()).args(["build", "--quiet", "--offline", "--workspace"]);
    cargo.args(["--lib", "--bins", "--tests", "--examples"]);
    cargo.arg("--target-dir").arg(built().parent().unwrap());
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    run(&mut cargo);
}

/// Compiles a program in C against the installed library; gives its path.
pub fn compile(source: &Path, dir: &Path) -> PathBuf {
    let program = dir.join(source.file_stem().unwrap());
    let flags = run(pkg_config().args(["--cflags", "--libs", "slackline"]));
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1"]).arg(source).arg("-o").arg(&program);
    cc.args(flags.split_whitespace());
    cc.arg(format!("-Wl,-rpath,{}", prefix().join("lib").display()));
    run(&mut cc);
    program
}

/// pkg-config, with the installed library to be found.
pub fn pkg_config() -> Command {
    let mut command = Command::new("pkg-config");
    command.env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
    command
}

/// Standard output of a command that must succeed.
#[track_caller]
pub fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (output.stdout, String::from_utf8_lossy(&output.stderr).into_owned());
    assert!(output.status.success(), "{command:?}: {err}");
    String::from_utf8(out).unwrap()
}
