//! How much of the time of threads with real-time priority a user has, and all users together.
//!
//! A share comes back with time, up to what it holds; what is used is taken from it. Who has
//! nothing left leaves, and comes again when half of what it holds is there, so that nobody moves
//! all the time. Where all together have used up their share, only those stay who take little.
//!
//! Invariants: time is an argument; over any time `t` a user has no more than `USER.holds` and
//! `USER.percent` of `t`, and one turn more; all users together no more than the same of `ALL`, and
//! each of them that of `LITTLE` besides.

use crate::lock::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use units::{Duration, Instant};

/// Of one processor, for all that one user has under contract.
const USER: Terms = Terms { percent: 25, holds: Duration::from_millis(25) };
/// Of one processor, for everybody: the system lets ordinary threads have the rest also where it
/// has no other one.
const ALL: Terms = Terms { percent: 75, holds: Duration::from_millis(75) };
/// Of one processor, for one user whatever all others do: many have it at the same time.
const LITTLE: Terms = Terms { percent: 2, holds: Duration::from_millis(10) };
/// What a turn costs beside what it takes itself: it is woken for it.
const TURN: Duration = Duration::from_micros(3);

/// How much there is.
#[derive(Clone, Copy, Debug)]
struct Terms {
    percent: u64,
    holds: Duration,
}

/// What is left of a share.
#[derive(Clone, Copy, Debug)]
struct Share {
    left: Duration,
    /// Of what was used and was not there.
    owed: Duration,
    at: Instant,
}

impl Share {
    fn new(terms: &Terms) -> Self {
        Self { left: terms.holds, owed: Duration::ZERO, at: Instant::EPOCH }
    }

    /// What has come back by now.
    fn renew(&mut self, terms: &Terms, now: Instant) {
        let passed = now.saturating_since(self.at).min(Duration::from_secs(3_600));
        self.at = self.at.max(now);
        let back = passed * terms.percent / 100;
        let paid = back.min(self.owed);
        self.owed -= paid;
        self.left = self.left.saturating_add(back - paid).min(terms.holds);
    }

    fn spend(&mut self, terms: &Terms, now: Instant, took: Duration) {
        self.renew(terms, now);
        let there = took.min(self.left);
        self.left -= there;
        self.owed = self.owed.saturating_add(took - there);
    }
}

/// What one user has.
pub(super) struct Budget {
    own: Mutex<Share>,
    little: Mutex<Share>,
    all: Arc<Mutex<Share>>,
}

impl Budget {
    fn new(all: Arc<Mutex<Share>>) -> Self {
        let (own, little) = (Share::new(&USER), Share::new(&LITTLE));
        Self { own: Mutex::new(own), little: Mutex::new(little), all }
    }

    /// His part by now, what he has whatever others do, and that of all.
    fn left(&self, now: Instant) -> [Duration; 3] {
        let shares = [(&self.own, &USER), (&self.little, &LITTLE), (&*self.all, &ALL)];
        shares.map(|(share, terms)| {
            let mut share = share.lock();
            share.renew(terms, now);
            share.left
        })
    }

    /// A turn took so long.
    pub(super) fn spend(&self, now: Instant, took: Duration) {
        let took = took.saturating_add(TURN);
        self.own.lock().spend(&USER, now, took);
        self.little.lock().spend(&LITTLE, now, took);
        self.all.lock().spend(&ALL, now, took);
    }

    /// Who is here may stay.
    pub(super) fn may_stay(&self, now: Instant) -> bool {
        let [own, little, all] = self.left(now);
        !own.is_zero() && (!all.is_zero() || !little.is_zero())
    }

    /// Who is not may come.
    pub(super) fn may_come(&self, now: Instant) -> bool {
        let [own, little, all] = self.left(now);
        own >= USER.holds / 2 && (!all.is_zero() || little >= LITTLE.holds / 2)
    }
}

/// Those of all users that have a connection.
pub(super) struct Budgets {
    users: Mutex<HashMap<u32, Arc<Budget>>>,
    all: Arc<Mutex<Share>>,
}

impl Default for Budgets {
    fn default() -> Self {
        Self { users: Mutex::default(), all: Arc::new(Mutex::new(Share::new(&ALL))) }
    }
}

