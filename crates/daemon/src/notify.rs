//! Word to the service manager (systemd's notification protocol): ready,
//! stopping, alive. Without a service manager, nothing.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Tells the service manager, if there is one, for example `READY=1`.
pub fn tell(state: &str) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else { return };
    if let Err(error) = send(&socket, state) {
        tracing::error!("the service manager at {} cannot be told: {error}", socket.display());
    }
}

/// A name with a leading `@` is in the abstract namespace.
fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    let socket = UnixDatagram::unbound()?;
    // A manager that does not listen must not keep anybody waiting who has to hear that he shall stop.
    socket.set_nonblocking(true)?;
    socket.send_to_addr(state.as_bytes(), &address).map(drop)
}

/// How often the service manager wants to hear `WATCHDOG=1`: half of its
/// patience, as its manual advises. None where it does not.
pub fn watchdog_interval() -> Option<Duration> {
    let own = std::process::id().to_string();
    if std::env::var("WATCHDOG_PID").is_ok_and(|pid| pid != own) {
        return None;
    }
    let patience: u64 = std::env::var("WATCHDOG_USEC").ok()?.parse().ok()?;
    (patience > 0).then(|| Duration::from_micros(patience / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_manager_that_does_not_listen_is_not_waited_for() {
        let dir = tempfile::Builder::new().prefix("slackline-").tempdir().unwrap();
        let path = dir.path().join("s");
        let _manager = UnixDatagram::bind(&path).unwrap();
        let is_full = |error: io::Error| error.kind() == io::ErrorKind::WouldBlock;
        while !send(path.as_os_str(), "WATCHDOG=1").is_err_and(is_full) {}
    }

    #[test]
    fn the_service_manager_hears_it_at_a_path_and_at_an_abstract_name() {
        let dir = tempfile::Builder::new().prefix("slackline-").tempdir().unwrap();
        let path = dir.path().join("s");
        let by_path = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), "READY=1").unwrap();
        let name = path.display().to_string(); // nobody else's
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let by_name = UnixDatagram::bind_addr(&address).unwrap();
        send(OsStr::new(&format!("@{name}")), "STOPPING=1").unwrap();
        for (socket, wanted) in [(by_path, "READY=1"), (by_name, "STOPPING=1")] {
            let mut heard = [0; 64];
            let len = socket.recv(&mut heard).unwrap();
            assert_eq!(&heard[..len], wanted.as_bytes());
        }
    }
}
