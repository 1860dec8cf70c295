//! Events as lines, for programs that are processes of their own.

use sim::history::{Event, Kind};

/// One line.
pub fn line(event: &Event) -> String {
    let Event { client, at_invoke, at_return, kind, volume, cells } = event;
    let until = at_return.map_or("-".into(), |tick| tick.to_string());
    let kind = match kind {
        Kind::Write { stamp } => format!("write {stamp}"),
        Kind::Durable { stamp } => format!("durable {stamp}"),
        Kind::Read { stamps } => {
            let stamps: Vec<String> = stamps.iter().map(u64::to_string).collect();
            format!("read {}", stamps.join(","))
        }
        Kind::Sync => "sync -".into(),
        Kind::SyncAll => "sync-all -".into(),
        Kind::Crash => "crash -".into(),
    };
    format!("event {client} {at_invoke} {until} {volume} {} {} {kind}", cells.start, cells.end)
}

/// The event of a whole line; none for other lines.
pub fn event(line: &str) -> Option<Event> {
    let words: Vec<&str> = line.split(' ').collect();
    let ["event", client, at_invoke, until, volume, start, end, kind, value] = words[..] else {
        return None;
    };
    let number = |text: &str| text.parse::<u64>().ok();
    let kind = match kind {
        "write" => Kind::Write { stamp: number(value)? },
        "durable" => Kind::Durable { stamp: number(value)? },
        "read" => Kind::Read { stamps: value.split(',').map(number).collect::<Option<_>>()? },
        "sync" => Kind::Sync,
        "sync-all" => Kind::SyncAll,
        "crash" => Kind::Crash,
        _ => return None,
    };
    Some(Event {
        client: client.parse().ok()?,
        at_invoke: number(at_invoke)?,
        at_return: match until {
            "-" => None,
            tick => Some(number(tick)?),
        },
        kind,
        volume: volume.parse().ok()?,
        cells: number(start)?..number(end)?,
    })
}

#[test]
fn lines_say_what_events_say() {
    let kinds = [
        Kind::Write { stamp: 7 },
        Kind::Durable { stamp: 0 },
        Kind::Read { stamps: vec![0, 5, u64::MAX] },
        Kind::Sync,
        Kind::SyncAll,
        Kind::Crash,
    ];
    for (kind, at_return) in kinds.into_iter().zip([Some(9), None, Some(1), None, Some(2), None]) {
        let said =
            Event { client: 3, at_invoke: 4, at_return, kind, volume: 5, cells: 6..u64::MAX };
        assert_eq!(event(&line(&said)), Some(said));
    }
    assert_eq!(event("event 1 2"), None);
    assert_eq!(event("running 1 test"), None);
}
