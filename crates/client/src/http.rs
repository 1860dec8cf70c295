//! As much HTTP as one call needs: a request with a JSON body, an answer of a
//! stated length, one connection each.

use crate::{Error, Result, connection};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;
use wire::Problem;

/// Longest answer that is read: a status of many thousand volumes fits.
const ANSWER_MAX: usize = 64 << 20;
const HEADERS_MAX: usize = 32;

/// Calls the daemon; the answer is a JSON value.
pub fn call<B: Serialize, A: DeserializeOwned>(
    socket: &Path,
    method: &str,
    path: &str,
    body: Option<&B>,
) -> Result<A> {
    let answer = exchange(socket, method, path, body)?;
    serde_json::from_slice(&answer).map_err(garbled)
}

/// Calls the daemon; a good answer is empty.
pub fn call_without_answer(socket: &Path, method: &str, path: &str) -> Result<()> {
    exchange(socket, method, path, None::<&()>).map(drop)
}

fn garbled(what: impl std::fmt::Display) -> Error {
    Error::Garbled(what.to_string())
}

/// Calls the daemon, and gives the body of a good answer.
pub fn exchange<B: Serialize>(
    socket: &Path,
    method: &str,
    path: &str,
    body: Option<&B>,
) -> Result<Vec<u8>> {
    let mut connection = connection::connect(socket)?;
    let body = body.map(|body| serde_json::to_vec(body).expect("messages are JSON"));
    // A daemon that has no place for the connection says so before it is asked, and closes
    // it: what it said counts for more than how that ended.
    let sent = connection::send_all(&connection, &request(method, path, body.as_deref()), &[]);
    let (answer, read) = connection::receive_all(&mut connection, ANSWER_MAX);
    let (status, body) = match parse(&answer) {
        Ok(parsed) => parsed,
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

fn request(method: &str, path: &str, body: Option<&[u8]>) -> Vec<u8> {
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         accept: application/json\r\n"
    );
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

/// Status and body of an answer that was read to its end.
fn parse(answer: &[u8]) -> Result<(u16, &[u8])> {
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
    let body = &answer[head..];
    match field("content-length").map(str::parse::<usize>) {
        None if body.is_empty() => Ok((status, body)),
        Some(Ok(len)) if len == body.len() => Ok((status, body)),
        Some(Ok(len)) if len > body.len() => {
            Err(Error::Broken(std::io::ErrorKind::UnexpectedEof.into()))
        }
        _ => Err(garbled("an answer of another length than stated")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_cut_or_garbled_is_an_error_and_never_a_panic() {
        let whole = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(parse(whole).unwrap(), (200, &b"{}"[..]));
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
        assert_eq!(parse(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap(), (204, &b""[..]));
    }
}
