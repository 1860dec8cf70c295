//! Requests with any numbers in them, from their JSON to the node's answer: nothing that
//! anybody asks for ends the pool.
//!
//! An input is a text of lines. The first letter of a line says what is asked, the rest is
//! the JSON of it. The node is the production type, over disks that are models.

use daemon::quotas::{Quotas, Rules, Whole};
use daemon::{convert, planning};
use disk::{Model, Profile};
use node::{
    Chance, Config, DiskIndex, DiskSetup, Node, Op, Opening, Policy, Reply, StreamId, calls,
};
use serde::de::DeserializeOwned;
use sim::{Metadata, SimDisk, Timing, World};
use units::{Bytes, Duration};
use wire::control as api;

/// Lines that are looked at: each may take a while.
const LINES: usize = 8;
const MEMORY: Bytes = Bytes::mib(16);
const VOLUME: &str = "film";

#[derive(Clone)]
struct Base {
    node: Node,
    disks: Vec<SimDisk<Metadata>>,
}

impl Base {
    fn new() -> Self {
        let config = Config {
            policy: Policy::SLACK,
            admission: true,
            memory: MEMORY,
            host_latency: Duration::from_millis(1),
            commit_interval: Duration::from_secs(2),
            remeasure: false,
        };
        let model = Model::named("ssd-sata").and_then(|model| model.scaled(Bytes::mib(64)));
        let profile = Profile::of(&model.expect("a model"));
        let disk = || {
            let timing = Timing::Percent(Box::new(profile.clone()), 100);
            SimDisk::metadata_only(profile.capacity(), timing)
        };
        let mut disks = vec![disk(), disk()];
        sim::format(&mut disks, "pool", &profile, 1).expect("a pool");
        let mut store = sim::open(&mut disks).expect("it opens");
        let size = Bytes::mib(4);
        store.create(VOLUME, size, &node::Placement::default()).expect("room");
        sim::commit(&mut disks, &mut store).expect("the disks work");
        let setups = vec![DiskSetup::new(profile.clone()); 2];
        Self { node: Node::new(config, setups, store).expect("a node"), disks }
    }
    fn world(&self) -> World<Metadata> {
        World::new(self.node.clone(), self.disks.clone(), MEMORY)
    }
}

pub fn ask(input: &[u8]) -> bool {
    thread_local! {
        static BASE: Base = Base::new();
    }
    let Ok(text) = std::str::from_utf8(input) else { return false };
    let mut world = BASE.with(Base::world);
    let (mut stream, mut asked) = (StreamId(0), 0);
    for line in text.lines().take(LINES) {
        let Some(kind) = line.chars().next() else { continue };
        let json = &line[kind.len_utf8()..];
        let Some(op) = op(kind, json, stream) else {
            asked += u32::from(plan(&mut world, kind, json));
            continue;
        };
        asked += 1;
        if let Ok(Reply::Stream { stream: opened, .. }) = world.call(op) {
            stream = opened;
        }
        world.run_for(Duration::from_millis(50));
    }
    asked > 0
}

fn parsed<T: DeserializeOwned>(json: &str) -> Option<T> {
    serde_json::from_str(json).ok()
}

fn op(kind: char, json: &str, stream: StreamId) -> Option<Op> {
    let name = || String::from(VOLUME);
    Some(match kind {
        'v' => {
            let asked: api::VolumeCreate = parsed(json)?;
            let placement = convert::placement(&asked.placement);
            let access = node::Access::default();
            let (name, size) = (asked.name, asked.size_bytes);
            let keep = asked.keep_ns;
            match asked.ring {
                true => Op::RingCreate { name, size, placement, access, keep },
                false => Op::VolumeCreate { name, size, placement, access },
            }
        }
        'k' => {
            let keep = parsed::<api::VolumeKeep>(json)?.keep_ns;
            Op::RingKeep { name: name(), keep }
        }
        'y' => {
            let api::VolumeCopied { of, start_bytes: start } = parsed(json)?;
            Op::VolumeCopied { name: name(), of, start }
        }
        'r' => {
            let api::VolumeResize { size_bytes: size, may_cut, .. } = parsed(json)?;
            Op::VolumeResize { name: name(), size, may_cut }
        }
        's' => Op::VolumeService {
            name: name(),
            service: convert::service(&parsed::<api::Service>(json)?),
        },
        'b' => {
            let asked: api::BlockAsk = parsed(json)?;
            let rate = asked.rate_bytes_per_second;
            Op::Block { volume: name(), mode: convert::mode(asked.mode), rate }
        }
        'o' => {
            let asked: api::StreamOpen = parsed(json)?;
            let opening = Opening {
                volume: name(),
                mode: convert::mode(asked.mode),
                contract: convert::contract(&asked.contract),
                start: asked.start_bytes.unwrap_or_default(),
                early: asked.early,
                miss: asked.miss_per_billion.map(Chance::of_billion),
            };
            Op::Open { opening: Box::new(opening), region: None }
        }
        'c' => {
            let asked: api::StreamChange = parsed(json)?;
            Op::StreamChange { stream, contract: convert::contract(&asked.contract) }
        }
        'd' => {
            let profile = Profile::parse(&parsed::<api::DiskProfile>(json)?.profile).ok()?;
            Op::ProfileSet { disk: DiskIndex(0), profile: Box::new(profile) }
        }
        'x' => Op::StreamClose { stream },
        'i' => {
            // A read within the volume's service, of any place.
            let offset = parsed::<api::VolumeResize>(json)?.size_bytes;
            Op::Read { volume: name(), offset, len: Bytes::kib(4), priority: None }
        }
        _ => return None,
    })
}

