//! Models and profiles come from files: with each number of them in turn at the places where
//! arithmetic breaks, they are refused, or do what a disk does without a panic.

use disk::{Drive, Emulated, Model, Profile};
use units::{Access, Bytes, Command, Direction, Instant, Lba, SECTOR};

const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "1000",
    "65536",
    "2147483648",
    "4294967296",
    "1125899906842624",
    "9007199254740992",
    "1152921504606846976",
    "1152921504606846977",
    "4611686018427387904",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
];

/// Every text that has one number of `text` in another's place: `10.5ms` becomes `0ms`,
/// `1ms` and so on.
fn varied(text: &str) -> Vec<String> {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(from) = text[at..].find(|c: char| c.is_ascii_digit()).map(|more| at + more) {
        let to = text[from..].find(|c| !is_number(c)).map_or(text.len(), |more| from + more);
        for number in NUMBERS {
            all.push(format!("{}{number}{}", &text[..from], &text[to..]));
        }
        at = to;
    }
    all
}

/// What admission, prediction and the emulator ask of a disk.
fn used(profile: &Profile) {
    profile.check().unwrap();
    let end = Lba::containing(profile.capacity());
    let whole = Lba::default()..end;
    for len in [SECTOR, Bytes::kib(64), Bytes::MIB].map(|len| len.min(profile.capacity())) {
        let last = Lba::new(end.get() - len.div_ceil(SECTOR));
        for direction in [Direction::Read, Direction::Write] {
            let worst = profile.worst(whole.clone(), len, direction);
            // A cost is added up and multiplied: there is room for it.
            assert!(worst.checked_sub(worst).is_some() && (worst * 100_000).as_nanos() > 0);
            let _ = profile.sweep(whole.clone(), len, direction);
            for (from, lba) in [(Lba::default(), last), (end, Lba::default()), (last, last)] {
                let command = Command::Transfer(Access { lba, len, direction });
                assert!(profile.bound(from, &command) <= worst, "{command:?} from {from:?}");
            }
        }
    }
    let _ = profile.bound(end, &Command::Seek(Lba::default()));
    assert_eq!(Profile::parse(&profile.to_toml()).as_ref(), Ok(profile));
}

#[test]
fn a_profile_with_any_number_in_it_is_refused_or_a_disks() {
    let (mut refused, mut taken) = (0, 0);
    for name in ["laptop-4200", "quantum-atlas-ii", "ssd-nvme"] {
        let text = Profile::of(&Model::named(name).unwrap()).to_toml();
        for varied in varied(&text) {
            match Profile::parse(&varied) {
                Ok(profile) => {
                    taken += 1;
                    used(&profile);
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 100 && taken > 100, "{refused} refused, {taken} taken");
}

/// What was written before there was a limit: a line on which size costs nothing.
#[test]
fn a_level_line_of_old_is_read_as_one_of_now() {
    let profile = Profile::of(&Model::named("ssd-nvme").unwrap());
    let text = profile.to_toml();
    let line = text.lines().rfind(|line| line.contains("rate")).unwrap();
    let (before, _) = line.split_once("rate = \"").unwrap();
    let after = line.split_once("rate = \"").unwrap().1.split_once('"').unwrap().1;
    let old = format!("{before}rate = \"18446744073709.551615MB/s\"{after}");
    let read = Profile::parse(&text.replace(line, &old)).unwrap();
    used(&read);
    let one = old.replace("18446744073709.551615MB/s", "18446744073709.551614MB/s");
    assert!(Profile::parse(&text.replace(line, &one)).is_err());
}

#[test]
fn a_model_with_any_number_in_it_is_refused_or_a_disk() {
    let (mut refused, mut taken) = (0, 0);
    let texts = [
        include_str!("../../../models/laptop-4200.toml"),
        include_str!("../../../models/quantum-atlas-ii.toml"),
        include_str!("../../../models/ssd-nvme.toml"),
    ];
    for text in texts {
        for varied in varied(text) {
            let Ok(model) = Model::parse(&varied) else {
                refused += 1;
                continue;
            };
            taken += 1;
            let profile = Profile::of(&model);
            let (mut drive, mut now) = (Emulated::new(&model), Instant::EPOCH);
            let end = Lba::containing(profile.capacity()).get();
            for place in [0, end / 2, end.saturating_sub(8)] {
                for direction in [Direction::Read, Direction::Write] {
                    let len = SECTOR * 8.min(end);
                    let access = Access { lba: Lba::new(place.min(end - 1)), len, direction };
                    if access.end().get() <= end {
                        now += drive.serve(now, &Command::Transfer(access));
                    }
                }
            }
        }
    }
    assert!(refused > 50 && taken > 50, "{refused} refused, {taken} taken");
}
