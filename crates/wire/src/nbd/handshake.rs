//! The negotiation: a client lists exports, asks about one, chooses one.
//!
//! The server sends [`greeting`]; the client answers with its flags ([`Handshake::new`]) and
//! then with options, each a head ([`OptionHead`]) and data, until one of them chooses an
//! export ([`Next::Transmit`]) or ends the connection.

use super::{BLOCK_PREFERRED, Broken, Cursor, NAME_MAX, PAYLOAD_MAX};

/// The most data of an option: a name, and the longest list of contexts that is looked at.
pub const OPTION_MAX: u32 = 8 << 10;
/// Length of an option's head.
pub const OPTION_HEAD_LEN: usize = 16;
/// The number that stands for `base:allocation` in replies.
pub const ALLOCATION_ID: u32 = 1;
/// The only metadata context: which parts of an export hold data.
pub const ALLOCATION: &str = "base:allocation";

const INIT_MAGIC: u64 = 0x4e42_444d_4147_4943;
const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;

/// Both sides' bits for the fixed newstyle, and for no zeros behind `EXPORT_NAME`.
const FIXED_NEWSTYLE: u32 = 1;
const NO_ZEROES: u32 = 2;

/// Options of a client.
mod option {
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    pub const STARTTLS: u32 = 5;
    pub const INFO: u32 = 6;
    pub const GO: u32 = 7;
    pub const STRUCTURED_REPLY: u32 = 8;
    pub const LIST_META_CONTEXT: u32 = 9;
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Replies to options.
mod reply {
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const META_CONTEXT: u32 = 4;
    pub const UNSUPPORTED: u32 = (1 << 31) + 1;
    pub const POLICY: u32 = (1 << 31) + 2;
    pub const INVALID: u32 = (1 << 31) + 3;
    pub const TLS_REQUIRED: u32 = (1 << 31) + 5;
    pub const UNKNOWN: u32 = (1 << 31) + 6;
}

/// What `INFO` and `GO` tell.
mod info {
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    pub const BLOCK_SIZE: u16 = 3;
}

/// An export as its client is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its name in full, where the client gave a shorter one.
    pub called: String,
    /// In bytes.
    pub size: u64,
    /// Writes are refused.
    pub is_read_only: bool,
    /// For a person.
    pub description: String,
}

impl Export {
    /// The transmission flags: flush, FUA, trim and zeroes, one cache for all connections.
    fn flags(&self) -> u16 {
        const HAS_FLAGS: u16 = 1;
        const READ_ONLY: u16 = 1 << 1;
        const FLUSH: u16 = 1 << 2;
        const FUA: u16 = 1 << 3;
        const TRIM: u16 = 1 << 5;
        const WRITE_ZEROES: u16 = 1 << 6;
        const DONT_FRAGMENT: u16 = 1 << 7;
        const MULTI_CONN: u16 = 1 << 8;
        let flags = HAS_FLAGS | FLUSH | FUA | DONT_FRAGMENT | MULTI_CONN;
        flags | if self.is_read_only { READ_ONLY } else { TRIM | WRITE_ZEROES }
    }
}

/// What a server has to offer.
pub trait Exports {
    /// The names of all exports that this client may know of; `Err` says, for a person, why they
    /// are not listed.
    ///
    /// # Errors
    /// Nobody is told them here.
    fn names(&self) -> Result<Vec<String>, String>;
    /// The export of this name; `Err` says, for a person, why the client cannot have it.
    ///
    /// # Errors
    /// There is none, or it is not for this client.
    fn find(&self, name: &str) -> Result<Export, String>;
}

/// What the server says first.
pub fn greeting() -> [u8; 18] {
    let mut bytes = [0; 18];
    bytes[..8].copy_from_slice(&INIT_MAGIC.to_be_bytes());
    bytes[8..16].copy_from_slice(&OPTION_MAGIC.to_be_bytes());
    bytes[16..].copy_from_slice(&((FIXED_NEWSTYLE | NO_ZEROES) as u16).to_be_bytes());
    bytes
}

/// The head of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionHead {
    /// Which.
    pub option: u32,
    /// So many bytes of data follow.
    pub len: u32,
}

impl OptionHead {
    /// Reads one.
    ///
    /// # Errors
    /// What is no option, or has more than [`OPTION_MAX`] bytes of data.
    pub fn decode(bytes: &[u8; OPTION_HEAD_LEN]) -> Result<Self, Broken> {
        let number = |at: usize| {
            u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes of sixteen"))
        };
        let magic = (u64::from(number(0)) << 32) | u64::from(number(4));
        let (option, len) = (number(8), number(12));
        match magic {
            OPTION_MAGIC if len <= OPTION_MAX => Ok(Self { option, len }),
            OPTION_MAGIC => Err(Broken::OptionLen(len)),
            _ => Err(Broken::OptionMagic(magic)),
        }
    }
}

