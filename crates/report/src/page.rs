//! A static page: words, tables and charts, readable without a network.

use crate::svg::escape;
use crate::{Chart, Table};
use std::fmt::Write;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1f2328;--quiet:#636c76;--paper:#fff;--line:#d8dee4;\
--good:#1a7f37;--bad:#c4242f;--careful:#8a5a00;--link:#0b63c5}\
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--quiet:#9198a1;--paper:#0d1117;\
--line:#30363d;--good:#4ac26b;--bad:#ff7b72;--careful:#e3b341;--link:#6cb6ff}}\
body{margin:0 auto;padding:1rem;max-width:70rem;font:16px/1.5 system-ui,'Segoe UI',\
'DejaVu Sans',sans-serif;color:var(--ink);background:var(--paper)}\
h1{font-size:1.6rem;line-height:1.2}h2{font-size:1.25rem;margin-top:2.2rem;\
border-top:1px solid var(--line);padding-top:1rem}h3{font-size:1.05rem}\
p,li{max-width:46rem}a{color:var(--link)}.quiet{color:var(--quiet)}\
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.875rem;\
font-variant-numeric:tabular-nums}th,td{text-align:left;padding:.25rem .7rem .25rem 0;\
border-bottom:1px solid var(--line);vertical-align:top}th{color:var(--quiet);\
font-weight:600}.figure{text-align:right;white-space:nowrap}td:not(.figure){min-width:5rem}.good{color:var(--good)}.bad{color:var(--bad);\
font-weight:600}.careful{color:var(--careful)}\
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));\
gap:1rem;margin:1rem 0}.charts svg{width:100%;height:auto;max-width:40rem}\
pre{overflow-x:auto;font-size:.85rem;border:1px solid var(--line);padding:.6rem}";

/// A page that is being written, from top to bottom.
#[derive(Clone, Debug)]
pub struct Page {
    html: String,
}

impl Page {
    /// An empty page with a title.
    pub fn new(title: &str) -> Self {
        let title = escape(title);
        let html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
             <h1>{title}</h1>\n"
        );
        Self { html }
    }

    /// A heading that `#id` leads to.
    pub fn heading(&mut self, id: &str, words: &str) -> &mut Self {
        let _ = writeln!(self.html, "<h2 id=\"{}\">{}</h2>", attribute(id), escape(words));
        self
    }

    /// A smaller heading.
    pub fn small_heading(&mut self, words: &str) -> &mut Self {
        let _ = writeln!(self.html, "<h3>{}</h3>", escape(words));
        self
    }

    /// A paragraph.
    pub fn text(&mut self, words: &str) -> &mut Self {
        let _ = writeln!(self.html, "<p>{}</p>", escape(words));
        self
    }

    /// A paragraph that may be skipped.
    pub fn quiet(&mut self, words: &str) -> &mut Self {
        let _ = writeln!(self.html, "<p class=\"quiet\">{}</p>", escape(words));
        self
    }

    /// A list; each point with where it leads, or nothing.
    pub fn list<'a>(
        &mut self,
        points: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
    ) -> &mut Self {
        self.html.push_str("<ul>\n");
        for (words, link) in points {
            let words = escape(words);
            let _ = match link {
                Some(link) => {
                    writeln!(self.html, "<li><a href=\"{}\">{words}</a></li>", attribute(link))
                }
                None => writeln!(self.html, "<li>{words}</li>"),
            };
        }
        self.html.push_str("</ul>\n");
        self
    }

    /// A table.
    pub fn table(&mut self, table: &Table) -> &mut Self {
        self.html.push_str(&table.html());
        self
    }

    /// Charts beside each other where there is room.
    pub fn charts<'a>(&mut self, charts: impl IntoIterator<Item = &'a Chart>) -> &mut Self {
        self.pictures(charts.into_iter().map(Chart::svg))
    }

    /// Pictures beside each other where there is room; each is an SVG element.
    pub fn pictures(&mut self, svgs: impl IntoIterator<Item = String>) -> &mut Self {
        self.html.push_str("<div class=\"charts\">\n");
        self.html.extend(svgs);
        self.html.push_str("</div>\n");
        self
    }

    /// Lines as they are, such as a file.
    pub fn verbatim(&mut self, lines: &str) -> &mut Self {
        let _ = writeln!(self.html, "<pre>{}</pre>", escape(lines));
        self
    }

    /// The page.
    pub fn html(&self) -> String {
        format!("{}</body>\n</html>\n", self.html)
    }
}

fn attribute(value: &str) -> String {
    escape(value).replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_words_and_nothing_comes_from_elsewhere() {
        let mut page = Page::new("a & b");
        page.heading("x\"y", "<h>").text("<script>").list([("one", Some("#x")), ("two", None)]);
        page.verbatim("a < b");
        let html = page.html();
        assert!(html.contains("<title>a &amp; b</title>") && html.contains("id=\"x&quot;y\""));
        assert!(!html.contains("<script") && !html.contains("http"));
        assert!(html.ends_with("</html>\n"));
    }
}
