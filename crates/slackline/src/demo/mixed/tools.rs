//! Programs of others that the scene runs, and what they leave to undo.

use super::super::{failed, folder};
use crate::failure::Failure;
use report::quoted;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A file that a program promised is there within this time, or the program has failed.
const APPEARS_WITHIN: Duration = Duration::from_secs(20);

/// What is here.
pub struct Tools {
    /// Where PostgreSQL's programs are, which Debian keeps off the path.
    pub postgres: PathBuf,
}

impl Tools {
    /// # Errors
    /// Says what is missing, and how to get it.
    pub fn find(fs: FileSystem) -> Result<Self, Failure> {
        if !rustix::process::geteuid().is_root() {
            return Err(Failure::usage("it attaches and mounts devices", "run it as root"));
        }
        for device in ["/dev/fuse", "/dev/loop-control"] {
            if !Path::new(device).exists() {
                let what = format!("{device} is not there");
                return Err(Failure::new(
                    what,
                    "modprobe fuse loop, or use a machine that has them",
                ));
            }
        }
        let there = |name: &str| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let mut folders =
                std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
            folders.any(|folder| folder.join(name).exists())
        };
        let needs = [
            ("nbdfuse", "nbdfuse"),
            fs.made_by(),
            ("losetup", "mount"),
            ("runuser", "util-linux"),
            ("tar", "tar"),
        ];
        let mut missing: Vec<&str> =
            needs.iter().filter(|(name, _)| !there(name)).map(|(_, package)| *package).collect();
        let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let postgres = versions.map(|version| version.path().join("bin"));
        let postgres = postgres.filter(|bin| bin.join("pgbench").exists()).max();
        if postgres.is_none() {
            missing.push("postgresql");
        }
        match postgres {
            Some(postgres) if missing.is_empty() => Ok(Self { postgres }),
            _ => Err(Failure::new(
                format!("packages are missing: {}", missing.join(" ")),
                format!("apt-get install -y --no-install-recommends {}", missing.join(" ")),
            )),
        }
    }
}

/// Runs a program to its end; what it printed.
pub fn run<A: AsRef<OsStr>>(program: &str, arguments: &[A]) -> Result<String, Failure> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(format!("{program}: {error}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let last: Vec<&str> = said.trim().lines().rev().take(4).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    Err(failed(format!("{program}: {}", last.join("; "))))
}

/// Lets the database's user pass.
pub fn open_to_all(folder: &Path) -> Result<(), Failure> {
    let mode = std::fs::Permissions::from_mode(0o711);
    std::fs::set_permissions(folder, mode).map_err(|error| Failure::file(folder, &error))
}

/// Waits until a file is there.
pub fn wait_for(path: &Path) -> Result<(), Failure> {
    let began = Instant::now();
    while !path.exists() {
        if began.elapsed() > APPEARS_WITHIN {
            return Err(failed(format!("{} does not appear", path.display())));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Makes a directory in the demo's folder.
pub fn directory(folder: &Path, name: &str) -> Result<PathBuf, Failure> {
    let path = folder.join(name);
    std::fs::create_dir_all(&path).map_err(|error| Failure::file(&path, &error))?;
    Ok(path)
}

/// A file as a loop device.
pub fn attach(folder: &Path, file: &Path) -> Result<String, Failure> {
    let file = file.display().to_string();
    let device = run("losetup", &["--find", "--show", "--direct-io=on", &file])?;
    folder::undo(folder, &format!("losetup --detach {device}"))?;
    Ok(device)
}

/// What the kernel makes of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FileSystem {
    Ext4,
    Xfs,
}

impl FileSystem {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }

    /// By which program, of which package.
    fn made_by(self) -> (&'static str, &'static str) {
        match self {
            Self::Ext4 => ("mkfs.ext4", "e2fsprogs"),
            Self::Xfs => ("mkfs.xfs", "xfsprogs"),
        }
    }

    /// What is written when it is made is written then, and nothing is discarded.
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Ext4 => &["-q", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"],
            Self::Xfs => &["-q", "-f", "-K"],
        }
    }
}

/// An empty file system on a device, mounted.
pub fn make_fs(
    fs: FileSystem,
    folder: &Path,
    device: &str,
    name: &str,
) -> Result<PathBuf, Failure> {
    let path = directory(folder, name)?;
    run(fs.made_by().0, &[fs.options(), &[device]].concat())?;
    let at = path.display().to_string();
    run("mount", &[device, &at])?;
    folder::undo(folder, &format!("umount {0} || umount --lazy {0}", quoted(&at)))?;
    Ok(path)
}

/// What the kernel keeps of files is written, and forgotten.
pub fn forget_cached() -> Result<(), Failure> {
    rustix::fs::sync();
    let path = Path::new("/proc/sys/vm/drop_caches");
    std::fs::write(path, "3").map_err(|error| Failure::file(path, &error))
}