/// A what-if of the pool as it is.
fn plan(world: &mut World<Metadata>, kind: char, json: &str) -> bool {
    let Some(asked) = parsed::<api::PlanRequest>(json).filter(|_| kind == 'p') else {
        return false;
    };
    let Ok(planner) = world.call(calls::Plan {}) else { return false };
    if let Err(problem) = planning::plan(&planner, &asked) {
        assert!(!problem.detail.is_empty());
    }
    true
}

/// What the daemon would answer of the volumes, and to a list to plan: as JSON.
pub fn answers(list: &str) -> (String, String) {
    let base = Base::new();
    let whole = Whole { memory: MEMORY, space: Bytes::mib(64) };
    let quotas = Quotas::new(&Rules::default(), whole, Vec::new());
    let volumes = convert::volumes(base.node.status(units::Instant::EPOCH).volumes, &quotas);
    let planner = base.world().call(calls::Plan {}).expect("a planner");
    let plan = planning::plan(&planner, &parsed(list).expect("a list")).expect("a plan");
    let text = |json: serde_json::Result<String>| json.expect("what is said can be written");
    let volumes = serde_json::to_string(&api::Volumes { volumes });
    (text(volumes), text(serde_json::to_string(&plan)))
}

pub fn seeds() -> Vec<Vec<u8>> {
    let contract = r#"{"rate_bytes_per_second":1000000,"block_bytes":65536,"burst_bytes":65536}"#;
    let open = format!(r#"o{{"volume":"v","mode":"read","contract":{contract},"start_bytes":0}}"#);
    let write = open.replace("read", "write");
    let options = r#""early":true,"miss_per_billion":1000,"start_bytes""#;
    let early = open.replace(r#""start_bytes""#, options);
    let change = format!(r#"c{{"contract":{}}}"#, contract.replace("1000000", "2000000"));
    let rate = r#"s{"class":"rate","rate_bytes_per_second":100000,"block_bytes":4096,"period_ns":100000000}"#;
    let latency =
        r#"s{"class":"latency","len_bytes":4096,"within_ns":30000000,"every_ns":100000000}"#;
    let profile = Profile::of(&Model::named("ssd-nvme").expect("a model")).to_toml();
    let profile = serde_json::to_string(&api::DiskProfile { profile }).expect("JSON");
    let texts = [
        r#"v{"name":"ring","size_bytes":1,"ring":true,"keep_ns":1}"#.into(),
        r#"k{"keep_ns":1000000000}"#.into(),
        r#"y{"of":"ring","start_bytes":0}"#.into(),
        r#"v{"name":"b","size_bytes":1048576,"placement":{"disks":[1],"zone":"inner"}}"#.into(),
        "r{\"size_bytes\":5000000}\nr{\"size_bytes\":1000}".into(),
        format!("{open}\n{change}\nx"),
        format!("{write}\n{change}\nx"),
        format!("{early}\n{change}\nx"),
        format!("{rate}\ni{{\"size_bytes\":0}}\ni{{\"size_bytes\":4096}}"),
        format!("{latency}\ni{{\"size_bytes\":0}}\n{rate}"),
        r#"b{"mode":"read","rate_bytes_per_second":1000000}"#.into(),
        format!("d{profile}"),
        format!(
            r#"p{{"streams":[{{"name":"a","count":3,"mode":"read","contract":{contract}}},{{"name":"b","service":{}}}],"alternatives":false}}"#,
            &latency[1..]
        ),
    ];
    texts.map(String::into_bytes).into()
}
