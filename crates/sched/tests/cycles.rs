//! Cycles: the inequality of the UCSB scheduler, and what a sweep costs, each against
//! its definition.
#![allow(clippy::print_stdout)] // how much was covered is part of the result

use crate::common::Random;
use sched::{CycleStream, SweepCosts, shortest_cycle, time_cycle};
use units::{Bytes, Duration, Rate};

fn streams(random: &mut Random, most: u64) -> Vec<CycleStream> {
    (0..random.within(1, most))
        .map(|_| CycleStream {
            rate: Rate::per_second(random.within(10_000, 2_000_000)),
            zone: Rate::per_second(random.within(6_000_000, 42_000_000)),
            latency: Duration::from_micros(random.within(1_000, 30_000)),
        })
        .collect()
}

/// `r * T >= sum of L + sum of T * B / R`, multiplied out; the transfers of the code
/// are rounded up, so within one nanosecond a stream it may refuse.
#[test]
fn a_cycle_is_taken_iff_the_inequality_holds() {
    let mut random = Random::new(1);
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let streams = streams(&mut random, 20);
        let cycle = Duration::from_millis(random.within(10, 4_000));
        let part = random.within(300_000, 1_000_000) as u32;
        let exact: f64 = streams
            .iter()
            .map(|one| {
                let transfer =
                    cycle.as_nanos() as f64 * one.rate.get() as f64 / one.zone.get() as f64;
                one.latency.as_nanos() as f64 + transfer
            })
            .sum();
        let there = cycle.as_nanos() as f64 * f64::from(part) / 1e6;
        let near = streams.len() as f64 + 2.0;
        match time_cycle(part, cycle, &streams) {
            Ok(found) => {
                taken += 1;
                assert!(exact <= there && found.work.as_nanos() as f64 >= exact);
                assert!(found.shortest <= cycle + Duration::from_nanos(100_000));
            }
            Err(refusal) => {
                refused += 1;
                assert!(exact + near > there, "{refusal}");
                let excess = refusal.deadline.1.as_nanos() as f64;
                assert!((excess - (exact - there)).abs() <= near, "{refusal}");
            }
        }
    }
    println!("{taken} taken, {refused} refused");
    assert!(taken > 2_000 && refused > 2_000);
}

#[test]
fn the_shortest_cycle_is_taken_and_a_shorter_one_is_not() {
    let mut random = Random::new(2);
    let (mut found, mut never) = (0, 0);
    for _ in 0..5_000 {
        let streams = streams(&mut random, 40);
        let part = random.within(300_000, 1_000_000) as u32;
        let Some(shortest) = shortest_cycle(part, &streams) else {
            never += 1;
            let refusal = time_cycle(part, Duration::from_secs(1_000), &streams).unwrap_err();
            assert_eq!(refusal.shortest, None);
            continue;
        };
        found += 1;
        assert!(time_cycle(part, shortest, &streams).is_ok());
        let shorter = Duration::from_nanos(shortest.as_nanos() * 999 / 1_000);
        let refusal = time_cycle(part, shorter, &streams).unwrap_err();
        assert_eq!(refusal.shortest, Some(shortest));
    }
    println!("{found} found, {never} never");
    assert!(found > 1_000 && never > 300);
}

/// The seek time over a distance, by its definition.
fn seek(points: &[(u64, u64)], distance: u64) -> u64 {
    let Some(after) = points.iter().position(|&(at, _)| at >= distance) else {
        return points[points.len() - 1].1;
    };
    if after == 0 {
        return points[0].1;
    }
    let ((near, low), (far, high)) = (points[after - 1], points[after]);
    low + ((high - low) * (distance - near)).div_ceil(far - near)
}

/// Curves with steps and hollows; the requests anywhere, or where they cost most.
#[test]
fn no_seeks_of_a_sweep_take_longer_than_the_bound() {
    let mut random = Random::new(3);
    let (mut sweeps, mut reached) = (0, 0);
    for _ in 0..4_000 {
        let (mut at, mut time) = (random.within(0, 3), random.within(0, 50));
        let mut points = vec![(at, time)];
        for _ in 0..random.within(0, 8) {
            at += random.within(1, 30);
            time += random.within(0, 60);
            points.push((at, time));
        }
        let cylinders = random.within(1, 120);
        let stroke = cylinders + random.within(0, 60);
        let costs = SweepCosts {
            seek: points.iter().map(|&(d, t)| (d, Duration::from_nanos(t))).collect(),
            stroke,
            cylinders,
            span: random.within(0, 3),
            request: Duration::from_nanos(random.within(1, 20)),
        };
        for _ in 0..20 {
            let count = random.within(1, 12);
            let mut places: Vec<u64> = match random.within(0, 2) {
                0 => (0..count).map(|_| random.within(0, cylinders)).collect(),
                1 => (0..count).map(|n| n * cylinders / (count - 1).max(1)).collect(),
                // A few steps of a length at which the curve may be steep.
                _ => {
                    let step = random.within(1, 30);
                    (0..count).map(|n| (n * step).min(cylinders)).collect()
                }
            };
            places.sort_unstable();
            let downward = random.one_in(2);
            if downward {
                places.reverse();
            }
            // From as far away as the arm can be.
            let mut arm = None;
            let mut total = 0;
            for place in places {
                let distance = arm.map_or(stroke, |arm: u64| arm.abs_diff(place));
                total += seek(&points, distance) + costs.request.as_nanos();
                arm = Some(place + random.within(0, costs.span));
            }
            let bound = costs.sweep(count).as_nanos();
            assert!(total <= bound, "{total} above {bound}: {costs:?}");
            sweeps += 1;
            reached += u64::from(count > 2 && total + count >= bound);
        }
    }
    println!("{sweeps} sweeps, {reached} of three requests or more as long as the bound");
    assert!(reached > 300, "a bound that is never reached: {reached}");
}

/// The bound on a curve of which the answer is known: 1 ms and 10 us a cylinder, which
/// is concave, so that it is one more turn of the line for each request.
#[test]
fn a_straight_curve_costs_what_the_distance_costs() {
    let us = Duration::from_micros;
    let costs = SweepCosts {
        seek: vec![(0, us(1_000)), (1_000, us(11_000))],
        stroke: 1_000,
        cylinders: 600,
        span: 0,
        request: us(20_000),
    };
    assert_eq!(costs.sweep(0), Duration::ZERO);
    assert_eq!(costs.sweep(1), us(31_000));
    // Ten more, 600 cylinders together.
    let rounding = Duration::from_nanos(10);
    assert_eq!(costs.sweep(11), us(31_000 + 10 * 21_000 + 6_000) + rounding);
    let most = costs.most(us(250_001), us(3_000));
    assert_eq!(most, 11);
    assert_eq!(costs.check(us(250_001), us(3_000), 11).unwrap().left + rounding, us(1));
    let refusal = costs.check(us(250_001), us(3_000), 12).unwrap_err();
    let excess = us(20_999) + Duration::from_nanos(11);
    assert_eq!((refusal.deadline, refusal.fits), ((us(250_001), excess), 11));
    let plan = costs.plans(Rate::per_second(1 << 20), Bytes::kib(256), us(0), 3).nth(1).unwrap();
    // Two blocks last half a second: 22 requests and 7 ms.
    assert_eq!((plan.blocks, plan.streams, plan.memory), (2, 11, Bytes::kib(11 * 4 * 256)));
}
