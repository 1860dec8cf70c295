//! docs/on-disk-format.md has the tables that the code uses.
//! `UPDATE_DOCS=1` writes them anew.

use store::{MAGICS, TABLES};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/on-disk-format.md");
const BEGIN: &str = "<!-- the tables below come from crates/store/src/format.rs -->\n";
const END: &str = "<!-- end of the tables -->\n";

fn tables() -> String {
    let mut text = String::from("\n| structure | magic |\n|---|---|\n");
    for (name, magic) in MAGICS {
        text += &format!("| {name} | `{}` |\n", std::str::from_utf8(magic).unwrap());
    }
    for table in TABLES {
        let len: usize = table.fields.iter().map(|field| field.len).sum();
        text += &format!("\n### {}\n\n{len} bytes.\n\n", table.name);
        text += "| offset | bytes | field | meaning |\n|---:|---:|---|---|\n";
        for field in table.fields {
            let name = field.name.to_lowercase().replace('_', " ");
            text += &format!("| {} | {} | {name} | {} |\n", field.offset, field.len, field.meaning);
        }
    }
    text + "\n"
}

#[test]
fn the_format_document_has_the_tables_of_the_code() {
    let text = std::fs::read_to_string(PATH).expect("docs/on-disk-format.md");
    let (before, rest) = text.split_once(BEGIN).expect("the mark before the tables");
    let (written, after) = rest.split_once(END).expect("the mark behind the tables");
    let tables = tables();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(PATH, [before, BEGIN, &tables, END, after].concat()).expect("written");
    } else {
        assert_eq!(written, tables, "run this test with UPDATE_DOCS=1 to write the tables anew");
    }
}
