//! As much HTTP as one call needs: a request with a JSON body, an answer of a
//! stated length; one connection each, where a client does not [keep](Door::kept) them.

use crate::kept::Kept;
use crate::{Error, Result, connection};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wire::Problem;
use wire::control::{POOL_FIELD, RUN_FIELD};

/// Longest answer that is read: a status of many thousand volumes fits.
const ANSWER_MAX: usize = 64 << 20;
const HEADERS_MAX: usize = 32;
/// An answer that has no body, and says no length.
const NO_CONTENT: u16 = 204;

/// Where calls go to.
#[derive(Clone, Debug)]
pub struct Door {
    /// The control socket.
    pub socket: PathBuf,
    /// A daemon that serves another pool than this refuses the call.
    pub pool: Option<Arc<str>>,
    /// The run of the daemon that has answered last; 0 while none has.
    pub run: Arc<AtomicU64>,
    /// Connections for the next calls, where they are kept.
    pub kept: Option<Kept>,
}

impl Door {
    /// To the daemon at this socket, whatever it serves.
    pub fn new(socket: PathBuf) -> Self {
        Self { socket, pool: None, run: Arc::default(), kept: None }
    }

    /// A connection for the next call: one that waits for it, or a new one.
    fn connection(&self) -> Result<UnixStream> {
        let waiting = self.kept.as_ref().and_then(Kept::take);
        match waiting.filter(|waiting| connection::wait_for_answers(waiting).is_ok()) {
            Some(waiting) => Ok(waiting),
            None => connection::connect(&self.socket),
        }
    }
}

/// Calls the daemon; the answer is a JSON value.
pub fn call<B: Serialize, A: DeserializeOwned>(
    door: &Door,
    method: &str,
    path: &str,
    body: Option<&B>,
) -> Result<A> {
    let answer = exchange(door, method, path, body)?;
    serde_json::from_slice(&answer).map_err(garbled)
}

/// Calls the daemon; a good answer is empty.
pub fn call_without_answer(door: &Door, method: &str, path: &str) -> Result<()> {
    exchange(door, method, path, None::<&()>).map(drop)
}

fn garbled(what: impl std::fmt::Display) -> Error {
    Error::Garbled(what.to_string())
}

/// Calls the daemon, and gives the body of a good answer.
pub fn exchange<B: Serialize>(
    door: &Door,
    method: &str,
    path: &str,
    body: Option<&B>,
) -> Result<Vec<u8>> {
    let mut connection = door.connection()?;
    let body = body.map(|body| serde_json::to_vec(body).expect("messages are JSON"));
    // A daemon that has no place for the connection says so before it is asked, and closes
    // it: what it said counts for more than how that ended.
    let asked = request(door, (method, path), body.as_deref());
    let sent = connection::send_all(&connection, &asked, &[]);
    let is_whole = |answer: &[u8]| matches!(parse(answer), Ok(answer) if answer.is_delimited);
    let (answer, read) = connection::receive_all(&mut connection, ANSWER_MAX, is_whole);
    let (status, body) = match parse(&answer) {
        Ok(Answer { run, status, body, is_last, is_delimited }) => {
            if let Some(run) = run {
                door.run.store(run, Ordering::Relaxed);
            }
            if let Some(kept) =
                door.kept.as_ref().filter(|_| is_delimited && !is_last && sent.is_ok())
            {
                kept.put(connection);
            }
            (status, body)
        }
        Err(error) => {
            let sent = sent.err().map(Error::from);
            return Err(sent.or(read.err()).unwrap_or(error));
        }
    };
    if (200..300).contains(&status) {
        return Ok(body.to_vec());
    }
    let problem: Problem = serde_json::from_slice(body)
        .map_err(|_| garbled(format!("HTTP status {status} without a problem")))?;
    Err(Error::Problem(Box::new(problem)))
}

fn request(door: &Door, (method, path): (&str, &str), body: Option<&[u8]>) -> Vec<u8> {
    let mut head =
        format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\naccept: application/json\r\n");
    if door.kept.is_none() {
        head.push_str("connection: close\r\n");
    }
    if let Some(pool) = &door.pool {
        head.push_str(&format!("{POOL_FIELD}: {pool}\r\n"));
    }
    if let Some(body) = body {
        let fields =
            format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
        head.push_str(&fields);
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body.unwrap_or_default());
    bytes
}

