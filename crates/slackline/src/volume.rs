//! `slackline volume`: make, show, resize and delete volumes.

use crate::Common;
use crate::confirm;
use crate::contract::{PlacementArgs, placement_words};
use crate::failure::Failure;
use crate::output::{Table, counted};
use client::control::{Volume, VolumeCreate, Volumes};
use serde_json::json;
use units::Bytes;

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

fn shown(volume: &Volume) -> String {
    let extents: Vec<_> = (0..)
        .zip(&volume.extents)
        .map(|(disk, extents)| format!("{} on disk {disk}", counted(*extents, "extent")))
        .collect();
    format!(
        "volume     {}\nsize       {}\nrecorded   {}\nplacement  {}\nextents    {}\nstreams    {}\n",
        volume.name,
        volume.size_bytes,
        volume.length_bytes,
        placement_words(&volume.placement),
        extents.join(", "),
        volume.streams
    )
}
