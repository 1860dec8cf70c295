//! `slackline volume`: make, show, resize, serve, give away and delete volumes.

use crate::Common;
use crate::confirm;
use crate::contract::{PlacementArgs, placement_words};
use crate::copy;
use crate::failure::Failure;
use crate::moment;
use crate::output::{Table, counted};
use crate::permissions::{Change, Whose, access};
use crate::stream::no_promise;
use client::control::{
    Access, Handle, KeptOut, Permissions, Priority, Service, ServiceAccount, Volume, VolumeCreate,
    Volumes,
};
use client::{Client, Code, Durable, Replace};
use serde_json::json;
use std::str::FromStr;
use units::{Bytes, Duration, Rate};

/// Volumes.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Make a volume and reserve its space
    Create {
        /// Its name
        name: String,
        /// Space to reserve, for example 10GiB; of a thin volume the most that it may take
        #[arg(long, short, value_name = "SIZE")]
        size: Bytes,
        #[command(flatten)]
        placement: PlacementArgs,
        /// Whose it is: USER, USER:GROUP or :GROUP; only root names another user
        /// [default: you]
        #[arg(long, value_name = "USER:GROUP")]
        owner: Option<Whose>,
        /// What owner, group and others may do, in octal: 4 read, 2 write and resize
        /// [default: 600]
        #[arg(long, value_name = "MODE")]
        mode: Option<Permissions>,
        /// Let it give up its oldest bytes for what is recorded next, so that it is never full: a
        /// ring, whose size is rounded up to 16 MiB, or to more on several disks
        #[arg(long)]
        ring: bool,
        /// With --ring: give up what was recorded so long ago also where there is room for it, for
        /// example 14d or 12h
        #[arg(long, requires = "ring", value_name = "AGE")]
        keep: Option<Duration>,
    },
    /// List the volumes that you may read or own
    List,
    /// Show one volume
    Show {
        /// Its name
        name: String,
    },
    /// Say for how long a ring keeps what is recorded, from now on
    ///
    /// What is older is given up within a few seconds, also where there is room for it: parts of 16 MiB,
    /// each when all of it is old. By the times that `volume show` tells: what was recorded
    /// without a stream, or where the clock was wrong, is as old as these say.
    Keep {
        /// Its name
        name: String,
        /// For example 14d or 12h; off: as long as there is room
        #[arg(value_name = "AGE|off")]
        age: Keep,
    },
    Copy(copy::Args),
    /// Grow or shrink a volume, also while it is in use
    ///
    /// While streams are open it can be made as small as what is recorded, where nobody is at work
    /// behind the new end, each writer has room for 10 s of its contract, and what the streams were
    /// promised holds on what is left.
    Resize {
        /// Its name
        name: String,
        /// Space to reserve from now on
        #[arg(required_unless_present = "size_named")]
        size: Option<Bytes>,
        /// The same, as `create` has it
        #[arg(long = "size", id = "size_named", value_name = "SIZE", conflicts_with = "size")]
        size_named: Option<Bytes>,
        /// Do not ask, also when recorded data is cut
        #[arg(long)]
        yes: bool,
    },
    /// Give a volume another name, also while it is in use
    ///
    /// Where the name is that of a directory, all that lies under it gets other names with it.
    Rename {
        /// Its name
        name: String,
        /// The name that it gets; no volume has it yet
        to: String,
    },
    /// Give a volume to another user or group, as chown does
    ///
    /// Only root gives it to another user; its owner gives it to any of his groups.
    Chown {
        /// USER, USER:GROUP or :GROUP
        #[arg(value_name = "USER:GROUP")]
        whose: Whose,
        /// Its name
        name: String,
    },
    /// Say what owner, group and others may do with a volume, as chmod does
    ///
    /// r: read it and see it in lists; w: write and resize it. Its owner and root may
    /// delete it, serve it in another way and say who may do what. What is open stays
    /// open.
    Chmod {
        /// 640, or changes of what is: u+rw,g+r,o-rwx
        #[arg(value_name = "MODE", allow_hyphen_values = true)]
        change: Change,
        /// Its name
        name: String,
    },
    /// Say how reads and writes of a volume that no stream carries are served
    ///
    /// Holds from now on, also for what waits, and is kept with the volume: it holds again when
    /// the pool is served again. A contract that does not fit then is named by the daemon, by
    /// `volume show` and by `pool status`; the volume is served as best effort, and the contract
    /// is tried again when another one ends or changes. `--priority normal` removes it. With
    /// --priority they take what the contracts leave; with --best-effort-rate they get that rate at
    /// least; with --within each is answered in that time. Admission decides about the
    /// last two; a refusal changes nothing.
    #[command(group(clap::ArgGroup::new("class").required(true)))]
    Set {
        /// Its name
        name: String,
        /// Who goes first among those without a contract
        #[arg(long, value_enum, group = "class")]
        priority: Option<PriorityArg>,
        /// Bytes per second to get at least, each disk of the volume its part
        #[arg(long, value_name = "RATE", group = "class")]
        best_effort_rate: Option<Rate>,
        /// The time within which each operation is answered
        #[arg(long, value_name = "TIME", group = "class", requires = "every")]
        within: Option<Duration>,
        /// With --within: the least time between two operations on the same disk
        #[arg(long, value_name = "TIME", requires = "within", conflicts_with_all = ["priority",
            "best_effort_rate"])]
        every: Option<Duration>,
        /// With a rate, the smallest operation that gets all of it; with --within, the
        /// largest that is answered in time
        #[arg(long, short, value_name = "SIZE", default_value = "64KiB")]
        block: Bytes,
        /// With --best-effort-rate: what is not used in this time is lost
        #[arg(long, value_name = "TIME", default_value = "1s")]
        period: Duration,
    },
    /// End the contract of a handle on a volume, and its connection
    ///
    /// `volume show` lists the handles that have contracts of their own, with their numbers. To
    /// end one is a matter of the volume's owner, of the handle's user and of root; its program
    /// is told at its next operation.
    EndHandle {
        /// The volume's name
        name: String,
        /// The handle's number
        handle: u64,
    },
    /// Remove a volume and its data
    Delete {
        /// Its name
        name: String,
        /// Do not ask, also when data is recorded on it
        #[arg(long)]
        yes: bool,
    },
}

