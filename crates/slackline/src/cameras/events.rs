//! What happens, as it happens: a line for a person, or a JSON object for a program.
//!
//! Invariant: what a command says or is called may have a password in an address: it is told
//! without.

use serde_json::{Map, Value};
use std::time::{Duration, SystemTime};
use time::OffsetDateTime;

/// One of them.
#[derive(Clone, Debug)]
pub struct Event {
    at: SystemTime,
    /// None where it is of all of them.
    camera: Option<String>,
    kind: &'static str,
    what: String,
    next: String,
    figures: Map<String, Value>,
}

impl Event {
    /// Now, of this camera.
    pub fn new(camera: &str, kind: &'static str, what: impl Into<String>) -> Self {
        Self { camera: Some(camera.to_owned()), ..Self::of_all(kind, what) }
    }

    /// Now, of all cameras.
    pub fn of_all(kind: &'static str, what: impl Into<String>) -> Self {
        let (what, next, at) = (what.into(), String::new(), SystemTime::now());
        Self { at, camera: None, kind, what, next, figures: Map::new() }
    }

    /// What to do about it.
    #[must_use]
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = next.into();
        self
    }

    /// A figure of it.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.figures.insert(name.into(), value.into());
        self
    }

    /// What to do about it; nothing where there is nothing to say.
    pub fn next_step(&self) -> &str {
        &self.next
    }

    /// For a person who was told just now what to do.
    pub fn words_alone(&self) -> String {
        Self { next: String::new(), ..self.clone() }.words()
    }

    /// For a person.
    pub fn words(&self) -> String {
        let camera = self.camera.iter().map(|name| format!("{name}: ")).collect::<String>();
        let mut text = format!("{}  {camera}{}\n", utc(self.at), self.what);
        if !self.next.is_empty() {
            text += &format!("  next: {}\n", self.next);
        }
        text
    }

    /// For a program.
    pub fn json(&self) -> String {
        let mut all = self.figures.clone();
        all.insert("time".into(), utc(self.at).into());
        all.insert("camera".into(), self.camera.clone().into());
        all.insert("event".into(), self.kind.into());
        all.insert("detail".into(), self.what.clone().into());
        if !self.next.is_empty() {
            all.insert("next_step".into(), self.next.clone().into());
        }
        format!("{}\n", Value::Object(all))
    }
}

/// A time of the day, with its date: 2026-11-25 04:11:55Z.
pub fn utc(at: SystemTime) -> String {
    let at = OffsetDateTime::from(at);
    let (date, hour, minute, second) = (at.date(), at.hour(), at.minute(), at.second());
    let (year, month, day) = (date.year(), u8::from(date.month()), date.day());
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}Z")
}

/// As people say it.
pub fn span(time: Duration) -> String {
    report::span(units::Duration::from_secs(time.as_secs()))
}

/// The same text, without what stands before the @ in an address, and without what a part of it is
/// said to be: cameras are also asked for `/user=admin&password=x`. A password may have any character, so
/// that an address is taken to end with its word.
pub fn without_passwords(text: &str) -> String {
    let (mut told, mut rest) = (String::new(), text);
    while let Some(at) = rest.find("://") {
        let (before, address) = rest.split_at(at + 3);
        told.push_str(before);
        let ends = |c: char| c.is_whitespace() || "'\"<>".contains(c);
        let (mut address, behind) = address.split_at(address.find(ends).unwrap_or(address.len()));
        rest = behind;
        if let Some(at) = address.rfind('@') {
            told.push_str("***");
            address = &address[at..];
        }
        while let Some(at) = address.find('=') {
            told.push_str(&address[..=at]);
            told.push_str("***");
            let value = &address[at + 1..];
            address = &value[value.find(['&', '/', ';']).unwrap_or(value.len())..];
        }
        told.push_str(address);
    }
    told + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_with_their_date() {
        let at = |secs| utc(SystemTime::UNIX_EPOCH + Duration::from_secs(secs));
        assert_eq!(at(0), "1970-01-01 00:00:00Z");
        assert_eq!(at(951_868_799), "2000-02-29 23:59:59Z");
    }

    #[test]
    fn passwords_are_not_told() {
        for (said, told) in [
            ("rtsp://10.0.0.1/a: Connection refused", "rtsp://10.0.0.1/a: Connection refused"),
            ("[in] 'rtsp://me:p@ss@cam:554/a?x=1' no", "[in] 'rtsp://***@cam:554/a?x=***' no"),
            ("http://a:b@c, and https://d@e", "http://***@c, and https://***@e"),
            ("rtsp://me:p#a/s?s@cam/a: 401", "rtsp://***@cam/a: 401"),
            ("rtsp://cam/user=me&password=x/ch1 no", "rtsp://cam/user=***&password=***/ch1 no"),
            ("nobody@home ://", "nobody@home ://"),
        ] {
            assert_eq!(without_passwords(said), told);
        }
    }

    #[test]
    fn an_event_is_a_line_and_an_object() {
        let event = Event::new("gate", "down", "it ended").next("look at it").with("n", 3);
        assert!(event.words().ends_with("Z  gate: it ended\n  next: look at it\n"));
        let json: Value = serde_json::from_str(&event.json()).unwrap();
        assert_eq!((&json["event"], &json["n"]), (&"down".into(), &3.into()));
        assert_eq!((&json["camera"], &json["next_step"]), (&"gate".into(), &"look at it".into()));
    }
}
