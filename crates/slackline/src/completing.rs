//! What a shell offers where a volume, a stream, a disk, a camera, a model or a policy is meant.
//!
//! The shells' own parts come from clap_complete, which asks this command at each press of the key.
//! Invariant: whoever presses it is not held up and hears no error: where no daemon answers soon,
//! there is nothing to offer.

use crate::failure::Failure;
use clap::builder::ValueHint;
use clap_complete::CompletionCandidate;
use clap_complete::engine::ArgValueCandidates;
use clap_complete::env::{CompleteEnv, Shells};
use client::Client;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The variable by which a shell asks; it holds the shell's name.
const ASKED: &str = "SLACKLINE_COMPLETE";
/// A person waits: a daemon that hangs has nothing to offer.
const ANSWER_WITHIN: Duration = Duration::from_millis(500);

/// What is meant at a place of the line.
#[derive(Clone, Copy)]
enum Meant {
    Volume,
    Stream,
    Disk,
    Camera,
    Model,
    Policy,
    File,
}

/// Where it is meant: the subcommand, and the argument's name there.
const PLACES: &[(&[&str], &str, Meant)] = &[
    (&["record"], "volume", Meant::Volume),
    (&["play"], "volume", Meant::Volume),
    (&["export"], "volume", Meant::Volume),
    (&["nbd"], "volume", Meant::Volume),
    (&["volume", "show"], "name", Meant::Volume),
    (&["volume", "keep"], "name", Meant::Volume),
    (&["volume", "resize"], "name", Meant::Volume),
    (&["volume", "rename"], "name", Meant::Volume),
    (&["volume", "copy"], "volume", Meant::Volume),
    (&["volume", "chown"], "name", Meant::Volume),
    (&["volume", "chmod"], "name", Meant::Volume),
    (&["volume", "set"], "name", Meant::Volume),
    (&["volume", "end-handle"], "name", Meant::Volume),
    (&["volume", "delete"], "name", Meant::Volume),
    (&["volume", "create"], "disks", Meant::Disk),
    (&["token", "make"], "volumes", Meant::Volume),
    (&["token", "narrow"], "volumes", Meant::Volume),
    (&["stream", "show"], "id", Meant::Stream),
    (&["stream", "set"], "id", Meant::Stream),
    (&["stream", "close"], "id", Meant::Stream),
    (&["cameras"], "camera", Meant::Camera),
    (&["pool", "profile"], "disk", Meant::Disk),
    (&["pool", "reprofile"], "disk", Meant::Disk),
    (&["pool", "set"], "policy", Meant::Policy),
    (&["serve"], "policy", Meant::Policy),
    (&["simulate"], "policy", Meant::Policy),
    (&["plan"], "model", Meant::Model),
    (&["disk", "show"], "what", Meant::Model),
    (&["disk", "emulate"], "model", Meant::Model),
    (&["serve"], "devices", Meant::File),
    (&["pool", "create"], "devices", Meant::File),
    (&["pool", "check"], "devices", Meant::File),
    (&["plan"], "device", Meant::File),
    (&["disk", "profile"], "target", Meant::File),
];

/// Answers a shell that asks what fits; does nothing where none asks.
pub fn answer(command: fn() -> clap::Command) {
    CompleteEnv::with_factory(|| offering(command())).var(ASKED).complete();
}

/// What a shell reads once, so that it asks at each press of the key.
pub fn registration(shell: clap_complete::Shell) -> Result<Vec<u8>, Failure> {
    let name = shell.to_string();
    let shells = Shells::builtins();
    let found = shells.completer(&name).expect("each shell of the one list is in the other");
    let mut text = Vec::new();
    found
        .write_registration(ASKED, "slackline", "slackline", "slackline", &mut text)
        .map_err(|error| Failure::new(format!("completions for {name}: {error}"), ""))?;
    if shell == clap_complete::Shell::Zsh {
        // Where zsh loads the file at the first press of the key, that has to be answered, too.
        text.extend_from_slice(
            b"[[ $funcstack[1] == _slackline ]] && _clap_dynamic_completer_slackline \"$@\"\n",
        );
    }
    Ok(text)
}