/// For how long a ring keeps what is recorded: none is as long as there is room.
#[derive(Clone, Copy)]
pub struct Keep(Option<Duration>);

impl FromStr for Keep {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "off" => Ok(Self(None)),
            "0" => Err("to keep all as long as there is room, say off".into()),
            age => match age.parse() {
                Ok(Duration::ZERO) => Err("to keep all as long as there is room, say off".into()),
                age => age.map(|age| Self(Some(age))).map_err(|error| error.to_string()),
            },
        }
    }
}

/// Runs it.
pub fn run(command: Command, common: &Common) -> Result<(), Failure> {
    let (client, output) = (common.client()?, common.output());
    match command {
        Command::Copy(args) => copy::run(&args, common),
        Command::Create { name, size, placement, owner, mode, ring, keep } => {
            let (placement, access) = (placement.placement(), access(owner, mode));
            let (new, asked) = (VolumeCreate::new(name, size), size);
            let create = VolumeCreate { placement, access, ring, keep_ns: keep, ..new };
            let volume = client.volume_create(&create)?;
            output.result(&volume, |volume| {
                let place = placement_words(&volume.placement);
                let (name, size, owner) = (&volume.name, volume.size_bytes, owner_words(volume));
                let kind = if volume.ring.is_some() { "ring" } else { "volume" };
                let note =
                    rounded(volume, asked).map_or_else(String::new, |note| format!("  {note}\n"));
                format!("made {kind} {name}: {size} on {place}, {owner}\n{note}")
            })
        }
        Command::List => {
            let volumes = Volumes { volumes: client.volumes()? };
            output.result(&volumes, |all| table(&all.volumes))
        }
        Command::Show { name } => output.result(&client.volume(&name)?, shown),
        Command::Keep { name, age } => {
            client.volume_keep(&name, age.0)?;
            output.result(&client.volume(&name)?, |volume| {
                let keeps = volume.ring.and_then(|ring| ring.keep_ns).map_or_else(
                    || "keeps what is recorded as long as there is room".into(),
                    |keep| format!("gives up what is older than {}", moment::age(keep)),
                );
                format!("ring {} {keeps}\n", volume.name)
            })
        }
        Command::Resize { name, size, size_named, yes } => {
            let size = size.or(size_named).expect("one of the two is there");
            let volume = resize(&client, &name, size, yes)?;
            let words =
                |volume: &Volume| format!("volume {} has {} now\n", volume.name, volume.size_bytes);
            output.result(&volume, words)
        }
        Command::Rename { name, to } => {
            client.volume_rename(&*name, &to, Replace::Nothing, Durable::Now)?;
            let told = json!({ "name": name, "to": to });
            output.result(&told, |_| format!("volume {name} is {to} now\n"))
        }
        Command::Chown { whose, name } => {
            let volume = client.volume_access(&name, &access(Some(whose), None))?;
            output.result(&volume, |volume| format!("volume {name}: {}\n", owner_words(volume)))
        }
        Command::Chmod { change, name } => {
            let before = match &change {
                Change::To(permissions) => *permissions,
                Change::By(_) => client.volume(&name)?.owner.mode,
            };
            let mode = Some(change.of(before));
            let volume = client.volume_access(&name, &Access { mode, ..Access::default() })?;
            output.result(&volume, |volume| format!("volume {name}: {}\n", owner_words(volume)))
        }
        Command::Set { name, priority, best_effort_rate, within, every, block, period } => {
            let service = match (best_effort_rate, within.zip(every)) {
                (Some(rate), _) => Service::Rate {
                    rate_bytes_per_second: rate,
                    block_bytes: block,
                    period_ns: period,
                },
                (None, Some((within_ns, every_ns))) => {
                    Service::Latency { len_bytes: block, within_ns, every_ns }
                }
                (None, None) => Service::BestEffort {
                    priority: priority.map_or(Priority::Normal, Priority::from),
                },
            };
            output.result(&client.volume_service(&name, &service)?, |volume| {
                format!("volume {name} is served {} now\n", service_words(&volume.service))
            })
        }
        Command::EndHandle { name, handle } => {
            let volume = client.handle_end(&name, handle)?;
            output.result(&volume, |_| {
                format!("handle {handle} on volume {name} has no contract any more\n")
            })
        }
        Command::Delete { name, yes } => {
            let volume = client.volume(&name)?;
            if !yes && !volume.length_bytes.is_zero() {
                let held = volume.held();
                let warning = format!("volume {name} has {held} recorded; they will be destroyed");
                confirm::destroy(&warning, &name, "--yes")?;
            }
            client.volume_delete(&name)?;
            output.result(&json!({ "deleted": name }), |_| format!("deleted volume {name}\n"))
        }
    }
}

