//! Tables: as text whose columns are as wide as what stands in them, and as HTML.

use crate::svg::escape;
use std::fmt::Write;
use unicode_width::UnicodeWidthStr;

/// What a cell says beside its words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mood {
    /// Nothing.
    #[default]
    Plain,
    /// As it should be.
    Good,
    /// Not as it should be.
    Bad,
    /// To be read with care.
    Careful,
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<(String, Mood)>>,
    figures: Vec<bool>,
}

impl Table {
    /// A table with these headings. A heading that begins with `>` stands over
    /// figures, which stand right; words stand left.
    pub fn new(headings: &[&str]) -> Self {
        let figures = headings.iter().map(|heading| heading.starts_with('>')).collect();
        let name = |heading: &&str| (heading.trim_start_matches('>').to_owned(), Mood::Plain);
        Self { rows: vec![headings.iter().map(name).collect()], figures }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// Where it has not as many cells as there are headings.
    #[track_caller]
    pub fn row(&mut self, cells: Vec<String>) {
        self.moody(cells.into_iter().map(|cell| (cell, Mood::Plain)).collect());
    }

    /// Adds a row whose cells have a mood each.
    ///
    /// # Panics
    /// Where it has not as many cells as there are headings.
    #[track_caller]
    pub fn moody(&mut self, cells: Vec<(String, Mood)>) {
        assert_eq!(cells.len(), self.rows[0].len(), "as many cells as headings");
        self.rows.push(cells);
    }

    /// The headings, and below them the rows.
    pub fn cells(&self) -> impl Iterator<Item = impl Iterator<Item = &str>> {
        self.rows.iter().map(|row| row.iter().map(|cell| &*cell.0))
    }

    /// The text, each line indented by `indent`.
    pub fn text(&self, indent: &str) -> String {
        let widths: Vec<usize> = (0..self.rows[0].len())
            .map(|column| self.rows.iter().map(|row| width(&row[column].0)).max().unwrap_or(0))
            .collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::from(indent);
            for (column, (cell, _)) in row.iter().enumerate() {
                let space = " ".repeat(widths[column] - width(cell));
                let (before, after) =
                    if self.figures[column] { (&*space, "") } else { ("", &*space) };
                line.push_str(&format!("{before}{cell}{after}  "));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// As an element of a page.
    pub fn html(&self) -> String {
        let mut html = String::from("<div class=\"wide\"><table>\n");
        for (at, row) in self.rows.iter().enumerate() {
            let tag = if at == 0 { "th" } else { "td" };
            html.push_str("<tr>");
            for (column, (cell, mood)) in row.iter().enumerate() {
                let mut classes = Vec::new();
                if self.figures[column] {
                    classes.push("figure");
                }
                match mood {
                    Mood::Plain => {}
                    Mood::Good => classes.push("good"),
                    Mood::Bad => classes.push("bad"),
                    Mood::Careful => classes.push("careful"),
                }
                let class = match classes.is_empty() {
                    true => String::new(),
                    false => format!(" class=\"{}\"", classes.join(" ")),
                };
                let _ = write!(html, "<{tag}{class}>{}</{tag}>", escape(cell));
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</table></div>\n");
        html
    }
}

/// Columns of a terminal.
fn width(cell: &str) -> usize {
    cell.width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_left_and_figures_right() {
        let mut table = Table::new(&["name", ">size"]);
        table.row(vec!["a".into(), "1 MiB".into()]);
        table.row(vec!["longer".into(), "10 MiB".into()]);
        assert_eq!(table.text(" "), " name      size\n a        1 MiB\n longer  10 MiB\n");
    }

    /// Two columns for a character of Chinese or Japanese, none for an accent that stands alone.
    #[test]
    fn a_column_is_as_wide_as_a_terminal_shows_it() {
        let mut table = Table::new(&["name", ">size"]);
        table.row(vec!["\u{7384}\u{95a2}".into(), "1".into()]);
        table.row(vec!["a\u{300} la".into(), "2".into()]);
        let text = "name  size\n\u{7384}\u{95a2}     1\na\u{300} la     2\n";
        assert_eq!(table.text(""), text);
    }

    #[test]
    fn a_page_shows_what_is_good_and_what_is_not() {
        let mut table = Table::new(&["a", ">b"]);
        table.moody(vec![("<x>".into(), Mood::Plain), ("1".into(), Mood::Bad)]);
        let html = table.html();
        assert!(html.contains("<td>&lt;x&gt;</td><td class=\"figure bad\">1</td>"), "{html}");
    }
}
