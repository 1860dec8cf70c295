//! Profiles travel as text: in a pool's label and in files that people edit.

use disk::{Kind, Line, LinearProfile, Model, Profile};
use units::{Bytes, Duration, Rate};

fn linear() -> Profile {
    Profile {
        source: "measured".into(),
        confidence: "maximum of 400 accesses and a half".into(),
        capacity: Bytes::mib(64),
        flush: Duration::from_micros(1_234),
        kind: Kind::Linear(LinearProfile {
            read: Line { fixed: Duration::from_micros(90), rate: Rate::per_second(777_777_777) },
            write: Line { fixed: Duration::from_nanos(123_457), rate: Rate::per_second(1 << 50) },
            depth: 32,
            latency: Duration::from_millis(2),
        }),
    }
}

#[test]
fn a_profile_comes_back_from_its_text_unchanged() {
    let model = Model::named("laptop-4200").unwrap();
    let small = model.scaled(Bytes::mib(300)).unwrap();
    for profile in [Profile::of(&model), Profile::of(&small), linear()] {
        let text = profile.to_toml();
        assert_eq!(Profile::parse(&text).unwrap(), profile, "{text}");
        assert!(text.len() < 4096, "a label has room for 4 KiB; this is {}", text.len());
    }
}

#[test]
fn a_spoiled_profile_says_what_to_do() {
    let hard = Profile::of(&Model::named("laptop-4200").unwrap()).to_toml();
    let cases = [
        (&linear().to_toml(), "depth = 32", "depth = 0", "linear.depth is 0; give 1 to 1024"),
        (&linear().to_toml(), "\"linear\"", "\"tape\"", "give \"hard-disk\" or \"linear\""),
        (&linear().to_toml(), "\"linear\"", "\"hard-disk\"", "give the section [hard-disk]"),
        (&linear().to_toml(), "777.777777MB/s", "0MB/s", "give at least 292 B/s"),
        (&linear().to_toml(), "64MiB", "100B", "give a whole number of sectors"),
        (&hard, "start = 0\n", "start = 1\n", "the first zone starts at 0"),
        (&hard, "cylinders = 3884", "cylinders = 0", "needs cylinders and a rate"),
        (&hard, "rotation = ", "turn = ", "unknown field `turn`"),
    ];
    for (text, good, bad, says) in cases {
        assert!(text.contains(good), "{good} in {text}");
        let error = Profile::parse(&text.replace(good, bad)).unwrap_err().to_string();
        assert!(error.contains(says), "{bad}: {error}");
    }
}