/// What is said of a ring that was made larger than was asked.
pub fn rounded(made: &Volume, asked: Bytes) -> Option<String> {
    let is_larger = made.ring.is_some() && made.size_bytes > asked;
    is_larger.then(|| {
        let (name, size) = (&made.name, made.size_bytes);
        format!(
            "ring {name} has {size}, not {asked}: its size is a multiple of 16 MiB on each disk"
        )
    })
}

/// Resizes a volume; what is recorded is cut only where somebody says yes to it.
fn resize(client: &Client, name: &str, size: Bytes, yes: bool) -> Result<Volume, Failure> {
    if yes {
        return Ok(client.volume_cut(name, size)?);
    }
    match client.volume_resize(name, size) {
        Err(error) if error.code() == Some(Code::WouldCut) => {
            confirm::destroy(&format!("{error}; the rest will be destroyed"), name, "--yes")?;
            Ok(client.volume_cut(name, size)?)
        }
        resized => Ok(resized?),
    }
}

fn owner_words(volume: &Volume) -> String {
    let owner = &volume.owner;
    format!("{} {}:{}", owner.mode.letters(), owner.user, owner.group)
}

/// Who goes first among those without a contract.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub enum PriorityArg {
    /// Somebody waits for the answers: before the others
    Interactive,
    /// As everybody
    Normal,
    /// Only when nothing else wants the disk
    Background,
}

