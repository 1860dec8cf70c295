//! A connection that opens a file under contract: one question, one answer. The stream's
//! bytes then travel on a connection of their own, as every stream's.

use super::frames::Outgoing;
use super::{House, give};
use crate::convert;
use crate::files::Given;
use crate::limits::{ATTACH_WITHIN, FILES_AT_ONCE, FILES_PER_USER, GOODBYE_WITHIN};
use crate::quotas::{Asked, Peer};
use crate::sessions::{Opened, Stop};
use crate::timely::socket;
use node::Mode;
use tokio::net::UnixStream;
use wire::control::{FileOpen, FileOpened};
use wire::frame::Head;
use wire::{Code, Problem};

/// Opens the file that the program gives when it is asked to, under the contract in `body`, and answers.
pub async fn open(body: &[u8], connection: UnixStream, peer: Peer, house: House) {
    let (connection, opened) = match serde_json::from_slice::<FileOpen>(body) {
        Err(error) => (connection, Err(super::protocol(format!("HelloFile: {error}")))),
        Ok(request) => match house.files.hand(peer.uid) {
            None => (connection, Err(no_hand())),
            Some(hand) => {
                let Some((connection, given)) = give::ask(connection, hand).await else { return };
                // A task of its own: a stream that was opened must be known to the sessions,
                // whatever becomes of the connection.
                let opened = tokio::spawn(open_file(house, peer, given, request)).await;
                let opened = opened.unwrap_or_else(|_| {
                    let what = "the request ended in a fault";
                    Err(Box::new(Problem::new(Code::Internal, what, "see the daemon's messages")))
                });
                (connection, opened.map_err(|problem| *problem))
            }
        },
    };
    let (head, answer) = match &opened {
        Ok(opened) => (Head::FileOpened { stream: opened.id }, serde_json::to_vec(opened)),
        Err(problem) => (Head::Refused { code: problem.code }, serde_json::to_vec(problem)),
    };
    let mut answer = answer.expect("messages are JSON");
    answer.truncate(head.body_max());
    let (_input, output) = socket::split(connection);
    let output = Outgoing::new(output);
    let _ = tokio::time::timeout(GOODBYE_WITHIN, output.send(head, &answer)).await;
}

fn no_hand() -> Problem {
    let what = format!(
        "the daemon has {FILES_PER_USER} files of this user to look at, or {FILES_AT_ONCE} of all users"
    );
    Problem::new(Code::Busy, what, "try again when some of them were answered")
}

async fn open_file(
    house: House,
    owner: Peer,
    given: Given,
    request: FileOpen,
) -> Result<FileOpened, Box<Problem>> {
    let House { entry, sessions, quotas, files, .. } = house;
    // May take seconds: nobody else waits for it.
    let found = files.find(given).await?;
    let turn = quotas.turn(&owner).await;
    let (contract, start) = (convert::contract(&request.contract), request.start_bytes);
    let taken = files.open(found, &contract, start)?;
    let stream = taken.stream;
    let volume = taken.name;
    sessions.add(Opened {
        stream,
        mode: Mode::Read,
        volume,
        start,
        buffered: false,
        grows_to: units::Bytes::ZERO,
        owner: owner.clone(),
        shared: None,
    });
    let exceeded = quotas.exceeded(&owner, &*entry.0, &sessions, &Asked::Nothing);
    drop(turn);
    if let Some(problem) = exceeded {
        let _ = sessions.close(stream, Stop::Closed).await;
        return Err(problem);
    }
    Ok(FileOpened {
        id: stream.0,
        window_bytes: taken.window,
        length_bytes: taken.length,
        attach_within_ms: ATTACH_WITHIN.as_millis() as u64,
        notes: taken.notes,
    })
}
