//! What is seen of the state: a verdict, the disks with what they did sample, the streams, or one of
//! them.

use super::state::{Order, State};
use crate::output::{percent, span};
use crate::status;
use crate::stream::direction;
use client::control::{Disk, Stream, Verdict, Weight};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Sparkline, Table, TableState, Wrap};

/// Draws it all.
pub fn draw(frame: &mut Frame<'_>, state: &State) {
    let status = &state.overview.status;
    let findings = state.overview.findings.len().min(3) as u16;
    let disks = (status.disks.len() as u16).saturating_mul(2).saturating_add(1);
    // A screen that is too low leaves out from below, and never the verdict.
    let areas = Layout::vertical([
        Constraint::Length(1 + findings),
        Constraint::Max(disks),
        Constraint::Min(0),
        Constraint::Length(1),
    ]);
    let [top, middle, rest, keys] = areas.areas(frame.area());
    frame.render_widget(Paragraph::new(verdict(state)), top);
    disk_lines(frame, state, middle);
    match state.chosen().filter(|_| state.is_open) {
        Some((_, stream)) => one(frame, state, stream, rest),
        None => all(frame, state, rest),
    }
    let words = " up/down choose  Enter look into it  s sort  r turn round  p pause  q end";
    frame.render_widget(Paragraph::new(words).style(faint()), keys);
}

fn faint() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn bold(colour: Color) -> Style {
    Style::new().fg(colour).add_modifier(Modifier::BOLD)
}

fn colour(weight: Weight) -> Color {
    match weight {
        Weight::Broken => Color::Red,
        Weight::Look => Color::Yellow,
    }
}

fn verdict(state: &State) -> Vec<Line<'_>> {
    let (overview, status) = (&state.overview, &state.overview.status);
    let worst = overview.findings.first().map(|one| one.weight);
    let mut head = vec![Span::styled(
        format!(" {} ", overview.verdict),
        bold(worst.map_or(Color::Green, colour)),
    )];
    let about = format!(
        " pool {}, served for {}, policy {}",
        status.pool,
        span(status.up_ns),
        status.policy
    );
    head.push(Span::raw(about));
    if state.is_paused {
        head.push(Span::styled("  paused: p goes on", bold(Color::Yellow)));
    }
    if let Some(why) = &state.lost {
        head.push(Span::styled(format!("  no answer: {why}"), bold(Color::Red)));
    }
    let mut lines = vec![Line::from(head)];
    for finding in overview.findings.iter().take(3) {
        let mark = format!("  {}: ", status::mark(finding.weight));
        lines.push(Line::from(vec![
            Span::styled(mark, bold(colour(finding.weight))),
            Span::raw(&*finding.what),
        ]));
    }
    lines
}

/// A line for each disk, and one below it with what it did sample.
fn disk_lines(frame: &mut Frame<'_>, state: &State, area: Rect) {
    let disks = &state.overview.status.disks;
    let lines = Layout::vertical(
        std::iter::once(Constraint::Length(1)).chain(disks.iter().map(|_| Constraint::Length(2))),
    )
    .split(area);
    let head = format!(
        " {:<28}{:>10}{:>9}{:>6}{:>7}  {:<14}{}",
        "disk", "promised", "slack", "late", "errors", "contract", "best effort"
    );
    frame.render_widget(Paragraph::new(head).style(faint()), lines[0]);
    for (at, disk) in disks.iter().enumerate() {
        let area = lines[at + 1];
        if area.height == 0 {
            break;
        }
        let sample = state.disks[at].back().copied().unwrap_or_default();
        let line = format!(
            " {:<28}{:>10}{:>9}{:>6}{:>7}  {:<14}{}",
            tail(&format!("{} {}", disk.disk, disk.device), 27),
            percent(disk.utilisation_ppm),
            disk.slack_ns.to_string(),
            disk.late_requests,
            disk.errors,
            sample.contract.to_string(),
            sample.best_effort,
        );
        let style = if is_bad(disk) { bold(Color::Red) } else { Style::new() };
        let [figures, graphs] =
            Layout::vertical([Constraint::Length(1), Constraint::Length(1)]).areas(area);
        frame.render_widget(Paragraph::new(line).style(style), figures);
        let past = &state.disks[at];
        let contract = past.iter().map(|one| one.contract.get());
        let best_effort = past.iter().map(|one| one.best_effort.get());
        let slack = past.iter().map(|one| one.slack.as_nanos());
        let third = Constraint::Ratio(1, 3);
        let [one, two, three] = Layout::horizontal([third; 3]).spacing(1).areas(graphs);
        graph(frame, one, " contract ", contract, Color::Blue);
        graph(frame, two, "best effort ", best_effort, Color::Yellow);
        graph(frame, three, "slack ", slack, Color::Green);
    }
}

