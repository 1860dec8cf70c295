//! A real video, made and compared with ffmpeg: what plays frame for frame the
//! same has come back whole in the only sense that its viewer cares about.

use super::failed;
use crate::failure::Failure;
use std::path::Path;
use std::process::Command;

/// Where ffmpeg comes from, for those who do not have it.
const INSTALL: &str = "install it: apt-get install -y ffmpeg (as root)";

/// Frames per second of the test picture.
const FRAMES_PER_SECOND: u64 = 25;

/// Says so, with the line to run, where ffmpeg or ffprobe is missing.
pub fn require_tools() -> Result<(), Failure> {
    for tool in ["ffmpeg", "ffprobe"] {
        run(Command::new(tool).arg("-version"))?;
    }
    Ok(())
}

/// Makes a video of `seconds`: a moving test picture and a tone, about 4 Mbit/s.
pub fn make(path: &Path, seconds: u64) -> Result<(), Failure> {
    let picture = format!("testsrc2=size=640x360:rate={FRAMES_PER_SECOND}:duration={seconds}");
    let tone = format!("sine=frequency=440:duration={seconds}");
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(["-v", "error", "-nostdin", "-y"]);
    ffmpeg.args(["-f", "lavfi", "-i", &picture, "-f", "lavfi", "-i", &tone]);
    ffmpeg.args(["-c:v", "mpeg4", "-q:v", "2", "-c:a", "aac", "-f", "matroska"]);
    run(ffmpeg.arg(path)).map(drop)
}

/// What a player makes of a video.
pub struct Frames {
    /// Frames of the picture, counted by decoding them.
    pub count: u64,
    /// A hash of every decoded frame, picture and sound, one a line.
    pub hashes: String,
}

/// Decodes the video at `path` from end to end.
pub fn frames(path: &Path) -> Result<Frames, Failure> {
    let mut probe = Command::new("ffprobe");
    probe.args(["-v", "error", "-select_streams", "v:0", "-count_frames"]);
    probe.args(["-show_entries", "stream=nb_read_frames", "-of", "csv=p=0"]).arg(path);
    let counted = run(&mut probe)?;
    let count = counted.trim().trim_end_matches(',').parse();
    let count = count.map_err(|_| failed(format!("ffprobe counted `{counted}` frames")))?;
    let mut decode = Command::new("ffmpeg");
    decode.args(["-v", "error", "-nostdin", "-i"]).arg(path).args(["-f", "framemd5", "-"]);
    Ok(Frames { count, hashes: run(&mut decode)? })
}

/// Compares a video with its original frame for frame; gives the number of
/// frames, or what is wrong.
pub fn compare(original: &Frames, back: &Frames) -> Result<u64, String> {
    if original.count != back.count {
        return Err(format!("the video has {} frames, {} came back", original.count, back.count));
    }
    let mut pairs = original.hashes.lines().zip(back.hashes.lines());
    if let Some((was, is)) = pairs.find(|(was, is)| was != is) {
        return Err(format!("a frame came back changed: {was} became {is}"));
    }
    if original.hashes.len() != back.hashes.len() || original.count == 0 {
        return Err("the video came back with other frames than it had".into());
    }
    Ok(original.count)
}

/// Standard output of a tool, or a failure that names it.
fn run(command: &mut Command) -> Result<String, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Failure::new(format!("{name} is not on the path"), INSTALL),
        _ => failed(format!("{name}: {error}")),
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(failed(format!("{name}: {}", said.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(count: u64, hashes: &str) -> Frames {
        Frames { count, hashes: hashes.into() }
    }

    #[test]
    fn a_lost_or_changed_frame_is_found() {
        let original = frames(2, "0, a\n0, b\n");
        assert!(compare(&original, &frames(2, "0, a\n0, b\n")).is_ok());
        for back in [frames(1, "0, a\n"), frames(2, "0, a\n0, c\n"), frames(2, "0, a\n")] {
            assert!(compare(&original, &back).is_err());
        }
        assert!(compare(&frames(0, ""), &frames(0, "")).is_err(), "no frame is no video");
    }

    #[test]
    fn a_missing_tool_is_named_with_the_line_that_installs_it() {
        let failure = run(&mut Command::new("no-such-ffmpeg")).unwrap_err();
        assert_eq!(failure.what, "no-such-ffmpeg is not on the path");
        assert!(failure.next_step.contains("apt-get install"));
    }
}
