//! What several commands are given in the same words: disks, and settings of a policy.

use crate::failure::Failure;
use engine::DeviceSpec;

/// Devices as a person writes them.
pub fn specs(texts: &[String]) -> Result<Vec<DeviceSpec>, Failure> {
    let specs: Result<Vec<DeviceSpec>, _> = texts.iter().map(|text| text.parse()).collect();
    let specs = specs?;
    // Also by another path.
    let whole =
        |spec: &DeviceSpec| spec.path().canonicalize().unwrap_or_else(|_| spec.path().to_owned());
    let all: Vec<_> = specs.iter().map(whole).collect();
    if let Some(twice) = (1..all.len()).find(|&at| all[..at].contains(&all[at])) {
        let what = format!("{} is named twice", specs[twice].path().display());
        return Err(Failure::usage(what, "name each disk once"));
    }
    Ok(specs)
}

/// A setting as it is written on the command line.
pub fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    Ok((name.trim().into(), value.trim().into()))
}