impl From<PriorityArg> for Priority {
    fn from(priority: PriorityArg) -> Self {
        match priority {
            PriorityArg::Interactive => Self::Interactive,
            PriorityArg::Normal => Self::Normal,
            PriorityArg::Background => Self::Background,
        }
    }
}

fn service_words(service: &Service) -> String {
    match service {
        Service::BestEffort { priority: Priority::Interactive } => {
            "as best effort, before others".into()
        }
        Service::BestEffort { priority: Priority::Normal } => "as best effort".into(),
        Service::BestEffort { priority: Priority::Background } => {
            "when nothing else wants the disk".into()
        }
        Service::Rate { rate_bytes_per_second, block_bytes, period_ns } => format!(
            "at {rate_bytes_per_second} at least, in operations of {block_bytes}, over {period_ns}"
        ),
        Service::Latency { len_bytes, within_ns, every_ns } => {
            format!("within {within_ns}, up to {len_bytes} every {every_ns}")
        }
    }
}

fn table(volumes: &[Volume]) -> String {
    if volumes.is_empty() {
        return "no volumes; make one with `slackline volume create NAME --size SIZE`\n".into();
    }
    let headings = [
        "mode",
        "owner",
        "group",
        "volume",
        "placement",
        ">size",
        ">recorded",
        ">streams",
        "begins",
        "ends",
    ];
    let mut table = Table::new(&headings);
    for volume in volumes {
        table.row(vec![
            volume.owner.mode.letters(),
            volume.owner.user.clone(),
            volume.owner.group.clone(),
            volume.name.clone(),
            placement_words(&volume.placement),
            volume.size_bytes.to_string(),
            recorded_words(volume),
            volume.streams.to_string(),
            volume.recorded.map_or_else(String::new, |recorded| moment::told(recorded.begins_ns)),
            volume.recorded.map_or_else(String::new, |recorded| moment::told(recorded.ends_ns)),
        ]);
    }
    let notes = volumes.iter().filter_map(|volume| {
        let kept_out = volume.kept_out.as_ref()?;
        Some(format!("{}: {}\n", volume.name, kept_out_words(kept_out)))
    });
    table.text("") + &notes.collect::<String>()
}

/// A contract that a volume was given and does not have, and why.
pub fn kept_out_words(kept_out: &KeptOut) -> String {
    let KeptOut { service, detail, next_step } = kept_out;
    format!(
        "served as best effort, because its contract ({}) does not fit any more: {detail}\n  \
         next: {next_step}",
        service_words(service)
    )
}

/// What became of a contract so far.
fn kept(account: &ServiceAccount) -> String {
    let carried = match account.carried_max_ns {
        Duration::ZERO => String::new(),
        most => format!("; carrying an answer to its program took up to {most}"),
    };
    let on_the_way = match account.late_carried_requests {
        0 => String::new(),
        late => format!(" ({late} of them on the way from the pool to the program)"),
    };
    match (account.requests, account.late_requests) {
        (0, _) => String::new(),
        (requests, 0) => {
            let longest = account.latency_max_ns;
            format!("; {requests} requests, none late, longest {longest}{carried}")
        }
        (requests, late) => {
            let (most, longest) = (account.late_max_ns, account.latency_max_ns);
            format!(
                "; {requests} requests, {late} late, by {most} at the most{on_the_way}, longest \
                 {longest}{carried}"
            )
        }
    }
}

