//! Which of the lines that a command says is news: each once, and not too many. Pure: time is an argument.
//!
//! Invariant: what is kept is bounded, whatever a command says.

use super::limits::{KNOWN, TOLD_MAX, TOLD_WITHIN, UNPLAYABLE_MAX};
use std::collections::VecDeque;
use units::Duration;

/// What ffmpeg says once, when it begins, of a codec that MPEG-TS has no name for; and then it goes on.
const UNPLAYABLE: &str = "is muxed as a private data stream";

/// The lines of one command that were told.
#[derive(Debug, Default)]
pub struct Hearing {
    known: VecDeque<String>,
    told: VecDeque<Duration>,
    codecs: Vec<String>,
}

impl Hearing {
    /// Whether this line, which came at `now`, is to be told: where no line like it is known, and few were
    /// told lately.
    pub fn is_news(&mut self, line: &str, now: Duration) -> bool {
        let like = without_numbers(line);
        if like.is_empty() || self.known.contains(&like) {
            return false;
        }
        while self.told.front().is_some_and(|at| now.saturating_sub(*at) >= TOLD_WITHIN) {
            self.told.pop_front();
        }
        if self.told.len() == TOLD_MAX {
            return false;
        }
        self.told.push_back(now);
        if self.known.len() == KNOWN {
            self.known.pop_front();
        }
        self.known.push_back(like);
        true
    }

    /// Whether this is to be told: each codec once.
    pub fn is_new(&mut self, found: &Unplayable) -> bool {
        let is_new = self.codecs.len() < UNPLAYABLE_MAX && !self.codecs.contains(&found.codec);
        if is_new {
            self.codecs.push(found.codec.clone());
        }
        is_new
    }
}

/// Lines that differ in their numbers alone are alike: an address in memory, a time, a count.
fn without_numbers(line: &str) -> String {
    let mut like = String::new();
    for word in line.split_whitespace() {
        let is_number = word.contains(|c: char| c.is_ascii_digit());
        like.push_str(if is_number { "#" } else { word });
        like.push(' ');
    }
    like
}

/// Something that a command records, and players do not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unplayable {
    /// The codec, as ffmpeg calls it.
    pub codec: String,
    /// What ffmpeg is to make of it.
    output: &'static str,
}

impl Unplayable {
    /// What this line says of that.
    pub fn of(line: &str) -> Option<Self> {
        let before = &line[..line.find(UNPLAYABLE)?];
        let codec = before.rsplit_once("codec ")?.1.trim_end_matches([' ', ',']).to_owned();
        let is_sound = ["pcm_", "adpcm_", "g723", "g726", "g728", "g729", "gsm", "speex", "vorbis"];
        let output = match is_sound.iter().any(|sound| codec.starts_with(sound)) {
            true => r#"["-c:v", "copy", "-c:a", "aac"]"#,
            false => r#"["-c:v", "libx264", "-preset", "veryfast", "-c:a", "aac"]"#,
        };
        Some(Self { codec, output })
    }

    /// In words.
    pub fn what(&self) -> String {
        let codec = &self.codec;
        format!(
            "what it gives as {codec} is recorded so that players will not know it: MPEG-TS has no {codec}"
        )
    }

    /// What to do about it.
    pub fn next(&self) -> String {
        let output = self.output;
        format!(
            "have it encoded: `output = {output}` for this camera in the file, and start this again"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_told_once_whatever_its_numbers_are() {
        let mut hearing = Hearing::default();
        let mut told = |line: &str| hearing.is_news(line, Duration::ZERO);
        assert!(told("[mpegts @ 0x55b92106b840] Timestamps are unset in a packet for stream 0"));
        assert!(!told("[mpegts @ 0x7f0011223344] Timestamps are unset in a packet for stream 1"));
        assert!(told("[mpegts @ 0x7f0011223344] Non-monotonous DTS"));
        assert!(!told("  "));
    }

    #[test]
    fn a_command_that_never_repeats_itself_is_not_told_without_end() {
        let mut hearing = Hearing::default();
        let letters = |n: usize| format!("{}x", "y".repeat(n));
        let mut told = |from: usize, at: Duration| {
            (from..from + 50).filter(|n| hearing.is_news(&letters(*n), at)).count()
        };
        assert_eq!(told(0, Duration::ZERO), TOLD_MAX);
        assert_eq!(told(100, TOLD_WITHIN / 2), 0);
        assert_eq!(told(200, TOLD_WITHIN), TOLD_MAX);
        for n in 0..20 {
            told(1_000 * n, TOLD_WITHIN * (n as u64 + 2));
        }
        assert_eq!(hearing.known.len(), KNOWN);
    }

    #[test]
    fn what_players_do_not_know_is_told_with_what_to_encode_it_as() {
        let said = |codec: &str| {
            format!(
                "[mpegts @ 0x55b92106b840] Stream 0, codec {codec}, is muxed as a private data stream and may \
                 not be recognized upon reading."
            )
        };
        for (codec, output) in
            [("mjpeg", r#""-c:v", "libx264""#), ("pcm_alaw", r#""-c:v", "copy", "-c:a", "aac""#)]
        {
            let found = Unplayable::of(&said(codec)).unwrap();
            assert_eq!(found.codec, codec);
            assert!(found.what().contains(codec) && found.next().contains(output), "{found:?}");
        }
        assert_eq!(Unplayable::of("Stream 0, codec h264"), None);
    }
}
