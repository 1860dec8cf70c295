//! How long a request of higher priority waits for the disk, on average.
//!
//! It comes at any moment of another request's service with equal probability,
//! and waits until the command that the disk is at ends (semi-preemptible I/O,
//! section 3). Results are rounded down to a nanosecond.

use units::Duration;

/// Equation 1: the request is one command. Half of the time it takes.
pub fn expected_waiting(seek: Duration, rotation: Duration, transfer: Duration) -> Duration {
    (seek + rotation + transfer) / 2
}

/// Equation 2: the request is served by `commands`, between which the disk is free
/// for `idle` in total. `1/2 * sum(T^2) / (sum(T) + idle)`; nothing for no commands.
pub fn expected_waiting_of(commands: &[Duration], idle: Duration) -> Duration {
    let nanos = || commands.iter().map(|command| u128::from(command.as_nanos()));
    let squares: u128 = nanos().map(|time| time * time).sum();
    let total = nanos().sum::<u128>() + u128::from(idle.as_nanos());
    Duration::from_nanos((squares / (2 * total).max(1)) as u64)
}

/// The longest wait: for the longest command.
pub fn longest_waiting_of(commands: &[Duration]) -> Duration {
    commands.iter().copied().max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_example_of_section_1_1_waits_23_ms_and_then_2_03_ms() {
        // 500 kB: a seek of 14 ms, a rotation of 7 ms, 25 ms of transfer.
        assert_eq!(expected_waiting(ms(14), ms(7), ms(25)), ms(23));
        assert_eq!(longest_waiting_of(&[ms(14 + 7 + 25)]), ms(46));
        // Two seeks of 9 ms, 25 chunks of 1 ms, 3 ms of waiting that is free.
        let commands: Vec<_> = [ms(9); 2].into_iter().chain([ms(1); 25]).collect();
        let waiting = expected_waiting_of(&commands, ms(3));
        assert_eq!(waiting, Duration::from_nanos(2_032_608), "187 / 92 ms, printed as 2.03");
        assert_eq!(longest_waiting_of(&commands), ms(9));
    }

    #[test]
    fn each_part_of_section_3_shortens_the_wait_as_printed() {
        // Chunks of 1 ms: from 12.5 ms to 0.5 ms.
        assert_eq!(expected_waiting_of(&[ms(25)], ms(0)), Duration::from_micros(12_500));
        assert_eq!(expected_waiting_of(&[ms(1); 25], ms(0)), Duration::from_micros(500));
        // A just-in-time seek: 4 of 5 ms of rotation are free; from 2.5 ms to 0.1 ms.
        assert_eq!(expected_waiting_of(&[ms(1)], ms(4)), Duration::from_micros(100));
        // A split seek: from 7 ms to 4.5 ms.
        assert_eq!(expected_waiting_of(&[ms(9); 2], ms(0)), Duration::from_micros(4_500));
    }

    #[test]
    fn one_command_is_equation_1_and_none_is_no_wait() {
        assert_eq!(expected_waiting_of(&[ms(46)], ms(0)), expected_waiting(ms(14), ms(7), ms(25)));
        assert_eq!(expected_waiting_of(&[], ms(0)), Duration::ZERO);
        assert_eq!(longest_waiting_of(&[]), Duration::ZERO);
        assert!(expected_waiting_of(&[Duration::MAX], ms(0)) > Duration::from_secs(1 << 33));
    }
}
