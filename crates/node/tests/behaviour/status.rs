//! What can be seen of a node, and that a node is one value: a copy goes its own way, and its
//! queues may be shared with the disks' threads.

use crate::driver::*;
use node::{
    Analysed, CommandEnded, DiskIndex, DiskPoll, DiskQueue, Event, Look, Mode, Op, Placement,
    Policy, Reply, Ticket, Who, Work, command_ended, next_command,
};
use queue::{Queue, Shared};
use std::sync::{Arc, Mutex};
use units::{Bytes, Duration, Rate};

/// Gathered in steps, however many volumes and streams there are: all of them, each once.
#[test]
fn a_status_that_is_gathered_in_steps_has_everything_once() {
    let mut driver = Setup::new(2).with(|config| config.memory = Bytes::mib(64)).open();
    let names: Vec<String> = (0..70).map(|number| format!("v{number}")).collect();
    for name in &names {
        driver.volume(name, Bytes::MIB);
    }
    let slow = contract(RATE / 64, BLOCK, Bytes::ZERO);
    let streams: Vec<_> = (0..40).map(|number| driver.reader(&names[number], slow)).collect();
    let mut look = Look::new(driver.now);
    let mut steps = 0;
    while driver.node.look(&mut look) {
        steps += 1;
    }
    assert!(steps >= 2 + 3 + 2, "32 at a time");
    let (status, analysed): (node::Status, Analysed) = look.finish();
    driver.node.learn(&analysed);
    assert_eq!(status, driver.node.status(driver.now));
    assert_eq!((status.now, status.disks.len()), (driver.now, 2));
    let told: Vec<&str> = status.volumes.iter().map(|volume| volume.name.as_str()).collect();
    assert_eq!(told.len(), 70);
    assert!(names.iter().all(|name| told.contains(&name.as_str())));
    let told: Vec<_> = status.streams.iter().map(|stream| stream.stream).collect();
    assert_eq!(told, streams);
    assert_eq!(status.streams[7].volume, "v7");
    assert_eq!(status.volumes[7].streams, 1);
    assert_eq!(driver.node.stream(streams[7]).as_ref(), Some(&status.streams[7]));
    assert_eq!(driver.node.volume("v7").as_ref(), Some(&status.volumes[7]));
    assert_eq!(driver.node.volume("none"), None);
    // One extent each: alone on its disk, it is all that the stream has there.
    let ppm: Vec<u64> = [0, 1]
        .map(|disk| {
            let on =
                |volume: &&node::VolumeStatus| volume.extents[disk] == 1 && volume.streams == 1;
            status.volumes.iter().filter(on).count() as u64
        })
        .into();
    assert_eq!(ppm.iter().sum::<u64>(), 40);
    for (disk, count) in status.disks.iter().zip(ppm) {
        let each = 170_000 * count / 64 + 10_313;
        assert!(disk.utilisation_ppm.abs_diff(each) <= count + 2, "{disk:?} {each}");
        assert!(disk.free < Bytes::mib(256) && disk.capacity == Bytes::mib(256));
    }
}

/// A copy of a node is another node: what becomes of one is not seen in the other.
#[test]
fn a_copy_of_a_node_goes_its_own_way() {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(4), Bytes::mib(1), 1);
    let mut copy = driver.node.clone();
    driver.done(delete("film"));
    assert_eq!(driver.node.volume("film"), None);
    assert_eq!(copy.volume("film").expect("still").length, Bytes::mib(1));
    let (ticket, who, now) = (Ticket(7_000), Who::root(), driver.now);
    let op = create("more", Bytes::mib(1), Placement::default());
    copy.handle(now, Event::Request { ticket, who, op, arrived: now });
    assert!(copy.volume("more").is_some() && driver.node.volume("more").is_none());
}

/// A queue that a disk's thread may have, too.
#[derive(Debug)]
struct ForThread {
    place: Arc<Mutex<Option<DiskQueue>>>,
    mine: Option<DiskQueue>,
}

impl Shared<Work> for ForThread {
    fn get(&self) -> &Queue<Work> {
        self.mine.as_ref().expect("the node has it until it releases it")
    }
    fn get_mut(&mut self) -> &mut Queue<Work> {
        if self.mine.is_none() {
            self.mine = self.place.lock().unwrap().take();
        }
        self.mine.as_mut().expect("a queue")
    }
    fn release(&mut self) {
        if let Some(queue) = self.mine.take() {
            *self.place.lock().unwrap() = Some(queue);
        }
    }
}

