//! `slackline token`: what lets others do less over TCP.
//!
//! `make`, `list` and `revoke` ask the daemon, on this machine; `narrow` and `show` ask nobody.
//! Invariant: a token goes to standard output or into a file of its user alone, and into no
//! message.

use crate::Common;
use crate::failure::Failure;
use crate::output::Table;
use client::Code;
use client::control::{TokenFacts, TokenMake, TokenVerb, Tokens};
use serde::Serialize;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use token::{Names, Restriction, TEXT_MAX, Token, Verb, Verbs};
use units::{Duration, Rate};

/// How long a token is good where nothing is said: 30 days.
const FOR: Duration = Duration::from_secs(30 * 24 * 3_600);

/// Tokens.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Make a token that acts as you, with less than you may
    ///
    /// Over TCP the daemon lets in whoever shows it (`slackline serve --listen`): keep it as a
    /// password. It is printed this once.
    Make {
        #[command(flatten)]
        less: Less,
        /// Good for ever, or until it is revoked
        #[arg(long, conflicts_with = "lasting")]
        for_ever: bool,
        #[command(flatten)]
        to: To,
    },
    /// Make a token of another that lets its holder do less: asks nobody
    ///
    /// What the other says holds as well. With it this one is revoked, too.
    Narrow {
        #[command(flatten)]
        from: From,
        #[command(flatten)]
        less: Less,
        #[command(flatten)]
        to: To,
    },
    /// Say what a token says: asks nobody, so that it can be a lie
    Show {
        #[command(flatten)]
        from: From,
    },
    /// List the tokens that are good: yours; as root, everybody's
    List,
    /// Revoke a token by its number, and all that were narrowed from it
    ///
    /// At once: connections that it let in end.
    Revoke {
        /// Its number
        number: u64,
    },
}

/// What a token is held to. What is left out is not.
#[derive(clap::Args)]
pub struct Less {
    /// For this volume. Can be repeated
    #[arg(long = "volume", value_name = "NAME")]
    volumes: Vec<String>,
    /// For every volume whose name begins so, for example films/. Can be repeated
    #[arg(long = "prefix", value_name = "TEXT")]
    prefixes: Vec<String>,
    /// For these verbs: read; write, which grows and shrinks as well; create, which deletes as
    /// well; manage: names, owners, modes, contracts, and the pool where all volumes are named
    #[arg(long, value_name = "VERB,...", value_delimiter = ',')]
    verbs: Vec<Verb>,
    /// For contracts of at most this rate
    #[arg(long, value_name = "RATE")]
    rate_max: Option<Rate>,
    /// For so long, from now on, as 90min or 72h [make: default 720h]
    #[arg(long = "for", value_name = "TIME")]
    lasting: Option<Duration>,
}

/// Where a token comes from.
#[derive(clap::Args)]
pub struct From {
    /// The file that has the token [default: standard input]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Where a token goes.
#[derive(clap::Args)]
pub struct To {
    /// Write the token into this new file, which you alone can read [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// A token that went where it was to go.
#[derive(Serialize)]
struct Given {
    number: u64,
    /// None where it is in a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    restrictions: Vec<String>,
}

/// Runs it.
pub fn run(command: Command, common: &Common) -> Result<(), Failure> {
    match command {
        Command::Make { less, for_ever, to } => make(&less, for_ever, &to, common),
        Command::Narrow { from, less, to } => {
            let mut token = from.token()?;
            let more = less.restrictions(less.lasting)?;
            if more.is_empty() {
                let next = "say what it is held to: `slackline token narrow --help`";
                return Err(Failure::usage("nothing is taken away", next));
            }
            for restriction in more {
                let failed = |error: token::TooLong| {
                    Failure::new(error.to_string(), "narrow an earlier token, or name less")
                };
                token = token.narrowed(restriction).map_err(failed)?;
            }
            give(&token, &to, common)
        }
        Command::Show { from } => {
            let token = from.token()?;
            let said = Said::of(&token);
            common.output().result(&said, Said::words)
        }
        Command::List => {
            let tokens = common.client()?.tokens()?;
            common.output().result(&tokens, table)
        }
        Command::Revoke { number } => {
            common.client()?.token_revoke(number)?;
            let done = serde_json::json!({ "revoked": number });
            common.output().result(&done, |_| format!("token {number} is good for nothing now\n"))
        }
    }
}

fn make(less: &Less, for_ever: bool, to: &To, common: &Common) -> Result<(), Failure> {
    let lasting = if for_ever { None } else { Some(less.lasting.unwrap_or(FOR)) };
    if lasting.is_some_and(|lasting| lasting.is_zero()) {
        let next = "say how long it shall be good, for example 30d, or --for-ever";
        return Err(Failure::usage("a token that is good for no time lets nobody in", next));
    }
    // As the daemon will hold it, before anything is asked.
    less.restrictions(lasting)?;
    let verbs = less.verbs.iter().map(|verb| match verb {
        Verb::Read => TokenVerb::Read,
        Verb::Write => TokenVerb::Write,
        Verb::Create => TokenVerb::Create,
        Verb::Manage => TokenVerb::Manage,
    });
    let request = TokenMake {
        volumes: less.volumes.clone(),
        prefixes: less.prefixes.clone(),
        verbs: verbs.collect(),
        rate_max_bytes_per_second: less.rate_max,
        until_seconds: lasting.map(until),
    };
    let client = common.client()?;
    let made = client.token_make(&request)?;
    let note = |note: String| eprintln!("slackline: note: {note}");
    if less.names_nothing() {
        let until = made.facts.until_seconds.map(|until| Restriction::Until(until).to_string());
        let until = until.unwrap_or_else(|| "for ever".into());
        note(format!("it may do all that {} may, {until}", made.facts.user));
    }
    for name in &less.volumes {
        // It may be made later.
        if client.volume(name).is_err_and(|error| error.code() == Some(Code::NoSuchVolume)) {
            note(format!("no volume is called {name} yet"));
        }
    }
    let token = Token::parse(&made.token).map_err(|error| {
        Failure::new(format!("the daemon's answer: {error}"), "use a daemon of the same version")
    })?;
    give(&token, to, common)
}

/// A second so long from now.
fn until(lasting: Duration) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    now.saturating_add(lasting.as_secs())
}

impl Less {
    /// Nothing but the time, and perhaps the rate, is less than the maker has.
    fn names_nothing(&self) -> bool {
        self.volumes.is_empty() && self.prefixes.is_empty() && self.verbs.is_empty()
    }

