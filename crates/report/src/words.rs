//! Figures in words, as people say them.

use std::io::ErrorKind;
use units::Duration;

/// Parts per million as a percentage with two places.
pub fn percent(ppm: u64) -> String {
    format!("{}.{:02} %", ppm / 10_000, ppm % 10_000 / 100)
}

/// A time as people say it who do not count seconds: the two largest units of it.
pub fn span(time: Duration) -> String {
    let seconds = time.as_nanos() / 1_000_000_000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// What to do where the system does not give a file for this reason.
pub fn mend_path(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "correct the path: nothing has this name",
        ErrorKind::PermissionDenied => {
            "give a path that this user may use, or change who may with `chmod` or `chown`"
        }
        ErrorKind::IsADirectory => "give the path of a file: this is a directory",
        ErrorKind::NotADirectory => "correct the path: a part of it is no directory",
        ErrorKind::ReadOnlyFilesystem => "give a path elsewhere: nothing can be written there",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "make room there, or give another path"
        }
        ErrorKind::AlreadyExists => "give another path, or remove what is there first",
        _ => "give another path; the kernel's log may say more",
    }
}

/// A number with what it counts.
pub fn counted(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// An argument for a shell: a name that others chose is nothing but a name there.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._/@:+=,%".contains(c);
    match text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// How a command is told which stream on this volume is meant: by the volume, since a stream that is
/// opened again has another number. A name that is a number would be taken for a stream's.
pub fn stream_on(volume: &str, stream: u64) -> String {
    match volume.parse::<u64>() {
        Ok(_) => stream.to_string(),
        Err(_) => quoted(volume),
    }
}

/// A text that others chose, on one line and without orders for a terminal: control characters are
/// escaped.
pub fn plain(text: &str) -> String {
    let escaped = |c: char| match c.is_control() {
        true => c.escape_default().collect::<String>(),
        false => c.to_string(),
    };
    text.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_chose_is_no_command_and_no_order_for_a_terminal() {
        assert_eq!(quoted("cam1"), "cam1");
        assert_eq!(quoted("x; reboot #it's"), r"'x; reboot #it'\''s'");
        assert_eq!(plain("a\u{1b}[2J\nb ü"), r"a\u{1b}[2J\nb ü");
    }

    #[test]
    fn long_times_are_told_in_their_two_largest_units() {
        let told = |seconds| span(Duration::from_secs(seconds));
        assert_eq!([told(0), told(59), told(60)], ["0 s", "59 s", "1 min 0 s"]);
        assert_eq!([told(3_599), told(3_600)], ["59 min 59 s", "1 h 0 min"]);
        assert_eq!([told(86_399), told(90_000)], ["23 h 59 min", "1 d 1 h"]);
    }

    #[test]
    fn shares_and_counts_are_words() {
        assert_eq!(percent(1_023_456), "102.34 %");
        assert_eq!((counted(1, "disk"), counted(0, "disk")), ("1 disk".into(), "0 disks".into()));
    }
}
