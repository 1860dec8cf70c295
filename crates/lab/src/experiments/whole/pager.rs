//! A program that stands still until a page of its memory is read from the disk: the paper's
//! own example of a request whose time has to be guaranteed (UCSB QoS scheduler, section I.B).

use super::programs::Shared;
use node::{Error, Op, Reply, Service};
use sim::{Context, Metadata, Program, Random};
use units::{Bytes, Duration, Instant};

pub(crate) const PAGE: Bytes = Bytes::kib(4);

const SERVICE: u64 = 0;
const FREE: u64 = 1;
const READ: u64 = 2;

/// Reads pages anywhere in a file, one at a time, and works for a random time in between.
pub(crate) struct Pager {
    volume: String,
    size: Bytes,
    service: Service,
    /// It works at least so long, and up to twice as long more.
    works: Duration,
    begins: Instant,
    random: Random,
    asked: Instant,
    seen: Shared,
}

impl Pager {
    pub fn new(
        volume: &str,
        size: Bytes,
        service: Service,
        works: Duration,
        (begins, seed): (Instant, u64),
    ) -> Self {
        let (volume, random, seen) = (volume.into(), Random::new(seed), Shared::default());
        Self { volume, size, service, works, begins, random, asked: begins, seen }
    }

    /// Of each read: when it was asked for, and how long after that it was answered.
    pub fn seen(&self) -> Shared {
        self.seen.clone()
    }

    fn work(&mut self, context: &mut Context<'_, Metadata>) {
        let now = context.now.max(self.begins);
        context.alarm_at(now + self.works + self.random.span(self.works * 2));
    }
}

impl Program<Metadata> for Pager {
    fn start(&mut self, context: &mut Context<'_, Metadata>) {
        let (name, service) = (self.volume.clone(), self.service);
        context.ask(SERVICE, Op::VolumeService { name, service });
    }

    fn alarm(&mut self, context: &mut Context<'_, Metadata>) {
        self.asked = context.now;
        let offset = PAGE * self.random.below(self.size / PAGE);
        let volume = self.volume.clone();
        context.ask(READ, Op::Read { volume, offset, len: PAGE, priority: None });
    }

    fn answer(
        &mut self,
        context: &mut Context<'_, Metadata>,
        tag: u64,
        result: Result<Reply, Error>,
    ) {
        match (tag, result) {
            (SERVICE, Ok(_)) => self.work(context),
            (_, Ok(Reply::Data { bytes: span, .. })) => {
                let wait = context.now - self.asked;
                let mut seen = self.seen.borrow_mut();
                seen.waits.push((self.asked, wait));
                (seen.wait_max, seen.bytes) = (wait.max(seen.wait_max), seen.bytes + PAGE);
                drop(seen);
                context.ask(FREE, Op::Release { span });
                self.work(context);
            }
            (_, Ok(_)) => {}
            (_, Err(error)) => self.seen.borrow_mut().error = Some(error),
        }
    }
}