fn is_bad(disk: &Disk) -> bool {
    disk.late_requests > 0
        || disk.errors > 0
        || disk.hangs_for().is_some()
        || disk.profile.verdict != Verdict::Fresh
}

/// The end of a text that is too long, which says more than its beginning.
fn tail(text: &str, most: usize) -> String {
    let count = text.chars().count();
    match count > most {
        true => std::iter::once('…').chain(text.chars().skip(count + 1 - most)).collect(),
        false => text.into(),
    }
}

/// What was sample, the newest on the right, with its name on the left.
fn graph(
    frame: &mut Frame<'_>,
    area: Rect,
    name: &str,
    past: impl DoubleEndedIterator<Item = u64>,
    colour: Color,
) {
    let [left, right] =
        Layout::horizontal([Constraint::Length(name.len() as u16), Constraint::Min(0)]).areas(area);
    frame.render_widget(Paragraph::new(name).style(faint()), left);
    let mut shown: Vec<u64> = past.rev().take(right.width.into()).collect();
    shown.resize(right.width.into(), 0);
    shown.reverse();
    frame.render_widget(Sparkline::default().data(shown).style(Style::new().fg(colour)), right);
}

fn all(frame: &mut Frame<'_>, state: &State, area: Rect) {
    let status = &state.overview.status;
    let marked = |order: Order| match state.order == order {
        true => format!("{}{}", order.words(), if state.is_turned { "▴" } else { "▾" }),
        false => order.words().into(),
    };
    let heads = [
        marked(Order::Opened),
        marked(Order::Volume),
        "user".into(),
        "mode".into(),
        marked(Order::Asked),
        marked(Order::Got),
        marked(Order::Late),
        "not ready".into(),
        "slowed".into(),
        marked(Order::Left),
    ];
    let head = Row::new(heads).style(faint());
    let row = |stream: &&Stream| {
        let size = status.full_at(&stream.volume);
        let left = stream.left(size).map_or_else(|| "-".into(), span);
        let asked = &stream.contract.rate_bytes_per_second;
        let is_late = stream.late_requests > 0 && stream.miss_per_billion.is_none();
        let late = Cell::from(stream.late_requests.to_string());
        let cells = [
            Cell::from(stream.id.to_string()),
            stream.volume.clone().into(),
            stream.user.clone().into(),
            direction(stream.mode).into(),
            format!("{asked}{}", crate::stream::no_promise(stream.promised)).into(),
            got(state, stream).into(),
            if is_late { late.style(bold(Color::Red)) } else { late },
            stream.underruns.to_string().into(),
            stream.throttled.to_string().into(),
            left.into(),
        ];
        Row::new(cells)
    };
    let sorted = state.sorted();
    let title = match sorted.len() {
        0 => " no streams are open ".into(),
        count => format!(" {} ", crate::output::counted(count as u64, "stream")),
    };
    let widths = [
        Constraint::Length(7),
        Constraint::Min(12),
        Constraint::Length(10),
        Constraint::Length(7),
        Constraint::Length(12),
        Constraint::Length(10),
        Constraint::Length(5),
        Constraint::Length(9),
        Constraint::Length(7),
        Constraint::Length(13),
    ];
    let table = Table::new(sorted.iter().map(row), widths)
        .header(head)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .block(Block::bordered().title(title));
    let mut at = TableState::new().with_selected(state.chosen().map(|(at, _)| at));
    frame.render_stateful_widget(table, area, &mut at);
}

