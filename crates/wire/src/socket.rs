//! Where the sockets are, so that a program and the daemon agree without a word.

use std::path::{Path, PathBuf};

/// The control socket's path where nobody says otherwise: under `/run` for root,
/// and under the user's own runtime directory for others.
pub fn control_path(uid: u32, runtime_dir: Option<&Path>) -> PathBuf {
    let base = match (uid, runtime_dir) {
        (0, _) => PathBuf::from("/run"),
        (_, Some(dir)) if dir.is_absolute() => dir.to_owned(),
        (uid, _) => PathBuf::from(format!("/run/user/{uid}")),
    };
    base.join("slackline/slackline.sock")
}

/// The data socket beside a control socket: `x.sock` has `x.data.sock`.
pub fn data_path(control: &Path) -> PathBuf {
    control.with_extension("data.sock")
}

/// The socket of block devices beside a control socket: `x.sock` has `x.nbd.sock`.
pub fn nbd_path(control: &Path) -> PathBuf {
    control.with_extension("nbd.sock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_and_users_have_their_own_places() {
        let run = Some(Path::new("/run/user/1000"));
        let paths = [
            (control_path(0, run), "/run/slackline/slackline.sock"),
            (control_path(1000, run), "/run/user/1000/slackline/slackline.sock"),
            (control_path(7, None), "/run/user/7/slackline/slackline.sock"),
            (control_path(7, Some(Path::new(""))), "/run/user/7/slackline/slackline.sock"),
        ];
        for (got, wanted) in paths {
            assert_eq!(got, Path::new(wanted));
        }
        assert_eq!(data_path(Path::new("/a/s.sock")), Path::new("/a/s.data.sock"));
        assert_eq!(data_path(Path::new("/a/s")), Path::new("/a/s.data.sock"));
    }
}