/// A driver with a thread for each disk asks the queue itself, and tells the node afterwards;
/// the node says which disks have news.
#[test]
fn queues_are_shared_with_the_threads_of_their_disks() {
    let driver = {
        let mut driver = Setup::new(2).open();
        driver.recorded("film", Bytes::mib(4), Bytes::mib(2), 1);
        driver
    };
    let now = driver.now;
    let places: Vec<_> = (0..2).map(|_| Arc::new(Mutex::new(None))).collect();
    let mut node = driver.node.share_disks(|disk, queue| {
        let place = places[disk.as_usize()].clone();
        Box::new(ForThread { place, mine: Some(queue) })
    });
    for disk in [0, 1] {
        node.disk_queue(DiskIndex(disk));
    }
    while node.next_wake().is_some() {}
    let (ticket, who) = (Ticket(9_000), Who::root());
    let op = read("film", Bytes::mib(1), BLOCK);
    node.handle(now, Event::Request { ticket, who, op, arrived: now });
    let disk = node.next_wake().expect("one of them has news");
    assert_eq!(node.next_wake(), None, "and no other, and once");
    node.release_disks();
    let ended: CommandEnded = {
        let mut place = places[disk.as_usize()].lock().unwrap();
        let queue = place.as_mut().expect("released");
        let DiskPoll::Start(command) = next_command(queue, now) else { panic!("nothing to do") };
        assert_eq!(command.predicted, cost(BLOCK));
        assert!(matches!(next_command(queue, now), DiskPoll::Wait { .. }));
        command_ended(queue, command.id, now, now + cost(BLOCK), Ok(()))
    };
    for disk in [0, 1] {
        node.disk_queue(DiskIndex(disk));
    }
    node.command_ended(now + cost(BLOCK), ended);
    let output = node.poll_output().expect("answered");
    assert_eq!(output.ticket, ticket);
    assert!(matches!(output.result, Ok(Reply::Data { .. })));
    // A change wakes disk 0, which has the timers.
    let (ticket, who) = (Ticket(9_001), Who::root());
    let op = create("more", Bytes::MIB, Placement::default());
    node.handle(now, Event::Request { ticket, who, op, arrived: now });
    assert_eq!(node.next_wake(), Some(DiskIndex(0)));
}

/// Which block suits a stream whose program names none: one that lasts a quarter to half a
/// second, and longer where what each request costs beside its bytes is most of it.
#[test]
fn a_block_is_chosen_by_what_requests_cost() {
    let mut driver = Setup::new(1).open();
    driver.volume("film", Bytes::mib(4));
    let mut block = |rate: u64| {
        let (volume, mode) = ("film".into(), Mode::Read);
        match driver.at_once(Op::Block { volume, mode, rate: Rate::per_second(rate) }) {
            Ok(Reply::Block { block }) => block,
            other => panic!("{other:?}"),
        }
    };
    // 10 ms and 1 ms for each 100 KiB: twice as long costs less than half more up to a MiB,
    // and so it grows until it lasts two seconds.
    assert_eq!(block(100_000), Bytes::kib(128));
    assert_eq!(block(1), Bytes::kib(4));
    assert_eq!(block(1_000_000), Bytes::MIB);
    assert_eq!(block(100_000_000), Bytes::MIB);
    // Without the fixed part nothing is gained.
    let mut setup = Setup::new(1);
    setup.profiles = vec![profile(Bytes::mib(256), Duration::from_micros(1), FLUSH)];
    let mut driver = setup.open();
    driver.volume("film", Bytes::mib(4));
    let (volume, mode, rate) = ("film".into(), Mode::Read, Rate::per_second(100_000));
    let told = driver.at_once(Op::Block { volume, mode, rate });
    assert_eq!(told, Ok(Reply::Block { block: Bytes::kib(32) }));
}

/// Without admission every contract is taken, and those that could not be kept, too; each
/// policy serves all that is asked.
#[test]
fn without_admission_everything_is_taken_and_every_policy_serves_it() {
    for &policy in policies::ALL {
        let setup =
            Setup::new(1).with(|config| (config.policy, config.admission) = (policy, false));
        let mut driver = setup.open();
        driver.recorded("film", Bytes::mib(4), Bytes::mib(2), 1);
        driver.reader("film", usual());
        let got = driver.read("film", Bytes::kib(512), BLOCK).unwrap();
        assert!(got == pattern(1, Bytes::kib(512), BLOCK), "{policy:?}");
    }
    for admission in [true, false] {
        let setup = Setup::new(1).with(|config| {
            (config.policy, config.admission) = (Policy::DELTA_L, admission);
        });
        let mut driver = setup.open();
        driver.recorded("film", Bytes::mib(4), Bytes::mib(2), 1);
        let rates = [RATE, RATE, RATE, RATE, RATE * 20];
        let taken = rates.map(|rate| {
            let op = open("film", Mode::Read, contract(rate, BLOCK, Bytes::ZERO), Bytes::ZERO);
            driver.ask(op).is_ok()
        });
        assert_eq!(taken, if admission { [true, true, true, false, false] } else { [true; 5] });
    }
}

/// The profile of a disk as sweeps see it: none where the place does not matter.
#[test]
fn sweeps_cost_what_the_profile_says() {
    use disk::{Model, Profile};
    use units::{Direction, Lba};
    let flat = profile(Bytes::mib(256), FIXED, FLUSH);
    let whole = |profile: &Profile| Lba::new(0)..Lba::containing(profile.capacity());
    assert!(node::sweep_costs(&flat, whole(&flat), BLOCK, Direction::Read).is_none());
    let hard = Profile::of(&Model::named("laptop-4200").unwrap());
    let range = whole(&hard);
    let told = node::sweep_costs(&hard, range.clone(), BLOCK, Direction::Write).unwrap();
    let sweep = hard.sweep(range.clone(), BLOCK, Direction::Write).unwrap();
    assert_eq!((told.stroke, told.cylinders), (sweep.stroke, sweep.cylinders));
    assert_eq!((told.span, told.request), (sweep.span, sweep.request));
    assert_eq!(told.seek, sweep.seek.points().to_vec());
    assert!(told.request <= hard.worst(range, BLOCK, Direction::Write));
}