fn got(state: &State, stream: &Stream) -> String {
    match (stream.attached, state.got(stream.id)) {
        (false, _) => "no program".into(),
        (true, Some(rate)) => rate.to_string(),
        (true, None) => "...".into(),
    }
}

/// One stream, looked into.
fn one(frame: &mut Frame<'_>, state: &State, stream: &Stream, area: Rect) {
    let block = Block::bordered().title(format!(" stream {} on {} ", stream.id, stream.volume));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let size = state.overview.status.full_at(&stream.volume);
    let left = stream.left(size).map_or_else(|| "-".into(), span);
    let contract = &stream.contract;
    let lines = [
        format!("{} by {}", direction(stream.mode), stream.user),
        format!(
            "asked   {} in blocks of {}, bursts of {}{}",
            contract.rate_bytes_per_second,
            contract.block_bytes,
            contract.burst_bytes,
            crate::stream::no_promise(stream.promised)
        ),
        format!(
            "got     {}; {} in all, in {}",
            got(state, stream),
            stream.moved_bytes,
            span(stream.open_ns)
        ),
        format!(
            "late    {} of {} requests, by {} at the most; the longest took {}",
            stream.late_requests, stream.requests, stream.late_max_ns, stream.latency_max_ns
        ),
        format!(
            "window not ready {} times, program slowed {} times",
            stream.underruns, stream.throttled
        ),
        format!(
            "at      {}, durable to {}; full in {left}",
            stream.position_bytes, stream.durable_bytes
        ),
        format!("window  {}; gaps of {}", stream.window_bytes, stream.gap_bytes),
    ];
    let text: Vec<Line<'_>> = lines.into_iter().map(Line::from).collect();
    let [words, below] = Layout::vertical([Constraint::Length(8), Constraint::Min(0)]).areas(inner);
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }), words);
    let [rates, lates] =
        Layout::vertical([Constraint::Ratio(2, 3), Constraint::Ratio(1, 3)]).areas(below);
    let empty = std::collections::VecDeque::new();
    let past = state.streams.get(&stream.id).unwrap_or(&empty);
    graph(frame, rates, "got  ", past.iter().map(|one| one.got.get()), Color::Blue);
    graph(frame, lates, "late ", past.iter().map(|one| one.late), Color::Red);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::state::tests::overview;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent};

    fn seen(state: &State, wide: u16, high: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(wide, high)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        terminal.backend().to_string()
    }

    fn state() -> State {
        let at = |seconds, moved| {
            overview(seconds, &[("alpha", 2_000_000, moved, 0), ("beta", 1_000_000, moved, 3)])
        };
        let mut state = State::new(at(1, 0));
        state.take(at(2, 1_500_000));
        state
    }

    #[test]
    fn the_screen_has_the_verdict_each_disk_and_each_stream() {
        let mut state = state();
        let screen = seen(&state, 110, 24);
        for said in [
            "1 thing is broken",
            "BROKEN: stream 1 on beta: 3 of 9 requests late",
            "pool tape, served for 2 s",
            "by-id/ata-a-very-long-name",
            "25.00 %",
            "5 MB/s",
            "alpha",
            "2 MB/s",
            "1.50 MB/s",
            "q end",
        ] {
            assert!(screen.contains(said), "{said}\n{screen}");
        }
        state.lost("connection refused".into());
        assert!(seen(&state, 140, 24).contains("no answer: connection refused"));
        state.key(KeyEvent::from(KeyCode::Down));
        state.key(KeyEvent::from(KeyCode::Enter));
        let screen = seen(&state, 110, 24);
        for said in ["stream 1 on beta", "late    3 of 9 requests", "blocks of 256 KiB"] {
            assert!(screen.contains(said), "{said}\n{screen}");
        }
    }

    #[test]
    fn no_terminal_is_too_small() {
        let mut state = state();
        for _ in 0..2 {
            for (wide, high) in [(1, 1), (10, 2), (20, 5), (40, 10), (300, 3), (3, 300)] {
                seen(&state, wide, high);
            }
            state.key(KeyEvent::from(KeyCode::Enter));
        }
    }
}