/// What comes after an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another option.
    Option,
    /// A TLS handshake, when what was said is sent; then options again
    /// ([`Handshake::is_behind_tls`]). Nothing of what was sent before it counts any more.
    StartTls,
    /// Requests to this export.
    Transmit(Chosen),
    /// Nothing: the connection ends when what was said is sent.
    End,
}

/// What a client has chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The export's name, as the client wrote it.
    pub name: String,
    /// The export as the client was told of it.
    pub export: Export,
    /// Replies may be structured.
    pub is_structured: bool,
    /// The client may ask where data is.
    pub asks_allocation: bool,
}

/// What a negotiation has to do with TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tls {
    /// There is none.
    Never,
    /// Everything else is refused until it is there.
    Required,
    /// It is there.
    There,
}

/// A negotiation under way.
#[derive(Clone, Debug)]
pub struct Handshake {
    tls: Tls,
    no_zeroes: bool,
    is_structured: bool,
    /// The export that `base:allocation` was chosen for.
    allocation: Option<String>,
}

impl Handshake {
    /// After the client's flags.
    ///
    /// # Errors
    /// Where the client wants something else than the fixed newstyle.
    pub fn new(flags: u32) -> Result<Self, Broken> {
        if flags & FIXED_NEWSTYLE == 0 || flags & !(FIXED_NEWSTYLE | NO_ZEROES) != 0 {
            return Err(Broken::Flags(flags));
        }
        let no_zeroes = flags & NO_ZEROES != 0;
        Ok(Self { tls: Tls::Never, no_zeroes, is_structured: false, allocation: None })
    }

    /// The same where nothing is said without TLS.
    #[must_use]
    pub fn with_tls_required(self) -> Self {
        Self { tls: Tls::Required, ..self }
    }

    /// The TLS handshake has ended well. What was negotiated before it is forgotten.
    #[must_use]
    pub fn is_behind_tls(self) -> Self {
        Self { tls: Tls::There, is_structured: false, allocation: None, ..self }
    }

    /// Takes an option with all of its data; what is to be sent is put behind `out`.
    pub fn option(
        &mut self,
        option: u32,
        data: &[u8],
        exports: &dyn Exports,
        out: &mut Vec<u8>,
    ) -> Next {
        if self.tls == Tls::Required {
            return before_tls(option, data, out);
        }
        let mut answer = Answer { option, out };
        match option {
            option::EXPORT_NAME => return self.export_name(data, exports, out),
            option::ABORT => {
                answer.ack();
                return Next::End;
            }
            option::LIST if data.is_empty() => match exports.names() {
                Ok(names) => {
                    for name in names {
                        answer.send(reply::SERVER, &[&length(&name), name.as_bytes()]);
                    }
                    answer.ack();
                }
                Err(why) => answer.refuse(reply::POLICY, &why),
            },
            option::LIST => answer.refuse(reply::INVALID, "a list takes no data"),
            option::INFO | option::GO => return self.go(option, data, exports, out),
            option::STRUCTURED_REPLY if data.is_empty() => {
                self.is_structured = true;
                answer.ack();
            }
            option::STRUCTURED_REPLY => answer.refuse(reply::INVALID, "it takes no data"),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => {
                self.contexts(option, data, exports, out);
            }
            option::STARTTLS if self.tls == Tls::There => {
                answer.refuse(reply::INVALID, "TLS is there already");
            }
            _ => answer.refuse(reply::UNSUPPORTED, "this option is not supported"),
        }
        Next::Option
    }

    fn chosen(&self, name: &str, export: Export) -> Chosen {
        Chosen {
            name: name.to_owned(),
            export,
            is_structured: self.is_structured,
            asks_allocation: self.is_structured && self.allocation.as_deref() == Some(name),
        }
    }

    /// The old way to choose, which can only be answered by what was asked for, or the end.
    fn export_name(&self, data: &[u8], exports: &dyn Exports, out: &mut Vec<u8>) -> Next {
        let name = std::str::from_utf8(data).ok().filter(|name| name.len() <= NAME_MAX);
        let Some((name, export)) = name.and_then(|name| Some((name, exports.find(name).ok()?)))
        else {
            return Next::End;
        };
        out.extend(export.size.to_be_bytes());
        out.extend(export.flags().to_be_bytes());
        if !self.no_zeroes {
            out.extend([0; 124]);
        }
        Next::Transmit(self.chosen(name, export))
    }

