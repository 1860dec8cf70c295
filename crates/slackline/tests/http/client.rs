//! As much of an HTTP client as the tests need: what is sent is written out, what comes is taken
//! apart.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The connection ended before the body did.
    pub is_cut: bool,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// The address of a daemon.
pub struct Http(pub PathBuf);

impl Http {
    /// One request on a connection of its own.
    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut connection = UnixStream::connect(&self.0).unwrap();
        let len = body.len().to_string();
        let mut all = vec![("host", "localhost"), ("connection", "close")];
        if matches!(method, "PUT" | "POST") {
            all.push(("content-length", &len));
        }
        all.extend(headers);
        send(&mut connection, method, path, &all);
        // The daemon may refuse before it has read everything.
        let _ = connection.write_all(body);
        receive(connection, method == "HEAD")
    }

    pub fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask("GET", path, headers, &[])
    }

    /// A request whose body is sent as far as it is given, and then the connection ends.
    pub fn cut(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) {
        let mut connection = UnixStream::connect(&self.0).unwrap();
        send(&mut connection, "PUT", path, headers);
        connection.write_all(body).unwrap();
        connection.shutdown(std::net::Shutdown::Write).unwrap();
        // Its end is when the daemon is done with it.
        let _ = connection.read_to_end(&mut Vec::new());
    }
}

pub fn send(connection: &mut UnixStream, method: &str, path: &str, headers: &[(&str, &str)]) {
    let lines = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    let head = format!("{method} {path} HTTP/1.1\r\n{}\r\n", lines.collect::<String>());
    connection.write_all(head.as_bytes()).unwrap();
}

pub fn receive(connection: UnixStream, is_head: bool) -> Answer {
    let mut input = BufReader::new(connection);
    let mut line = String::new();
    input.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).expect("a status line").parse().unwrap();
    let mut headers = Vec::new();
    loop {
        line.clear();
        input.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_owned(), value.to_owned()));
    }
    let mut answer = Answer { status, headers, body: Vec::new(), is_cut: false };
    let len = answer.header("content-length").map_or(0, |len| len.parse().unwrap());
    if !is_head {
        let read = input.take(len).read_to_end(&mut answer.body);
        answer.is_cut = read.is_err() || answer.body.len() as u64 != len;
    }
    answer
}