/// What the daemon has answered.
#[derive(Debug, PartialEq, Eq)]
struct Answer<'a> {
    status: u16,
    /// The daemon's run, where it says so.
    run: Option<u64>,
    body: &'a [u8],
    /// Its end does not depend on that of the connection.
    is_delimited: bool,
    /// The daemon ends the connection behind it.
    is_last: bool,
}

/// An answer that was read to its end.
fn parse(answer: &[u8]) -> Result<Answer<'_>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let head = response.parse(answer).map_err(garbled)?;
    let (httparse::Status::Complete(head), Some(status)) = (head, response.code) else {
        let cut = std::io::ErrorKind::UnexpectedEof;
        return Err(Error::Broken(cut.into()));
    };
    let field = |name: &str| {
        let found = response.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name));
        found.and_then(|field| std::str::from_utf8(field.value).ok())
    };
    if field("transfer-encoding").is_some() {
        return Err(garbled("an answer without a stated length"));
    }
    let run = field(RUN_FIELD).and_then(|run| run.parse().ok());
    let is_last = field("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    let body = &answer[head..];
    let whole = |is_delimited| Answer { status, run, body, is_delimited, is_last };
    match field("content-length").map(str::parse::<usize>) {
        None if body.is_empty() => Ok(whole(status == NO_CONTENT)),
        Some(Ok(len)) if len == body.len() => Ok(whole(true)),
        Some(Ok(len)) if len > body.len() => {
            Err(Error::Broken(std::io::ErrorKind::UnexpectedEof.into()))
        }
        _ => Err(garbled("an answer of another length than stated")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    #[test]
    fn an_answer_that_is_cut_or_garbled_is_an_error_and_never_a_panic() {
        let whole = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        let said = |status, run, body| {
            let (is_delimited, is_last) = (true, false);
            Answer { status, run, body, is_delimited, is_last }
        };
        assert_eq!(parse(whole).unwrap(), said(200, None, &b"{}"[..]));
        for cut in 0..whole.len() {
            let error = parse(&whole[..cut]).unwrap_err();
            assert!(matches!(error, Error::Broken(_)), "cut at {cut}: {error}");
        }
        for bad in [
            "nonsense\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        ] {
            assert!(matches!(parse(bad.as_bytes()), Err(Error::Garbled(_))), "{bad}");
        }
        let empty = b"HTTP/1.1 204 No Content\r\nslackline-run: 7\r\n\r\n";
        assert_eq!(parse(empty).unwrap(), said(204, Some(7), &b""[..]));
        let last = b"HTTP/1.1 200 OK\r\nConnection: Close\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(parse(last).unwrap(), Answer { is_last: true, ..said(200, None, b"") });
        let to_the_end = b"HTTP/1.1 200 OK\r\n\r\n";
        let ends_with_it = Answer { is_delimited: false, ..said(200, None, b"") };
        assert_eq!(parse(to_the_end).unwrap(), ends_with_it);
    }

    /// Serves three connections, one behind the other: on each two answers, each the number of its connection.
    /// The second says that it is the last.
    fn serve_three(listener: &UnixListener) {
        for (number, connection) in listener.incoming().take(3).enumerate() {
            let mut connection = connection.unwrap();
            for last in ["", "connection: close\r\n"] {
                let mut asked = [0; 4096];
                match connection.read(&mut asked) {
                    Ok(1..) => {}
                    ended => assert_eq!(ended.unwrap(), 0, "it is used no more"),
                }
                let head = format!("HTTP/1.1 200 OK\r\n{last}content-length: 1\r\n\r\n{number}");
                let _gone = connection.write_all(head.as_bytes());
            }
        }
    }

    #[test]
    fn calls_use_the_connections_of_those_before_where_they_are_kept() {
        let dir = tempfile::Builder::new().prefix("slackline-").tempdir().unwrap();
        let socket = dir.path().join("s.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let serving = std::thread::spawn(move || serve_three(&listener));
        let keeping = Door { kept: Some(Kept::default()), ..Door::new(socket.clone()) };
        let number = |door: &Door| call::<(), u64>(door, "GET", "/", None).unwrap();
        assert_eq!(number(&keeping), 0);
        assert_eq!(number(&keeping.clone()), 0, "and its clones");
        assert_eq!(number(&keeping), 1, "the daemon said that it ends the one before");
        drop(keeping);
        assert_eq!(number(&Door::new(socket)), 2);
        serving.join().unwrap();
    }
}