    fn go(&mut self, option: u32, data: &[u8], exports: &dyn Exports, out: &mut Vec<u8>) -> Next {
        let mut answer = Answer { option, out };
        let Some((name, wanted)) = named(data) else {
            answer.refuse(reply::INVALID, "not a name and a list of what is asked about it");
            return Next::Option;
        };
        let export = match exports.find(name) {
            Ok(export) => export,
            Err(why) => {
                answer.refuse(reply::UNKNOWN, &why);
                return Next::Option;
            }
        };
        let (size, flags) = (export.size.to_be_bytes(), export.flags().to_be_bytes());
        answer.send(reply::INFO, &[&info::EXPORT.to_be_bytes(), &size, &flags]);
        if wanted.contains(&info::NAME) {
            answer.send(reply::INFO, &[&info::NAME.to_be_bytes(), name.as_bytes()]);
        }
        if wanted.contains(&info::DESCRIPTION) {
            let text = export.description.as_bytes();
            answer.send(reply::INFO, &[&info::DESCRIPTION.to_be_bytes(), text]);
        }
        let sizes = [1, BLOCK_PREFERRED, PAYLOAD_MAX].map(u32::to_be_bytes);
        answer.send(reply::INFO, &[&info::BLOCK_SIZE.to_be_bytes(), sizes.as_flattened()]);
        answer.ack();
        match option {
            option::GO => Next::Transmit(self.chosen(name, export)),
            _ => Next::Option,
        }
    }

    fn contexts(&mut self, option: u32, data: &[u8], exports: &dyn Exports, out: &mut Vec<u8>) {
        let mut answer = Answer { option, out };
        let sets = option == option::SET_META_CONTEXT;
        if sets {
            // A new choice takes the place of the last, also where it fails.
            self.allocation = None;
        }
        if sets && !self.is_structured {
            let why = "contexts need structured replies, which were not asked for";
            return answer.refuse(reply::INVALID, why);
        }
        let Some((name, queries)) = queries(data) else {
            return answer.refuse(reply::INVALID, "not a name and a list of contexts");
        };
        if let Err(why) = exports.find(name) {
            return answer.refuse(reply::UNKNOWN, &why);
        }
        let lists_all = !sets && (queries.is_empty() || queries.contains(&"base:"));
        if lists_all || queries.contains(&ALLOCATION) {
            // Listing gives no number: there is nothing to refer to yet.
            let id = if sets { ALLOCATION_ID } else { 0 };
            answer.send(reply::META_CONTEXT, &[&id.to_be_bytes(), ALLOCATION.as_bytes()]);
            if sets {
                self.allocation = Some(name.to_owned());
            }
        }
        answer.ack();
    }
}

/// Takes an option where TLS is required and not there yet.
fn before_tls(option: u32, data: &[u8], out: &mut Vec<u8>) -> Next {
    let mut answer = Answer { option, out };
    match option {
        // It has no word for a refusal.
        option::EXPORT_NAME => return Next::End,
        option::ABORT => {
            answer.ack();
            return Next::End;
        }
        option::STARTTLS if data.is_empty() => {
            answer.ack();
            return Next::StartTls;
        }
        option::STARTTLS => answer.refuse(reply::INVALID, "it takes no data"),
        _ => answer.refuse(reply::TLS_REQUIRED, "begin TLS first (NBD_OPT_STARTTLS)"),
    }
    Next::Option
}

/// Writes replies to one option.
struct Answer<'a> {
    option: u32,
    out: &'a mut Vec<u8>,
}

impl Answer<'_> {
    fn send(&mut self, kind: u32, parts: &[&[u8]]) {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        self.out.extend(REPLY_MAGIC.to_be_bytes());
        self.out.extend(self.option.to_be_bytes());
        self.out.extend(kind.to_be_bytes());
        self.out.extend((len as u32).to_be_bytes());
        parts.iter().for_each(|part| self.out.extend_from_slice(part));
    }
    fn ack(&mut self) {
        self.send(reply::ACK, &[]);
    }
    fn refuse(&mut self, kind: u32, why: &str) {
        self.send(kind, &[why.as_bytes()]);
    }
}

fn length(text: &str) -> [u8; 4] {
    (text.len() as u32).to_be_bytes()
}

/// The data of `INFO` and `GO`: a name, and what is asked about it.
fn named(data: &[u8]) -> Option<(&str, Vec<u16>)> {
    let mut cursor = Cursor(data);
    let name = cursor.text()?;
    let count = cursor.u16()?;
    let wanted = (0..count).map(|_| cursor.u16()).collect::<Option<_>>()?;
    cursor.0.is_empty().then_some((name, wanted))
}

/// The data of both options for contexts: a name, and queries.
fn queries(data: &[u8]) -> Option<(&str, Vec<&str>)> {
    let mut cursor = Cursor(data);
    let name = cursor.text()?;
    let count = cursor.u32()?;
    // Each has a length of four bytes: what does not fit is no list.
    if count as usize > cursor.0.len() / 4 {
        return None;
    }
    let queries = (0..count).map(|_| cursor.text()).collect::<Option<_>>()?;
    cursor.0.is_empty().then_some((name, queries))
}
