//! Requests by hand, as no client of ours would send them.
#![allow(dead_code)] // each test file uses its part

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// One exchange by hand: status, media type and body of the answer.
pub fn ask(socket: &Path, method: &str, path: &str, body: &str) -> (u16, String, String) {
    ask_with(socket, method, path, "", body)
}

/// The same with more lines in the head, each with its end.
pub fn ask_with(
    socket: &Path,
    method: &str,
    path: &str,
    head: &str,
    body: &str,
) -> (u16, String, String) {
    let mut socket = UnixStream::connect(socket).unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n{head}\r\n{body}",
        body.len()
    );
    // A request that is too large is answered before it is read to its end.
    let _ = socket.write_all(request.as_bytes());
    let mut answer = String::new();
    let _ = socket.read_to_string(&mut answer);
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let kind = head.lines().find_map(|line| line.strip_prefix("content-type: "));
    (status, kind.unwrap_or("").into(), body.into())
}
