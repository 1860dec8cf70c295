//! Something is tried with the queues, and undone where it fails, by the [journal](super::journal).

use super::Queues;
use super::journal::{Begun, Change};
use super::waiting::Waiting;
use crate::request::Flow;
use alloc::vec::Vec;
use units::Instant;

impl Queues {
    /// Something is tried from here on: [`Queues::keep`] or [`Queues::undo`] ends it.
    pub(crate) fn begin(&mut self) -> Begun {
        self.journal.tried += 1;
        Begun(self.journal.changes.len())
    }

    /// What was tried stays.
    pub(crate) fn keep(&mut self, _: Begun) {
        self.journal.tried -= 1;
        if self.journal.tried == 0 {
            self.journal.changes = Vec::new(); // rarely is there any, and it may have been much
        }
    }

    /// All is as it was when that was begun.
    pub(crate) fn undo(&mut self, begun: Begun) {
        let tried = core::mem::take(&mut self.journal.tried); // nothing of this is noted
        while self.journal.changes.len() > begun.0 {
            match self.journal.changes.pop().expect("there are more") {
                Change::Line { flow, before: Some(line) } => {
                    self.ordered.insert(flow, line);
                }
                Change::Line { flow, before: None } => {
                    self.ordered.remove(&flow);
                }
                Change::Request { key, before } => self.put_back(key, before),
            }
        }
        self.journal.tried = tried - 1;
        if self.journal.tried == 0 {
            self.journal.changes = Vec::new();
        }
    }

    fn put_back(&mut self, key: u64, before: Option<(Waiting, bool)>) {
        self.take(key);
        let Some((waiting, is_released)) = before else { return };
        let slot = self.place(waiting);
        if self.is_first_of_flow(&waiting) {
            let now = if is_released { Instant::MAX } else { Instant::EPOCH };
            self.enqueue(slot, now);
        }
    }

    /// A request is about to change, to come or to go.
    pub(super) fn note(&mut self, key: u64) {
        if self.journal.tried == 0 {
            return;
        }
        let before = self.get(key).map(|waiting| {
            let is_early = self.early.contains_key(&(waiting.times.release, waiting.arrival));
            (*waiting, !is_early)
        });
        self.journal.changes.push(Change::Request { key, before });
    }

    /// A line is about to change.
    pub(super) fn note_line(&mut self, flow: Flow) {
        if self.journal.tried > 0 {
            let before = self.ordered.get(&flow).cloned();
            self.journal.changes.push(Change::Line { flow, before });
        }
    }

    /// A command begins or ends.
    pub(super) fn assert_nothing_is_tried(&self) {
        assert!(self.journal.tried == 0, "a command comes or goes while something is tried");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Class, Times};
    use crate::task::TaskId;
    use units::{Command, Duration};

    fn waiting(key: u64, class: Class) -> Waiting {
        let at = |ms: u64| Instant::EPOCH + Duration::from_millis(ms);
        let is_real_time = matches!(class, Class::RealTime(_));
        let deadline = if is_real_time { at(100 + key) } else { Instant::MAX };
        Waiting {
            key,
            arrival: key,
            submitted: at(0),
            class,
            command: Command::Flush,
            times: Times { release: at(key % 3), deadline },
            cost: Duration::from_millis(1),
            in_sweep: Duration::ZERO,
            beside_ways: Duration::ZERO,
            period: Duration::ZERO,
            synchronous: class.is_synchronous(),
            promised: deadline,
            overheads: Duration::ZERO,
            begun: false,
            commands: 1,
            gaps: 1,
            resume: Duration::ZERO,
            over_cost: false,
            long: false,
        }
    }

    /// Each request with the queues that it is in.
    fn all(queues: &Queues) -> Vec<(Waiting, [usize; 5])> {
        let of = |waiting: &Waiting| {
            let count = |all: &mut dyn Iterator<Item = &Waiting>| {
                all.filter(|it| it.key == waiting.key).count()
            };
            let long = queues.long.values().filter(|&&slot| queues.at(slot).key == waiting.key);
            let sweeps = [false, true].map(|it| count(&mut queues.best_effort_by_age(it)));
            let in_queues = [
                count(&mut queues.ready()),
                count(&mut queues.early()),
                sweeps[0] + 2 * sweeps[1],
                count(&mut queues.background()),
                long.count(),
            ];
            (*waiting, in_queues)
        };
        queues.by_arrival().into_iter().map(of).collect()
    }

    /// Each change by itself.
    #[test]
    fn each_change_is_undone() {
        let stream = Class::RealTime(TaskId { index: 0, generation: 0 });
        let server = Class::server(TaskId { index: 1, generation: 0 }, Duration::from_millis(1));
        let flow = Flow(1);
        let ordered = Class::BestEffort { synchronous: false, flow, ordered: true };
        let mut queues = Queues::default();
        let classes = [stream, stream, server, server, ordered, ordered, Class::Background];
        let others = [Class::best_effort(true), Class::best_effort(false)];
        for (key, class) in (1..).zip(classes.into_iter().chain(others)) {
            queues.insert(waiting(key, class), Instant::EPOCH + Duration::from_millis(1));
        }
        let by = Instant::EPOCH + Duration::from_millis(50);
        let times = Times { release: Instant::EPOCH, deadline: by };
        queues.enter(3, times);
        queues.set_over_cost(1);
        queues.set_long(9);
        let ms = Duration::from_millis(7);
        type Made<'a> = (&'static str, &'a dyn Fn(&mut Queues));
        let changes: [Made<'_>; 16] = [
            ("insert", &|it| it.insert(waiting(20, Class::best_effort(true)), by)),
            ("insert behind", &|it| {
                let class = Class::BestEffort { synchronous: true, flow, ordered: true };
                it.insert(waiting(21, class), by);
            }),
            ("take", &|it| assert!(it.take(2).is_some())),
            ("settle", &|it| {
                it.take(5).expect("it waits");
                assert_eq!(it.settle(5, ordered), Some(6));
            }),
            ("promise", &|it| it.promise(2, by)),
            ("charge", &|it| it.charge(2, ms)),
            ("charge anew", &|it| it.charge_anew(3, ms, ms)),
            ("charge a server's", &|it| it.charge_server(4, ms, ms)),
            ("set way", &|it| it.set_way(2, 9, ms)),
            ("leave", &|it| it.leave(3)),
            ("set over cost", &|it| it.set_over_cost(2)),
            ("set long", &|it| it.set_long(8)),
            ("call long", &|it| it.call_long()),
            ("bring back", &|it| assert!(it.bring_back(by))),
            ("set deadline", &|it| it.set_deadline(3, by + ms)),
            ("enter", &|it| assert_eq!(it.enter(4, times).key, 4)),
        ];
        let before = (all(&queues), queues.over_cost, queues.ordered.clone());
        for (what, change) in changes {
            let begun = queues.begin();
            change(&mut queues);
            let is = (all(&queues), queues.over_cost, queues.ordered.clone());
            assert!(is != before, "{what} changes something");
            queues.undo(begun);
            let is = (all(&queues), queues.over_cost, queues.ordered.clone());
            assert_eq!(is, before, "{what}");
        }
        // All of them, those in the middle kept within.
        let begun = queues.begin();
        for (at, (_, change)) in changes.iter().take(2).chain(&changes[4..8]).enumerate() {
            let within = queues.begin();
            change(&mut queues);
            match at % 2 {
                0 => queues.keep(within),
                _ => queues.undo(within),
            }
        }
        queues.undo(begun);
        assert_eq!((all(&queues), queues.over_cost, queues.ordered.clone()), before);
        assert!(queues.journal.changes.is_empty());
    }
}