/// The command with what its arguments mean.
fn offering(mut command: clap::Command) -> clap::Command {
    for &(path, argument, meant) in PLACES {
        command = at(command, path, argument, meant);
    }
    command
}

fn at(command: clap::Command, path: &[&str], argument: &str, meant: Meant) -> clap::Command {
    match path.split_first() {
        Some((first, rest)) => command.mut_subcommand(*first, |it| at(it, rest, argument, meant)),
        // Not mut_arg, which would put it behind the others.
        None => command.mut_args(|it| match meant {
            _ if it.get_id() != argument => it,
            Meant::File => it.value_hint(ValueHint::AnyPath),
            _ => it.add(ArgValueCandidates::new(move || candidates(meant))),
        }),
    }
}

fn candidates(meant: Meant) -> Vec<CompletionCandidate> {
    match meant {
        Meant::Volume => offered(|client| {
            let volumes = client.volumes()?.into_iter();
            Ok(volumes.map(|it| (it.name, it.size_bytes.to_string())).collect())
        }),
        Meant::Stream => offered(|client| {
            let streams = client.streams()?.into_iter();
            Ok(streams.map(|it| (it.id.to_string(), it.volume)).collect())
        }),
        Meant::Disk => offered(|client| {
            let disks = client.status()?.disks.into_iter();
            Ok(disks.map(|it| (it.disk.to_string(), it.device)).collect())
        }),
        Meant::Camera => cameras(),
        Meant::Model => disk::Model::names().map(CompletionCandidate::new).collect(),
        Meant::Policy => policies::ALL.iter().map(|it| CompletionCandidate::new(it.name)).collect(),
        Meant::File => Vec::new(),
    }
}

/// What the daemon has, each with a word about it; nothing where it does not answer.
fn offered(
    ask: impl FnOnce(&Client) -> Result<Vec<(String, String)>, client::Error>,
) -> Vec<CompletionCandidate> {
    client::set_answer_within(ANSWER_WITHIN);
    let found = ask(&Client::at(socket())).unwrap_or_default().into_iter();
    found.map(|(name, about)| CompletionCandidate::new(name).help(Some(about.into()))).collect()
}

/// The cameras of the file that the line names so far.
fn cameras() -> Vec<CompletionCandidate> {
    let words = std::env::args_os().skip_while(|word| word != "cameras").skip(1);
    let mut names = words.map(|word| crate::cameras::names(Path::new(&word)));
    let names = names.find(|names| !names.is_empty()).unwrap_or_default();
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// The socket that the line names so far, else the one that it would go to.
fn socket() -> PathBuf {
    let mut words = std::env::args_os().skip_while(|word| word != "--socket").skip(1);
    let named = words.next().filter(|word| Path::new(word).is_absolute());
    named.map_or_else(
        || crate::named_by_environment().unwrap_or_else(client::default_socket),
        PathBuf::from,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// An argument that has got another name would be without what is offered for it.
    #[test]
    fn each_place_is_in_the_command_and_each_volume_is_a_place() {
        let command = offering(crate::Cli::command());
        command.clone().debug_assert();
        for (path, argument, _) in PLACES {
            let at = path
                .iter()
                .fold(&command, |it, name| it.find_subcommand(name).expect("it is there"));
            let named = at.get_arguments().any(|it| it.get_id() == *argument);
            assert!(named, "{path:?} has no argument {argument}");
        }
        let volumes = command.find_subcommand("volume").expect("it is there");
        for one in volumes.get_subcommands().filter(|it| it.get_name() != "create") {
            let named = one.get_arguments().find(|argument| argument.get_id() == "name");
            let Some(named) = named else { continue };
            assert!(named.get::<ArgValueCandidates>().is_some(), "{}", one.get_name());
        }
        for one in command.get_subcommands().chain(volumes.get_subcommands()) {
            let named = one.get_arguments().find(|argument| argument.get_id() == "volume");
            let Some(named) = named.filter(|it| it.is_positional()) else { continue };
            assert!(named.get::<ArgValueCandidates>().is_some(), "{}", one.get_name());
        }
    }
}
