//! Which format a trace is in, told from its begin.

use super::{Format, blkparse, msr, spc, srt};

/// So many lines are looked at before the format is given up on.
const LINES: usize = 20;

/// The format of a trace that begins with `head`, where it is one that is known. A few
/// hundred bytes are enough.
pub fn detect(head: &[u8]) -> Option<Format> {
    if head.starts_with(srt::MAGIC) {
        return Some(Format::Srt);
    }
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // The buffer may end within a character.
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default(),
    };
    text.lines().map(str::trim).filter(|line| !line.is_empty()).take(LINES).find_map(of_line)
}

fn of_line(line: &str) -> Option<Format> {
    if line == "fio version 2 iolog" || line == "fio version 3 iolog" {
        return Some(Format::FioIolog);
    }
    if line.starts_with("Timestamp,Hostname,") {
        return Some(Format::Msr);
    }
    let number = |text: &&str| text.trim().parse::<f64>().is_ok_and(|it| it >= 0.0);
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    if words.len() >= 6 && blkparse::is_device(words[0]) && words[1..5].iter().all(number) {
        return Some(Format::Blkparse);
    }
    let fields: Vec<&str> = line.split(',').collect();
    if fields.len() == 7 && msr::direction(fields[3]).is_some() && number(&fields[0]) {
        return Some(Format::Msr);
    }
    let numbers = fields.iter().take(3).filter(|it| number(it)).count() == 3;
    (fields.len() >= 5 && numbers && spc::direction(fields[3]).is_some() && number(&fields[4]))
        .then_some(Format::Spc)
}
