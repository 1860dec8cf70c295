//! `slackline files`: the devices that have ordinary files under contract.

use crate::Common;
use crate::failure::Failure;
use crate::output::Table;
use crate::pool::charge_note;
use client::control::FileDevices;
use std::fmt::Write;

/// Runs it.
pub fn run(common: &Common) -> Result<(), Failure> {
    common.output().result(&common.client()?.file_devices()?, table)
}

fn table(all: &FileDevices) -> String {
    if all.devices.is_empty() {
        return "no file was under contract since the daemon was started\n".into();
    }
    let headings = [
        "device",
        "scheduler",
        ">streams",
        ">promised",
        ">of at most",
        ">room for",
        ">reads",
        ">late",
        ">by at most",
        ">disturbed",
        ">by at most",
    ];
    let mut table = Table::new(&headings);
    for device in &all.devices {
        table.row(vec![
            device.device.clone(),
            device.scheduler.clone(),
            device.streams.to_string(),
            percent(device.utilisation_ppm),
            percent(device.share_ppm),
            device.rate_max_bytes_per_second.to_string(),
            device.requests.to_string(),
            device.late_requests.to_string(),
            device.late_max_ns.to_string(),
            device.disturbed.to_string(),
            device.disturbed_max_ns.to_string(),
        ]);
    }
    let mut text = table.text("");
    for device in &all.devices {
        let _ = write!(text, "\n{}: profile: {}\n", device.device, device.profile);
        let (gap, way) = (device.gap.stated_ns, device.delivery.stated_ns);
        let charged = format!("charged {gap} with each read, for the gap until the next begins");
        text.push_str(&charge_note("  ", &charged, &device.gap, "gap"));
        let charged =
            format!("charged {way} with each deadline, for the way of an answer to its program");
        text.push_str(&charge_note("  ", &charged, &device.delivery, "answer"));
        for note in &device.notes {
            let _ = writeln!(text, "  {note}");
        }
    }
    text
}

fn percent(ppm: u64) -> String {
    format!("{}.{:02} %", ppm / 10_000, ppm % 10_000 / 100)
}
