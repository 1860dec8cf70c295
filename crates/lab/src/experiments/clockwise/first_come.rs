//! A bus that serves whoever asked first, one at a time: a SCSI string, or the host's PCI
//! bus.

use units::Duration;

/// What a device wants of the bus.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    /// It asks from then on, or from the end of what it had before.
    pub from: Duration,
    pub span: Duration,
}

/// What a device got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub begin: Duration,
    pub end: Duration,
    /// How many others wanted the bus, or had it, when this one asked.
    pub others: usize,
}

/// Serves what each device asks for, in the order of its list. Of two that ask at the same
/// time the first of the devices goes first.
pub(super) fn serve(asks: &[Vec<Ask>]) -> Vec<Vec<Turn>> {
    let mut turns: Vec<Vec<Turn>> =
        asks.iter().map(|list| Vec::with_capacity(list.len())).collect();
    // The end of the last turn of each device; it wants the bus until then.
    let mut until = vec![Duration::ZERO; asks.len()];
    let mut free = Duration::ZERO;
    loop {
        let coming = asks.iter().enumerate().filter_map(|(device, list)| {
            let ask = list.get(turns[device].len())?;
            Some((ask.from.max(until[device]), device, ask.span))
        });
        let Some((from, device, span)) = coming.min() else { return turns };
        let wants = |(other, until): (usize, &Duration)| other != device && *until > from;
        let others = until.iter().enumerate().filter(|&it| wants(it)).count();
        let begin = from.max(free);
        free = begin + span;
        until[device] = free;
        turns[device].push(Turn { begin, end: free, others });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asked_first_goes_first_and_the_others_are_counted() {
        let us = Duration::from_micros;
        let ask = |from, span| Ask { from: us(from), span: us(span) };
        let turn = |begin, end, others| Turn { begin: us(begin), end: us(end), others };
        let turns =
            serve(&[vec![ask(0, 10), ask(5, 10)], vec![ask(2, 4), ask(30, 4)], vec![ask(1, 3)]]);
        assert_eq!(
            turns[0],
            [turn(0, 10, 0), turn(17, 27, 2)],
            "its second asks at 10, when both others want the bus"
        );
        assert_eq!(turns[2], [turn(10, 13, 1)], "it asked before the second device");
        assert_eq!(turns[1], [turn(13, 17, 2), turn(30, 34, 0)]);
    }
}
