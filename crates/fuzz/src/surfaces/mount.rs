//! What programs do to files of a mount that no byte of a file is: extended attributes, and names
//! of directories.

use client::control::{DirectoryFacts, Service};
use mount::contracts;
use mount::tree::{self, ROOT, Tree};
use std::collections::BTreeMap;

/// The name of an attribute, a line break, and the value that it shall have. What is taken is told
/// again as it was meant.
pub fn attribute(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else { return false };
    let Some((name, value)) = text.split_once('\n') else { return false };
    let Some(service) = contracts::service(name, value) else { return false };
    assert!(contracts::can_be_set(name), "{name}");
    let told = contracts::of_service(&service, name).expect("what was set can be read");
    assert_eq!(contracts::service(name, &told).as_ref(), Some(&service), "{told}");
    assert!(!told.contains('\0') && told.len() < 256, "{told}");
    // Nothing else is told of it, but what it is.
    for other in ["priority", "rate", "within"] {
        let is_told = contracts::of_service(&service, other).is_some();
        assert_eq!(is_told, other == name, "{other} of {name}");
    }
    let json = serde_json::to_vec(&service).expect("a service can be said");
    if let Ok(again) = serde_json::from_slice::<Service>(&json) {
        assert_eq!(again, service);
    }
    true
}

pub fn attributes() -> Vec<Vec<u8>> {
    let texts = [
        "priority\ninteractive",
        "priority\nbackground\n",
        "rate\n2 MB/s",
        "rate\n1234567 B/s",
        "rate\n25 Mbit/s",
        "within\n4KiB within 150ms every 500ms",
        "within\n150ms",
        "within\n 5000B within 1234567ns every 1.5s",
    ];
    texts.map(|text| text.as_bytes().to_vec()).into()
}

/// Names that directories of a tree have: few, so that they meet.
const NAMES: [&str; 5] = ["a", "b", "ab", "a.b", "ä"];

/// Three bytes for each step: what is done, to which path, and since when a directory has had that.
pub fn tree(input: &[u8]) -> bool {
    let (tree, mut known) = (Tree::default(), BTreeMap::<u64, DirectoryFacts>::new());
    let mut others = 0;
    for (step, moment) in input.chunks_exact(3).zip(1..) {
        let since = u64::from(step[2] % 3).min(moment);
        let facts = DirectoryFacts { name: text(&path(step[1])), moment, since };
        let inode = tree::implicit(&facts);
        assert!(tree::is_implicit(inode) && inode != ROOT && tree::may_be(inode, &facts.name));
        match step[0] % 4 {
            0..=2 => {
                assert_eq!(tree.know(&facts), inode);
                // One that had this path at another time is another one.
                let is_other = |other: &&DirectoryFacts| {
                    other.name == facts.name && other.since != facts.since
                };
                others += known.values().filter(is_other).count();
                let before = known.insert(inode, facts.clone());
                let same = |before: DirectoryFacts| {
                    (before.name, before.since) == (facts.name, facts.since)
                };
                assert!(before.is_none_or(same));
            }
            _ => {
                tree.forget(inode);
                assert_eq!(tree.place(inode), None);
                known.remove(&inode);
            }
        }
    }
    for (inode, DirectoryFacts { name, moment, .. }) in &known {
        assert_eq!(tree.place(*inode), Some(format!("/@{moment}/{name}")));
    }
    assert_eq!(tree.place(ROOT).as_deref(), Some(""));
    others > 0
}

/// One to four names.
fn path(byte: u8) -> Vec<usize> {
    let byte = usize::from(byte);
    let count = 1 + byte % 4;
    (0..count).map(|i| ((byte / 4) >> i) % NAMES.len()).collect()
}

fn text(path: &[usize]) -> String {
    path.iter().fold(String::new(), |path, &name| tree::join(&path, NAMES[name]))
}

pub fn trees() -> Vec<Vec<u8>> {
    vec![vec![0, 1, 0, 0, 1, 1, 3, 1, 0], vec![0, 5, 0, 1, 9, 0, 2, 5, 2, 3, 5, 0, 2, 8, 4]]
}
