//! Settings of policies: limits, names, and that a chosen value is what the policy goes by.

use crate::common::{Plain, World, ms, read};
use sched::{Admission, Class, Flow, Options, PolicyKind, Schedule, Task, WrongSetting};
use std::collections::BTreeSet;
use units::{Duration, Instant};

fn with(policy: PolicyKind, name: &str, text: &str) -> PolicyKind {
    policy.with(name, text).unwrap()
}

#[test]
fn a_policy_with_other_values_is_another_and_with_its_defaults_the_same() {
    let gss = with(policies::GSS, "group", "9");
    assert_ne!(gss, policies::GSS);
    assert_eq!(gss.name, policies::GSS.name);
    assert_eq!(with(gss, "group", "4"), policies::GSS);
    let chosen: Vec<_> = gss.chosen().map(|(setting, value)| (setting.name, value)).collect();
    assert_eq!(chosen, [("group", 9)]);
    assert_eq!(format!("{gss:?}"), "PolicyKind(gss, group 9)");
}

#[test]
fn what_is_beyond_the_limits_is_refused_with_the_limits_and_an_unknown_name_with_the_names() {
    let refused = |text: &str| policies::DRR.with("quantum", text).unwrap_err().to_string();
    let range = "the setting quantum is a time with its unit (20ms, 4s), from 1 ms to 10 s";
    for text in ["0ns", "999us", "11s", "10", "soon", "-1ms", ""] {
        assert_eq!(refused(text), range, "{text}");
    }
    let unknown = policies::DRR.with("cycle", "1s").unwrap_err();
    assert!(matches!(unknown, WrongSetting::Name { .. }));
    let names = "the policy drr has no such setting; there are quantum quantum-background";
    assert_eq!(unknown.to_string(), names);
    let none = policies::FCFS.with("cycle", "1s").unwrap_err().to_string();
    assert_eq!(none, "the policy fcfs has no settings");
    assert!(policies::DRR.with_value("quantum", 999_999).is_err(), "below the least");
}

/// Each value at its limits is taken, named once, and the policy starts with it.
#[test]
fn every_policy_starts_with_every_setting_at_either_limit() {
    for &kind in policies::ALL {
        let names: BTreeSet<_> = kind.settings.iter().map(|setting| setting.name).collect();
        assert_eq!(names.len(), kind.settings.len(), "{kind}");
        for setting in kind.settings {
            for value in [setting.least, setting.most] {
                let kind = kind.with_value(setting.name, value).unwrap();
                let mut world = World::new(kind);
                let id = world.join(10, 100);
                let script: Vec<_> = (0..40)
                    .map(|key| match key % 4 {
                        0 => (key * 25, key, Class::RealTime(id), read(key, 10)),
                        1 => (key * 25, key, Class::best_effort(true), read(key, 10)),
                        2 => (key * 25, key, Class::best_effort(false), read(key, 10)),
                        _ => (key * 25, key, Class::Background, read(key, 5)),
                    })
                    .collect();
                world.play(ms(1), &script, &Plain);
                assert_eq!(world.started.len(), 40, "{kind:?}: everything is served in the end");
            }
        }
    }
}

/// Two flows of which one may use five times as much in a round.
#[test]
fn a_chosen_quantum_is_what_a_flow_gets_in_its_turn() {
    let flow = |flow| Class::BestEffort { synchronous: true, flow: Flow(flow), ordered: false };
    let order = |kind| {
        let mut world = World::new(kind);
        let script: Vec<_> =
            (0..8).map(|key| (0, key, flow(key / 4), read(key * 1000, 10))).collect();
        world.play(ms(1), &script, &Plain);
        world.started
    };
    assert_eq!(order(policies::DRR), [0, 1, 2, 3, 4, 5, 6, 7], "50 ms are four requests");
    assert_eq!(order(with(policies::DRR, "quantum", "20ms")), [0, 1, 4, 5, 2, 3, 6, 7]);
}

#[test]
fn a_cycle_and_a_register_are_part_of_what_contracts_are_admitted_by() {
    let Admission::Cycles(plain) = policies::UCSB.admission else { panic!("by cycles") };
    let Admission::Cycles(set) = with(policies::UCSB, "register-least", "30ms").admission else {
        panic!("by cycles")
    };
    assert_eq!(plain.register_least, ms(0));
    assert_eq!(set.register_least, ms(30));
    let Admission::Cycles(set) = with(policies::TIME_CYCLE, "cycle", "100ms").admission else {
        panic!("by cycles")
    };
    assert_eq!(set.length_max, ms(100));
}

/// A request of `cost` every 200 ms beside commands as long: whether it is admitted.
fn fits(kind: PolicyKind, cost: u64) -> bool {
    let options =
        Options { by: kind.admission, reserve: Duration::ZERO, burst: ms(0), ..Options::default() };
    let mut schedule = Schedule::new(kind, options);
    schedule.join(Instant::EPOCH, Task::new(ms(200), ms(200), ms(cost))).is_ok()
}

/// What a setting keeps for others is not given to contracts: 200 ms hold two commands of
/// 95 ms and two registers of 5 ms, and half of that two of 45 ms and a slot of 10 ms.
#[test]
fn contracts_are_refused_that_do_not_leave_what_a_setting_keeps() {
    let register = |text| fits(with(policies::UCSB, "register-least", text), 95);
    assert_eq!(["5ms", "6ms"].map(register), [true, false]);
    let slot = |text| fits(with(policies::TIME_CYCLE, "bubble-slot", text), 45);
    assert_eq!(["10ms", "11ms"].map(slot), [true, false]);
    let cycle = |text| fits(with(policies::TIME_CYCLE, "cycle", text), 45);
    assert_eq!(["90ms", "89ms"].map(cycle), [true, false]);
    let cycle = |text| fits(with(policies::UCSB, "cycle", text), 95);
    assert_eq!(["190ms", "189ms"].map(cycle), [true, false]);
}

/// Both wait at once: the register says who goes first.
#[test]
fn no_more_goes_before_contracts_than_the_register_is_set_to() {
    let order = |kind| {
        let mut world = World::new(kind);
        let id = world.join(10, 100);
        let script = [
            (0, 1, Class::RealTime(id), read(1, 10)),
            (0, 2, Class::best_effort(true), read(1000, 10)),
        ];
        world.play(ms(1), &script, &Plain);
        world.started
    };
    for kind in [policies::UCSB, policies::TIME_CYCLE] {
        assert_eq!(order(kind), [2, 1], "{kind}");
        assert_eq!(order(with(kind, "register-most", "9ms")), [1, 2], "{kind}");
        assert_eq!(order(with(kind, "register-most", "10ms")), [2, 1], "{kind}");
    }
}
