//! The driver for Rust: answers the steps of the table with `client::File`.

use client::control::Priority;
use client::units::{Bytes, Duration, Rate};
use client::{Contract, Error, File, InTime, Peek, Piece, ReadRange};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Byte `i` of the stream of this seed.
pub fn byte(seed: u32, i: u64) -> u8 {
    let mixed = (i as u32).wrapping_mul(0x9e37_79b1).wrapping_add(seed.wrapping_mul(0x85eb_ca6b));
    (mixed >> 24) as u8
}

/// What stands at `at` in the stream of this seed.
fn bytes(seed: u32, at: u64, len: usize) -> Vec<u8> {
    (at..at + len as u64).map(|i| byte(seed, i)).collect()
}

/// Numbers of `errno` that the table names.
fn name(errno: i32) -> String {
    let names = [
        (2, "ENOENT"),
        (5, "EIO"),
        (9, "EBADF"),
        (11, "EAGAIN"),
        (16, "EBUSY"),
        (22, "EINVAL"),
        (28, "ENOSPC"),
        (111, "ECONNREFUSED"),
    ];
    let known = names.iter().find(|(number, _)| *number == errno);
    known.map_or_else(|| errno.to_string(), |(_, name)| (*name).into())
}

/// One handle, and the last error.
pub struct Driver<'a> {
    socket: &'a Path,
    file: Option<File>,
    error: Option<Error>,
}

type Answer = Result<String, Error>;

impl<'a> Driver<'a> {
    pub fn new(socket: &'a Path) -> Self {
        Self { socket, file: None, error: None }
    }

    /// The answer to one step.
    pub fn step(&mut self, step: &str) -> String {
        let words: Vec<&str> = step.split_whitespace().collect();
        match self.answer(&words) {
            Ok(answer) => answer,
            Err(error) => {
                let answer = format!("error {}", name(error.errno()));
                self.error = Some(error);
                answer
            }
        }
    }

    fn answer(&mut self, words: &[&str]) -> Answer {
        match words {
            ["open", target, mode, options @ ..] => self.open(target, mode, options),
            ["close"] => match self.file.take() {
                Some(file) => file.close().map(|()| "ok".into()),
                None => Ok("not open".into()),
            },
            ["text"] => {
                let error = self.error.as_ref().expect("something failed");
                Ok(format!("{error}; next: {}", error.next_step()))
            }
            ["refused"] => Ok(self.refused()),
            _ => self.file.as_mut().map_or_else(|| Ok("not open".into()), |file| on(file, words)),
        }
    }

    fn open(&mut self, target: &str, mode: &str, options: &[&str]) -> Answer {
        let mut open = File::options();
        open.socket(self.socket).read(mode.contains('r')).write(mode.contains('w'));
        if let Some(contract) = contract(options) {
            open.contract(contract);
        }
        for option in options {
            match option.split_once('=') {
                Some(("create", size)) => open.create(Bytes::new(size.parse().unwrap())),
                Some(("socket", path)) => open.socket(path),
                Some(("priority", name)) => open.priority(priority(name)),
                None if *option == "truncate" => open.truncate(true),
                None if *option == "append" => open.append(true),
                None if *option == "update" => open.update(true),
                _ => &mut open,
            };
        }
        self.file = Some(open.open(target)?);
        Ok("ok".into())
    }

    fn refused(&self) -> String {
        let Some(refusal) = self.error.as_ref().and_then(Error::refusal) else {
            return "not refused".into();
        };
        let over = refusal.utilisation_ppm > 0 && !refusal.rate_max_bytes_per_second.is_zero();
        let fits = refusal.rate_max_bytes_per_second < Rate::per_second(200_000_000);
        let word = |yes| if yes { "yes" } else { "no" };
        format!("refused disk {} over {} fits {}", refusal.disk, word(over), word(fits))
    }
}

fn priority(name: &str) -> Priority {
    match name {
        "interactive" => Priority::Interactive,
        "normal" => Priority::Normal,
        "background" => Priority::Background,
        _ => panic!("no such priority: {name}"),
    }
}

fn contract(options: &[&str]) -> Option<Contract> {
    let number = |wanted: &str| {
        let mut pairs = options.iter().filter_map(|option| option.split_once('='));
        pairs.find(|(name, _)| *name == wanted).map(|(_, value)| value.parse::<u64>().unwrap())
    };
    let mut contract = Contract::at(Rate::per_second(number("rate")?));
    if let Some(block) = number("block") {
        contract = contract.block(Bytes::new(block));
    }
    if let Some(burst) = number("burst") {
        contract = contract.burst(Bytes::new(burst));
    }
    Some(contract)
}

