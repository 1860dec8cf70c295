//! Progress of a long transfer, on standard error, and only where a person looks.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use units::Bytes;

/// A progress bar; without a terminal, nothing.
pub struct Progress(Option<ProgressBar>);

impl Progress {
    /// Towards `total`, where that is known.
    pub fn new(total: Option<Bytes>) -> Self {
        if !io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = match total {
            Some(total) => ProgressBar::new(total.get()),
            None => ProgressBar::no_length(),
        };
        let template = match total {
            Some(_) => "{wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} to go {msg}",
            None => "{spinner} {bytes}, {bytes_per_sec}, {elapsed} {msg}",
        };
        let style = ProgressStyle::with_template(template).expect("the template is sound");
        bar.set_style(style);
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(4));
        Self(Some(bar))
    }

    /// So much is done.
    pub fn at(&self, done: Bytes) {
        if let Some(bar) = &self.0 {
            // What is still recorded grows under whoever plays it.
            if bar.length().is_some_and(|length| length < done.get()) {
                bar.set_length(done.get());
            }
            bar.set_position(done.get());
        }
    }

    /// A word at the end of the line.
    pub fn say(&self, text: impl Into<String>) {
        if let Some(bar) = &self.0 {
            bar.set_message(text.into());
        }
    }

    /// Leaves the terminal as it was.
    pub fn finish(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