    fn restrictions(&self, lasting: Option<Duration>) -> Result<Vec<Restriction>, Failure> {
        let names = self.volumes.iter().cloned().map(Names::One);
        let names: Vec<Names> =
            names.chain(self.prefixes.iter().cloned().map(Names::Beginning)).collect();
        if let Some(unsound) = names.iter().find(|names| !names.is_sound()) {
            let what = format!("{unsound}: no volume has such a name");
            return Err(Failure::usage(what, "name volumes as `slackline volume list` does"));
        }
        let all = [
            (!names.is_empty()).then_some(Restriction::Volumes(names)),
            Verbs::of(self.verbs.iter().copied()).map(Restriction::Verbs),
            self.rate_max.map(Restriction::RateMax),
            lasting.map(|lasting| Restriction::Until(until(lasting))),
        ];
        Ok(all.into_iter().flatten().collect())
    }
}

impl From {
    fn token(&self) -> Result<Token, Failure> {
        let mut text = String::new();
        // A longer one is none; of a file that never ends no more is read.
        let most = TEXT_MAX as u64 + 64;
        let read = match &self.file {
            Some(path) => std::fs::File::open(path)
                .and_then(|file| file.take(most).read_to_string(&mut text))
                .map_err(|error| Failure::file(path, &error)),
            None => std::io::stdin().lock().take(most).read_to_string(&mut text).map_err(|error| {
                Failure::new(format!("standard input: {error}"), "give the token there")
            }),
        };
        read?;
        let next = "give the text that `slackline token make` printed, whole";
        Token::parse(text.trim()).map_err(|error| Failure::new(error.to_string(), next))
    }
}

fn give(token: &Token, to: &To, common: &Common) -> Result<(), Failure> {
    let restrictions = token.restrictions().iter().map(ToString::to_string).collect();
    if let Some(path) = &to.output {
        write(path, token)?;
    }
    let shown = to.output.is_none().then(|| token.reveal());
    let given = Given { number: token.number(), token: shown, restrictions };
    common.output().result(&given, |given| match &given.token {
        Some(token) => format!("{token}\n"),
        None => format!("token {} is in the file\n", given.number),
    })
}

fn write(path: &Path, token: &Token) -> Result<(), Failure> {
    let failed = |error| Failure::file(path, &error);
    let mut options = OpenOptions::new();
    // A file that is there is somebody's, and others may be able to read it.
    let mut file = options.write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    writeln!(file, "{}", token.reveal()).and_then(|()| file.sync_all()).map_err(failed)
}

/// What a token says.
#[derive(Serialize)]
struct Said {
    number: u64,
    uid: u32,
    restrictions: Vec<String>,
}

impl Said {
    fn of(token: &Token) -> Self {
        let restrictions = token.restrictions().iter().map(ToString::to_string).collect();
        Self { number: token.number(), uid: token.uid(), restrictions }
    }

    fn words(&self) -> String {
        let Self { number, uid, restrictions } = self;
        let mut text = format!("number     {number}\nacts as    user {uid}\n");
        for restriction in restrictions {
            text += &format!("held to    {restriction}\n");
        }
        if restrictions.is_empty() {
            text += "held to    nothing\n";
        }
        text
    }
}

fn table(tokens: &Tokens) -> String {
    if tokens.tokens.is_empty() {
        return "no token is good\n".into();
    }
    let mut table = Table::new(&[">token", "user", "held to"]);
    for TokenFacts { number, user, restrictions, .. } in &tokens.tokens {
        table.row(vec![number.to_string(), user.clone(), restrictions.join("; ")]);
    }
    table.text("")
}