fn on(file: &mut File, words: &[&str]) -> Answer {
    Ok(match words {
        ["write", seed, len] => {
            let (seed, len) = (seed.parse().unwrap(), len.parse().unwrap());
            let bytes = bytes(seed, file.position().get(), len);
            file.write_all(&bytes)?;
            file.flush()?;
            format!("wrote {len}")
        }
        ["read", seed, len] => read(file, seed.parse().unwrap(), len.parse().unwrap())?,
        ["seek", offset, whence] => {
            let offset: i64 = offset.parse().unwrap();
            let to = match (*whence, u64::try_from(offset)) {
                ("set", Ok(offset)) => SeekFrom::Start(offset),
                // Rust has no negative place: what comes nearest to it.
                ("set", Err(_)) => SeekFrom::Current(i64::MIN),
                ("cur", _) => SeekFrom::Current(offset),
                _ => SeekFrom::End(offset),
            };
            format!("at {}", file.seek(to)?)
        }
        ["tell"] => format!("at {}", file.position().get()),
        ["peek", seed, len] => {
            let (seed, at) = (seed.parse().unwrap(), file.position().get());
            match file.peek(len.parse().unwrap())? {
                Peek::Data(seen) if seen == bytes(seed, at, seen.len()) => "saw same".into(),
                Peek::Data(_) => "saw other".into(),
                Peek::Gap { .. } => "saw a gap".into(),
                Peek::End => "saw nothing".into(),
            }
        }
        ["whole", seed, len] => {
            let (seed, at) = (seed.parse().unwrap(), file.position().get());
            match file.peek_whole(len.parse().unwrap())? {
                Peek::Data(seen) if seen == bytes(seed, at, seen.len()) => {
                    format!("saw {} same", seen.len())
                }
                other => format!("saw {other:?}"),
            }
        }
        ["readat", seed, place, len] => {
            let place: u64 = place.parse().unwrap();
            let mut back = vec![0; len.parse().unwrap()];
            match file.read_at(Bytes::new(place), &mut back)? {
                Piece::Data(got) if back[..got] == bytes(seed.parse().unwrap(), place, got) => {
                    format!("read {got} same")
                }
                Piece::End => "read 0 same".into(),
                other => format!("read {other:?}"),
            }
        }
        ["writeat", seed, place, len] => {
            let place: u64 = place.parse().unwrap();
            let data = bytes(seed.parse().unwrap(), place, len.parse().unwrap());
            format!("wrote {}", file.write_at(Bytes::new(place), &data)?)
        }
        [what @ ("readranges" | "writeranges"), seed, place, count, step, len] => {
            let [place, count, step]: [u64; 3] = [place, count, step].map(|it| it.parse().unwrap());
            let (seed, len): (_, usize) = (seed.parse().unwrap(), len.parse().unwrap());
            let places = (0..count).rev().map(|at| place + step * at);
            if what == &"writeranges" {
                let all: Vec<_> = places.map(|at| (Bytes::new(at), bytes(seed, at, len))).collect();
                let all: Vec<_> = all.iter().map(|(at, bytes)| (*at, &bytes[..])).collect();
                file.write_ranges(&all)?;
                return Ok(format!("wrote {}", count * len as u64));
            }
            let mut memory: Vec<_> = places.map(|at| (at, vec![0; len])).collect();
            let mut all: Vec<_> =
                memory.iter_mut().map(|(at, into)| ReadRange::new(Bytes::new(*at), into)).collect();
            let read = file.read_ranges(&mut all)?;
            let is_same =
                |it: &ReadRange<'_>| it.into[..it.filled] == bytes(seed, it.place.get(), it.filled);
            format!("read {read} {}", if all.iter().all(is_same) { "same" } else { "other" })
        }
        ["playout", to] => {
            file.set_playout(Bytes::new(to.parse().unwrap())).map(|()| "ok".into())?
        }
        ["keep", len] => file.keep(Bytes::new(len.parse().unwrap())).map(|()| "ok".into())?,
        ["advance", len] => file.advance(len.parse().unwrap()).map(|()| "ok".into())?,
        ["sync"] => file.sync().map(|()| "ok".into())?,
        ["durable"] => {
            file.durable().map_or("none".into(), |upto| format!("durable {}", upto.get()))
        }
        ["length"] => format!("length {}", file.length()?.get()),
        ["truncate", len] => {
            file.set_len(Bytes::new(len.parse().unwrap())).map(|()| "ok".into())?
        }
        ["stream"] => if file.stream().is_some() { "yes" } else { "no" }.into(),
        ["contract"] => match file.contract().map(|contract| contract.terms()) {
            Some(terms) => format!(
                "rate {} block {} burst {}",
                terms.rate_bytes_per_second.get(),
                terms.block_bytes.get(),
                terms.burst_bytes.get()
            ),
            None => "none".into(),
        },
        ["set", options @ ..] => file.set_contract(contract(options)).map(|()| "ok".into())?,
        ["priority", name @ ..] => {
            if let [name] = name {
                file.set_priority(Some(priority(name)))?;
            }
            let has = file.priority().map(|has| format!("{has:?}").to_lowercase());
            format!("priority {}", has.as_deref().unwrap_or("unsaid"))
        }
        ["within", asked @ ..] => {
            let number = |word: &str| word.parse::<u64>().unwrap();
            match asked {
                [len, within, every] => {
                    let within = InTime::within(Duration::from_millis(number(within)));
                    let every = Duration::from_millis(number(every));
                    let contract = within.of(Bytes::new(number(len))).every(every);
                    file.set_in_time(Some(contract))?;
                }
                [] => {}
                _ => file.set_in_time(None)?,
            }
            match file.in_time() {
                Some(InTime { len, within, every }) => {
                    format!("within {} {} {}", len.get(), within.as_nanos(), every.as_nanos())
                }
                None => "within none".into(),
            }
        }
        ["drop"] => file.set_contract(None).map(|()| "ok".into())?,
        _ => panic!("no such step: {words:?}"),
    })
}

fn read(file: &mut File, seed: u32, len: usize) -> Answer {
    let (at, mut back) = (file.position().get(), vec![0; len]);
    let mut done = 0;
    while done < len {
        match file.read(&mut back[done..])? {
            0 => break,
            read => done += read,
        }
    }
    let what = match &back[..done] {
        back if *back == bytes(seed, at, done) => "same",
        back if back.iter().all(|&byte| byte == 0) => "zeros",
        _ => "other",
    };
    Ok(format!("read {done} {what}"))
}
