//! `slackline volume`: make, show, resize, serve and delete volumes.

use crate::Common;
use crate::confirm;
use crate::contract::{PlacementArgs, placement_words};
use crate::failure::Failure;
use crate::output::{Table, counted};
use client::control::{Priority, Service, ServiceAccount, Volume, VolumeCreate, Volumes};
use serde_json::json;
use units::{Bytes, Duration, Rate};

/// Volumes.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Make a volume and reserve its space
    Create {
        /// Its name
        name: String,
        /// Space to reserve, for example 10GiB
        #[arg(long, short, value_name = "SIZE")]
        size: Bytes,
        #[command(flatten)]
        placement: PlacementArgs,
    },
    /// List all volumes
    List,
    /// Show one volume
    Show {
        /// Its name
        name: String,
    },
    /// Grow or shrink a volume, also while it is in use
    Resize {
        /// Its name
        name: String,
        /// Space to reserve from now on
        size: Bytes,
    },
    /// Say how reads and writes of a volume that no stream carries are served
    ///
    /// Holds from now on, also for what waits, until the daemon stops. With --priority
    /// they take what the contracts leave; with --best-effort-rate they get that rate at
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
        #[arg(long, value_name = "TIME", requires = "within")]
        every: Option<Duration>,
        /// With a rate, the smallest operation that gets all of it; with --within, the
        /// largest that is answered in time
        #[arg(long, short, value_name = "SIZE", default_value = "64KiB")]
        block: Bytes,
        /// With --best-effort-rate: what is not used in this time is lost
        #[arg(long, value_name = "TIME", default_value = "1s")]
        period: Duration,
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

/// Runs it.
pub fn run(command: Command, common: &Common) -> Result<(), Failure> {
    let (client, output) = (common.client()?, common.output());
    match command {
        Command::Create { name, size, placement } => {
            let create = VolumeCreate { name, size_bytes: size, placement: placement.placement() };
            let volume = client.volume_create(&create)?;
            output.result(&volume, |volume| {
                let place = placement_words(&volume.placement);
                format!("made volume {}: {} on {place}\n", volume.name, volume.size_bytes)
            })
        }
        Command::List => {
            let volumes = Volumes { volumes: client.volumes()? };
            output.result(&volumes, |all| table(&all.volumes))
        }
        Command::Show { name } => output.result(&client.volume(&name)?, shown),
        Command::Resize { name, size } => {
            let volume = client.volume_resize(&name, size)?;
            let words =
                |volume: &Volume| format!("volume {} has {} now\n", volume.name, volume.size_bytes);
            output.result(&volume, words)
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
        Command::Delete { name, yes } => {
            let volume = client.volume(&name)?;
            if !yes && !volume.length_bytes.is_zero() {
                let length = volume.length_bytes;
                let warning =
                    format!("volume {name} has {length} recorded; they will be destroyed");
                confirm::destroy(&warning, &name, "--yes")?;
            }
            client.volume_delete(&name)?;
            output.result(&json!({ "deleted": name }), |_| format!("deleted volume {name}\n"))
        }
    }
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
    let mut table = Table::new(&["volume", "placement", ">size", ">recorded", ">streams"]);
    for volume in volumes {
        table.row(vec![
            volume.name.clone(),
            placement_words(&volume.placement),
            volume.size_bytes.to_string(),
            volume.length_bytes.to_string(),
            volume.streams.to_string(),
        ]);
    }
    table.text("")
}

/// What became of a contract so far.
fn kept(account: &ServiceAccount) -> String {
    match (account.requests, account.late_requests) {
        (0, _) => String::new(),
        (requests, 0) => {
            format!("; {requests} requests, none late, longest {}", account.latency_max_ns)
        }
        (requests, late) => {
            format!("; {requests} requests, {late} late, by {} at the most", account.late_max_ns)
        }
    }
}

fn shown(volume: &Volume) -> String {
    let extents: Vec<_> = (0..)
        .zip(&volume.extents)
        .map(|(disk, extents)| format!("{} on disk {disk}", counted(*extents, "extent")))
        .collect();
    format!(
        "volume     {}\nsize       {}\nrecorded   {}\nplacement  {}\nextents    {}\nstreams    {}\nservice    {}{}\n",
        volume.name,
        volume.size_bytes,
        volume.length_bytes,
        placement_words(&volume.placement),
        extents.join(", "),
        volume.streams,
        service_words(&volume.service),
        kept(&volume.account),
    )
}