/// The contract that a volume has without streams, and those of connections on it, a line each.
pub fn contracts(volume: &Volume) -> String {
    let own = match volume.service {
        Service::BestEffort { .. } => String::new(),
        _ => format!(
            "served {}{}{}\n",
            service_words(&volume.service),
            no_promise(volume.promised),
            kept(&volume.account)
        ),
    };
    own + &handles("a connection,", &volume.handles)
}

/// Connections with contracts of their own.
fn handles(what: &str, handles: &[Handle]) -> String {
    let line = |handle: &Handle| {
        let Handle { id, user, service, account } = handle;
        format!("{what} {id} of {user}, {}{}\n", service_words(service), kept(account))
    };
    handles.iter().map(line).collect()
}

/// How the extents of a volume lie, where they are not one run on each disk.
fn runs_words(volume: &Volume) -> String {
    let disks = volume.extents.iter().filter(|&&extents| extents > 0).count() as u64;
    match volume.runs {
        runs if runs <= disks => String::new(),
        runs => format!(", in {runs} runs, the shortest of {}", volume.shortest_run_bytes),
    }
}

fn shown(volume: &Volume) -> String {
    let given_by = volume.service_user.as_ref();
    let given_by = given_by.map(|user| format!("; given by {user}")).unwrap_or_default();
    let extents: Vec<_> = (0..)
        .zip(&volume.extents)
        .map(|(disk, extents)| format!("{} on disk {disk}", counted(*extents, "extent")))
        .collect();
    format!(
        "volume     {}\nowner      {}\nsize       {}\nrecorded   {}{}\nplacement  {}\nextents    {}{}\nstreams    {}{}\nservice    {}{}{}{}\n",
        volume.name,
        owner_words(volume),
        size_words(volume),
        match &volume.ring {
            Some(ring) => {
                let (start, end) = (ring.start_bytes.get(), volume.length_bytes.get());
                let keep = ring.keep_ns.map(|keep| format!(" that keeps {}", moment::age(keep)));
                let (words, keep) = (recorded_words(volume), keep.unwrap_or_default());
                format!("{words}, from {start} to {end}; a ring{keep}")
            }
            None => recorded_words(volume),
        },
        volume.recorded.map_or_else(String::new, |it| format!(", {}", moment::span(&it))),
        placement_words(&volume.placement),
        extents.join(", "),
        runs_words(volume),
        volume.streams,
        from_memory(volume.from_memory_bytes),
        match &volume.kept_out {
            Some(kept_out) => kept_out_words(kept_out),
            None => service_words(&volume.service),
        },
        no_promise(volume.promised),
        kept(&volume.account),
        given_by,
    ) + &handles("handle    ", &volume.handles)
}

/// Its size, and of a thin volume what it has of that.
fn size_words(volume: &Volume) -> String {
    match volume.taken_bytes {
        Some(taken) => format!("{taken} taken, at most {}", volume.size_bytes),
        None => volume.size_bytes.to_string(),
    }
}

/// How much a volume holds: all that is recorded, or the newest of it.
fn recorded_words(volume: &Volume) -> String {
    match &volume.ring {
        Some(ring) if ring.start_bytes.is_zero() => ring.held_bytes.to_string(),
        Some(ring) => format!("the last {}", ring.held_bytes),
        None => volume.length_bytes.to_string(),
    }
}

/// What readers had of each other.
fn from_memory(bytes: units::Bytes) -> String {
    if bytes.is_zero() { String::new() } else { format!("; readers had {bytes} from memory") }
}
