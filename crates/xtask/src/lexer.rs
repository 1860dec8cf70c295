//! Rust source split into its code and its comments.
//!
//! Both halves keep the length and the lines of the source, with blanks where
//! the other half (or a literal) stood, so that a rule can look for a word in
//! code without finding it in a string, and tell the line. Not a parser: it
//! knows strings, raw strings, characters, lifetimes and nested comments.

/// The two halves of a source text.
pub struct Halves {
    /// Everything but comments and the insides of literals.
    pub code: String,
    /// The comments alone, with their markers.
    pub comments: String,
}

#[derive(Clone, Copy)]
enum Part {
    Code,
    Comment,
    Literal,
}

/// Splits `source`. Never fails: what is no Rust comes out as code.
pub fn split(source: &str) -> Halves {
    let text: Vec<char> = source.chars().collect();
    let mut halves = Halves { code: String::new(), comments: String::new() };
    let mut at = 0;
    while at < text.len() {
        let (part, end) = next_part(&text, at);
        for &c in &text[at..end] {
            let blank = if c == '\n' { '\n' } else { ' ' };
            let (code, comment) = match part {
                Part::Code => (c, blank),
                Part::Comment => (blank, c),
                Part::Literal => (blank, blank),
            };
            halves.code.push(code);
            halves.comments.push(comment);
        }
        at = end;
    }
    halves
}

/// The part that starts at `at`, and where it ends; always moves on.
fn next_part(text: &[char], at: usize) -> (Part, usize) {
    let next = text.get(at + 1).copied();
    match (text[at], next) {
        ('/', Some('/')) => (Part::Comment, find(text, at, |c| c == '\n')),
        ('/', Some('*')) => (Part::Comment, block_comment_end(text, at)),
        ('"', _) => (Part::Literal, quoted_end(text, at, '"')),
        ('\'', Some('\\')) => (Part::Literal, quoted_end(text, at, '\'')),
        ('\'', Some(_)) if text.get(at + 2) == Some(&'\'') => (Part::Literal, at + 3),
        ('r', Some('"' | '#')) if !follows_word(text, at) => match raw_string_end(text, at) {
            Some(end) => (Part::Literal, end),
            None => (Part::Code, at + 1),
        },
        // `br"…"` and `cr"…"`: the prefix is code, the raw string follows it.
        ('b' | 'c', Some('r')) if !follows_word(text, at) => match raw_string_end(text, at + 1) {
            Some(end) => (Part::Literal, end),
            None => (Part::Code, at + 1),
        },
        _ => (Part::Code, at + 1),
    }
}

fn find(text: &[char], from: usize, is_end: impl Fn(char) -> bool) -> usize {
    text[from..].iter().position(|&c| is_end(c)).map_or(text.len(), |n| from + n)
}

fn follows_word(text: &[char], at: usize) -> bool {
    at > 0 && (text[at - 1].is_alphanumeric() || text[at - 1] == '_')
}

fn block_comment_end(text: &[char], at: usize) -> usize {
    let (mut depth, mut i) = (0, at);
    while i + 1 < text.len() {
        match (text[i], text[i + 1]) {
            ('/', '*') => (depth, i) = (depth + 1, i + 2),
            ('*', '/') => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            return i;
        }
    }
    text.len()
}

fn quoted_end(text: &[char], at: usize, quote: char) -> usize {
    let mut i = at + 1;
    while i < text.len() {
        match text[i] {
            '\\' => i += 2,
            c if c == quote => return i + 1,
            _ => i += 1,
        }
    }
    text.len()
}

/// The end of the raw string whose `r` stands at `at`, if one does.
fn raw_string_end(text: &[char], at: usize) -> Option<usize> {
    let open = find(text, at + 1, |c| c != '#');
    if text.get(open) != Some(&'"') {
        return None; // a raw identifier such as `r#type`
    }
    let hashes = open - at - 1;
    let closes = |i: usize| {
        text[i] == '"'
            && text.len() >= i + 1 + hashes
            && text[i + 1..i + 1 + hashes].iter().all(|&c| c == '#')
    };
    Some((open + 1..text.len()).find(|&i| closes(i)).map_or(text.len(), |i| i + 1 + hashes))
}

/// True where `word` stands in `line` with no letter, digit or `_` beside it.
pub fn has_word(line: &str, word: &str) -> bool {
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].ends_with(in_word) && !line[at + word.len()..].starts_with(in_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_comments_and_literals_are_told_apart() {
        let source = r##"let a = "in // string"; // in comment
let b = 'x'; let c = '\''; fn f<'a>(x: &'a str) {} /* one /* two */ still */ end
let d = r#"raw " quote"#; let e = br"bytes"; let r#type = 1;"##;
        let halves = split(source);
        for gone in ["string", "comment", "one", "still", "quote", "bytes"] {
            assert!(!halves.code.contains(gone), "{gone} is not code");
        }
        for kept in ["let a", "let c", "fn f<'a>(x: &'a str)", "end", "let e", "r#type = 1"] {
            assert!(halves.code.contains(kept), "{kept} is code: {}", halves.code);
        }
        assert!(halves.comments.contains("// in comment"));
        assert!(halves.comments.contains("/* one /* two */ still */"));
        assert!(!halves.comments.contains("string"));
        assert_eq!(halves.code.lines().count(), source.lines().count());
    }

    #[test]
    fn a_word_is_not_found_inside_another() {
        assert!(has_word("unsafe { x }", "unsafe"));
        assert!(!has_word("#![deny(unsafe_code)]", "unsafe"));
        assert!(!has_word("nonunsafe", "unsafe"));
    }
}
