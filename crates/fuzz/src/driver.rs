//! Asks a surface about many inputs: those of its corpus as they are, then others that
//! are made of them. Runs anywhere, guided by nothing but the corpus.
//!
//! Invariant: the same seed and corpus give the same inputs.

use crate::Surface;
use sim::Random;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Bytes and numbers at which decoders tend to be wrong.
const NUMBERS: [u64; 14] = [
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0xffff,
    4096,
    1 << 20,
    u32::MAX as u64,
    1 << 32,
    i64::MAX as u64,
    1 << 62,
    u64::MAX,
];

/// An input that a surface did not stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The input.
    pub input: Vec<u8>,
    /// How many inputs were asked before it.
    pub after: u64,
    /// What the panic said.
    pub said: String,
}

/// Where a surface's corpus lies.
pub fn corpus_dir(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)
}

/// The valid inputs of a surface and those of its corpus, in the order of their names.
pub fn corpus(surface: &Surface) -> Vec<Vec<u8>> {
    let mut inputs = (surface.seeds)();
    let files = std::fs::read_dir(corpus_dir(surface.name)).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = files.map(|file| file.path()).collect();
    paths.sort();
    inputs.extend(paths.iter().map(|path| std::fs::read(path).expect("a file of the corpus")));
    inputs
}

/// Asks about every input of the corpus, then about `inputs` that are made of them. How
/// many were taken.
///
/// # Errors
/// The first input that the surface does not stand.
pub fn run(surface: &Surface, inputs: u64, seed: u64) -> Result<u64, Found> {
    let corpus = corpus(surface);
    assert!(!corpus.is_empty(), "{} has no valid input", surface.name);
    let mut random = Random::new(seed);
    let (mut asked, mut taken) = (0, 0);
    let mut ask = |input: Vec<u8>| {
        let outcome = catch_unwind(AssertUnwindSafe(|| surface.check(&input)));
        let outcome = outcome.map_err(|panic| Found { input, after: asked, said: told(&*panic) });
        asked += 1;
        taken += u64::from(outcome?);
        Ok(())
    };
    corpus.iter().try_for_each(|input| ask(input.clone()))?;
    (0..inputs).try_for_each(|_| ask(mutated(&corpus, surface.len_max, &mut random)))?;
    Ok(taken)
}

fn told(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
    text.unwrap_or_else(|| "a panic without a text".into())
}

/// One of the inputs, changed in a few places.
fn mutated(corpus: &[Vec<u8>], len_max: usize, random: &mut Random) -> Vec<u8> {
    let mut input = any(corpus, random).clone();
    for _ in 0..1 + random.below(4) {
        mutate(&mut input, corpus, random);
    }
    input.truncate(len_max);
    input
}

fn any<'a, T>(of: &'a [T], random: &mut Random) -> &'a T {
    &of[random.below(of.len() as u64) as usize]
}

fn mutate(input: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
    let len = input.len();
    let mut place = |len: usize| random.below(len as u64 + 1) as usize;
    let (at, to) = (place(len), place(len));
    let (from, to) = (at.min(to), at.max(to));
    match random.below(9) {
        0 if at < len => input[at] ^= 1 << random.below(8),
        1 if at < len => input[at] = random.bits() as u8,
        2 => {
            let number = any(&NUMBERS, random).wrapping_add(random.below(3)).wrapping_sub(1);
            let bytes = &number.to_le_bytes()[..1 << random.below(4)];
            let room = bytes.len().min(len - at);
            input[at..at + room].copy_from_slice(&bytes[..room]);
        }
        3 => drop(input.drain(from..to.min(from + 16))),
        4 => {
            let part = input[from..to.min(from + 256)].to_vec();
            input.splice(at..at, part);
        }
        5 => {
            // The end of another input behind the beginning of this one.
            let other = any(corpus, random);
            let begins = random.below(other.len() as u64 + 1) as usize;
            input.truncate(at);
            input.extend_from_slice(&other[begins..]);
        }
        6 => {
            let other = any(corpus, random);
            let begins = random.below(other.len() as u64 + 1) as usize;
            let part = &other[begins..other.len().min(begins + 1 + random.below(32) as usize)];
            input.splice(at..at, part.iter().copied());
        }
        7 | 8 => number_in_text(input, at, random),
        _ => input.push(random.bits() as u8),
    }
}

/// Another number in the place of the next one in a text.
fn number_in_text(input: &mut Vec<u8>, at: usize, random: &mut Random) {
    let digit = |byte: &u8| byte.is_ascii_digit();
    let Some(from) = input[at..].iter().position(digit).map(|from| at + from) else { return };
    let len = input[from..].iter().take_while(|byte| digit(byte)).count();
    let number = any(&NUMBERS, random).wrapping_add(random.below(3)).wrapping_sub(1);
    let text = match random.below(4) {
        0 => format!("-{number}"),
        1 => format!("{number}.{number}"),
        2 => format!("{number}{number}"),
        _ => number.to_string(),
    };
    input.splice(from..from + len, text.into_bytes());
}