impl Budgets {
    /// That of a user. Who has used some of it and has gone finds it as he left it.
    pub(super) fn of(&self, now: Instant, uid: u32) -> Arc<Budget> {
        let mut users = self.users.lock();
        if !users.contains_key(&uid) {
            let is_used = |budget: &Arc<Budget>| {
                let [own, little, _] = budget.left(now);
                Arc::strong_count(budget) > 1 || own < USER.holds || little < LITTLE.holds
            };
            users.retain(|_, budget| is_used(budget));
        }
        let new = || Arc::new(Budget::new(Arc::clone(&self.all)));
        Arc::clone(users.entry(uid).or_insert_with(new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_micros(200);

    fn budgets(users: u32) -> Vec<Arc<Budget>> {
        let all = Budgets::default();
        (0..users).map(|uid| all.of(Instant::EPOCH, uid)).collect()
    }

    /// Each is served whenever he may be, on threads that nobody else uses, for `span`: how long
    /// each of them was.
    fn greedy(users: &[Arc<Budget>], span: Duration) -> Vec<Duration> {
        let (mut now, end) = (Instant::EPOCH, Instant::EPOCH + span);
        let mut served = vec![(false, Duration::ZERO); users.len()];
        while now < end {
            let mut anybody = false;
            for (budget, (here, took)) in users.iter().zip(&mut served) {
                *here = if *here { budget.may_stay(now) } else { budget.may_come(now) };
                if *here {
                    (now, anybody) = (now + STEP, true);
                    *took += STEP + TURN;
                    budget.spend(now, STEP);
                }
            }
            now += if anybody { Duration::ZERO } else { STEP };
        }
        served.into_iter().map(|(_, took)| took).collect()
    }

    fn most(terms: &Terms, span: Duration, users: u64) -> Duration {
        span * terms.percent / 100 + terms.holds + (STEP + TURN) * users
    }

    #[test]
    fn a_greedy_user_has_his_part_of_the_time_and_no_more() {
        let span = Duration::from_secs(10);
        let took = greedy(&budgets(1), span)[0];
        assert!(took <= most(&USER, span, 1), "{took}");
        assert!(took * 10 >= span * USER.percent / 10, "{took}: he has it");
    }

    #[test]
    fn many_greedy_users_have_a_part_of_the_time_together() {
        let span = Duration::from_secs(10);
        let took: Duration = greedy(&budgets(8), span).into_iter().sum();
        let little = most(&LITTLE, span, 1) * 8;
        assert!(took <= most(&ALL, span, 8) + little, "{took} of {span}");
        assert!(took * 10 >= span * ALL.percent / 10, "{took}: they have it");
    }

    /// Who takes little stays whatever others do.
    #[test]
    fn a_user_within_his_part_stays_beside_greedy_ones() {
        let users = budgets(9);
        let (modest, greedy_ones) = users.split_first().expect("nine");
        let (mut now, mut refused) = (Instant::EPOCH, 0);
        for _ in 0..2_000 {
            for budget in greedy_ones {
                match budget.may_stay(now) {
                    true => budget.spend(now, STEP),
                    false => refused += 1,
                }
            }
            now += Duration::from_millis(1);
            assert!(modest.may_stay(now));
            modest.spend(now, Duration::from_micros(10));
        }
        assert!(refused > 4_000, "{refused} of 16,000: for a test");
    }

    /// Who connects anew has no more for it.
    #[test]
    fn what_was_used_up_stays_so_for_who_comes_again() {
        let budgets = Budgets::default();
        let now = Instant::EPOCH + Duration::from_secs(9);
        budgets.of(now, 1).spend(now, USER.holds * 40);
        drop(budgets.of(now, 2));
        assert!(!budgets.of(now, 1).may_come(now));
        // A second's time owed comes back in four.
        assert!(!budgets.of(now, 1).may_stay(now + Duration::from_secs(3)));
        assert!(budgets.of(now, 1).may_come(now + Duration::from_secs(5)));
    }

    #[test]
    fn extreme_times_do_not_wrap() {
        let budget = Budgets::default().of(Instant::EPOCH, 1);
        budget.spend(Instant::MAX, Duration::MAX);
        budget.spend(Instant::EPOCH, Duration::MAX);
        assert!(!budget.may_stay(Instant::MAX));
    }
}
