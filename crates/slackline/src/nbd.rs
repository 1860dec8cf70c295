//! `slackline nbd`: how a volume is attached as a block device.

use crate::Common;
use crate::failure::Failure;
use client::control::Priority;
use report::quoted;
use serde::Serialize;
use std::path::Path;
use units::Bytes;

/// Say how to attach a volume as a block device
///
/// Prints the lines to run; changes nothing. Filesystems, databases and virtual machines use
/// the device as any other disk, and the volume's contract (`slackline volume set`) holds for
/// what they ask.
#[derive(clap::Args)]
pub struct Args {
    /// The volume
    #[arg(value_name = "VOLUME")]
    volume: String,
    /// A device that cannot be written to
    #[arg(long)]
    read_only: bool,
    /// Who goes first among those without a contract
    #[arg(long, value_name = "PRIORITY", value_enum)]
    priority: Option<crate::volume::PriorityArg>,
}

/// The packages of Debian with the programs that attach.
const NBD_CLIENT: &str = "nbd-client";
/// See [`NBD_CLIENT`].
const NBDFUSE: &str = "nbdfuse";

/// How a volume is attached.
#[derive(Serialize)]
struct Attach {
    volume: String,
    size_bytes: u64,
    /// The export's name.
    export: String,
    socket: String,
    uri: String,
    /// The lines to run, one after the other.
    attach: Vec<String>,
    /// And to let it go.
    detach: Vec<String>,
}

/// Runs it.
pub fn run(args: &Args, common: &Common) -> Result<(), Failure> {
    let client = common.client()?;
    let volume = client.volume(&args.volume)?;
    if volume.ring.is_some() {
        let what =
            format!("volume {} is a ring, and no block device: its offsets grow", volume.name);
        let next = "play it, or read it over HTTP or through `slackline mount`";
        return Err(Failure::new(what, next));
    }
    let socket = std::path::absolute(wire::socket::nbd_path(&common.socket()))
        .map_err(|error| Failure::new(format!("the socket's path: {error}"), "use --socket"))?;
    let priority = args.priority.map(|priority| match Priority::from(priority) {
        Priority::Interactive => "@interactive",
        Priority::Normal => "@normal",
        Priority::Background => "@background",
    });
    let words: Vec<_> = args.read_only.then_some("@ro").into_iter().chain(priority).collect();
    let mut other = volume.name.clone();
    let is_others = words.iter().any(|word| {
        other.push_str(word);
        client.volume(&other).is_ok()
    });
    // Where another volume might be meant by its name, the number says which.
    let name = match is_others || volume.name.contains('@') {
        true => volume.by_number(),
        false => volume.name.clone(),
    };
    let export = name + &words.concat();
    let device = free_device(Path::new("/sys/block"));
    let answer = attach(volume.name, volume.size_bytes, export, &socket, device);
    common.output().result(&answer, |answer| {
        let uri = &answer.uri;
        let mut text = format!(
            "volume {}, {}, is the block device {uri}\n",
            answer.volume,
            Bytes::new(answer.size_bytes)
        );
        let by = if answer.attach.len() > 1 { NBDFUSE } else { NBD_CLIENT };
        text += &format!("attach it, as root (package `{by}`):\n");
        answer.attach.iter().for_each(|line| text += &format!("  {line}\n"));
        text += "and let it go, once nothing on it is mounted any more:\n";
        answer.detach.iter().for_each(|line| text += &format!("  {line}\n"));
        text
    })
}

/// The first device of the kernel's own client that nobody uses, where the kernel has it.
fn free_device(blocks: &Path) -> Option<u32> {
    let devices = (0..).map(|number| (number, blocks.join(format!("nbd{number}"))));
    let mut there = devices.take_while(|(_, device)| device.exists());
    Some(there.find(|(_, device)| !device.join("pid").exists())?.0)
}

/// By the kernel's own client where the kernel has it, else by FUSE and a loop device.
fn attach(
    volume: String,
    size: Bytes,
    export: String,
    socket: &Path,
    device: Option<u32>,
) -> Attach {
    let socket = socket.display().to_string();
    let uri = format!("nbd+unix:///{}?socket={}", percent(&export), percent(&socket));
    let (attach, detach) = match device {
        Some(device) => {
            let (socket, export) = (quoted(&socket), quoted(&export));
            let attach = format!("nbd-client -unix {socket} -N {export} /dev/nbd{device}");
            (vec![attach], vec![format!("nbd-client -d /dev/nbd{device}")])
        }
        None => {
            let folder = quoted(&format!("/run/slackline-{volume}"));
            let attach = vec![
                format!("mkdir -p {folder}"),
                format!("nbdfuse {folder} {} &", quoted(&uri)),
                format!("losetup --find --show --direct-io=on {folder}/nbd"),
            ];
            let detach = vec![
                format!("losetup --detach $(losetup --noheadings -O NAME -j {folder}/nbd)"),
                format!("umount {folder}"),
            ];
            (attach, detach)
        }
    };
    Attach { volume, size_bytes: size.get(), export, socket, uri, attach, detach }
}

/// A part of a URI: what is no letter, digit or one of a few signs as `%XX`.
fn percent(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/@".contains(&byte);
    let one = |byte: u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_spaces_and_quotes_reach_the_shell_and_the_uri_whole() {
        let socket = Path::new("/tmp/it's a place/s.nbd.sock");
        let with = |device| attach("v".into(), Bytes::MIB, "v@ro".into(), socket, device);
        let kernel = with(Some(3));
        let line = r"nbd-client -unix '/tmp/it'\''s a place/s.nbd.sock' -N v@ro /dev/nbd3";
        assert_eq!(kernel.attach, [line]);
        let uri = "nbd+unix:///v@ro?socket=/tmp/it%27s%20a%20place/s.nbd.sock";
        assert_eq!(kernel.uri, uri);
        assert_eq!(with(None).attach[1], format!("nbdfuse /run/slackline-v '{uri}' &"));
    }
}
