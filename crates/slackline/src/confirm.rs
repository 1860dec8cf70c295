//! Asking a person before something is destroyed.

use crate::failure::Failure;
use std::io::{self, BufRead, IsTerminal, Write};

/// Asks the person at the terminal to type `word` before what `warning` says
/// happens. Without a terminal there is nobody to ask: a failure that names the
/// `flag` which says yes.
pub fn destroy(warning: &str, word: &str, flag: &str) -> Result<(), Failure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let what = warning.trim_end().replace('\n', "\n  ");
        return Err(Failure::new(what, format!("add {flag} if that is what you want")));
    }
    eprint!("{warning}\nType {word} to go on: ");
    let _ = io::stderr().flush(); // a prompt that is not seen is answered with nothing
    let mut typed = String::new();
    let read = io::stdin().lock().read_line(&mut typed);
    match read {
        Ok(_) if typed.trim() == word => Ok(()),
        _ => Err(Failure::new("nothing was changed", "")),
    }
}
