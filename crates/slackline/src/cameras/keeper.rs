//! What one camera gave, on its way into its volume.
//!
//! Invariants: the volume is written from its durable end on, by nobody else; what was handed over
//! is held until it is durable; a daemon that goes away is waited for, with the bytes in memory; the
//! command never waits for any of this.

use super::back_off::{BackOff, chance};
use super::camera::{AWAY, Camera, Next, Room};
use super::check;
use super::limits::{ASK_AGAIN, ASK_AGAIN_LATER, IDLE, LOOK};
use crate::appending::writer_at;
use crate::contract::thin_placement;
use crate::pausing::PAUSE;
use crate::slow::Due;
use client::control::{Contract, Mode, Volume, VolumeCreate};
use client::{Client, Code, Error, Writer};
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Keeps `camera`, the one of this number in its file, in its volume until it is over. They ask
/// for the first time in the order of the file: where not all fit, the first ones do.
pub fn run(camera: &Camera, client: &Client, number: usize, turn: &AtomicUsize) {
    while turn.load(Ordering::Acquire) < number {
        if camera.is_over() {
            if camera.unsaved() == 0 {
                return;
            }
            break; // there is no time to wait for the others
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let (mut soon, mut later) = (BackOff::new(ASK_AGAIN), BackOff::new(ASK_AGAIN_LATER));
    let mut made = None;
    loop {
        let carried = open(camera, client, &mut made);
        turn.fetch_max(number + 1, Ordering::Release);
        let carried = carried.and_then(|writer| {
            made = None;
            soon.reset();
            later.reset();
            carry(camera, writer)
        });
        let why_not = match carried {
            Ok(()) => return camera.closed(),
            Err(why_not) => why_not,
        };
        // A refusal leaves things as they were: who corrects the file gets a volume as it says then.
        if let Some(volume) = made.take_if(|_| !why_not.soon || camera.is_over()) {
            made = unmake(camera, client, volume);
        }
        camera.refused(why_not.state, &why_not.what, &why_not.next);
        if camera.is_over() && camera.unsaved() == 0 {
            return;
        }
        let back_off = if why_not.soon { &mut soon } else { &mut later };
        let until = Instant::now() + back_off.wait(chance());
        while Instant::now() < until && !camera.is_over() {
            std::thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
        }
        if camera.is_over() {
            std::thread::sleep(LOOK); // and once more, until the supervisor's patience ends
        }
    }
}

/// Why the daemon does not take its bytes.
struct WhyNot {
    state: &'static str,
    what: String,
    next: String,
    /// Nobody has to do anything: it is tried again soon.
    soon: bool,
}

impl From<Error> for WhyNot {
    fn from(error: Error) -> Self {
        let (state, soon) = match (&error, error.code()) {
            (Error::NoDaemon { .. } | Error::Broken(_), _) => (AWAY, true),
            (_, Some(Code::ShuttingDown)) => (AWAY, true),
            (_, Some(Code::NoSuchStream | Code::Silent)) => ("stream closed", true),
            (_, Some(Code::Refused)) => ("refused", error.may_be_tried_again() || error.passes()),
            (_, Some(Code::NoMemory | Code::Quota)) => ("refused", false),
            (_, Some(Code::Busy | Code::VolumeBusy)) => ("busy", true),
            (_, Some(Code::VolumeFull | Code::PoolFull)) => ("full", false),
            _ => ("failed", false),
        };
        let fits = error.refusal().map(|refusal| refusal.rate_max_bytes_per_second);
        let next = match fits {
            _ if is_late(&error) => format!("its bytes wait in memory; {}", error.next_step()),
            _ if state == AWAY => "its bytes wait in memory; start the daemon: `systemctl \
                                          start slackline`, or `slackline serve DEVICE...`"
                .into(),
            _ if state == "stream closed" => {
                "its bytes wait in memory, and it is opened again at once; \
                                              `slackline events` says what the daemon did"
                    .into()
            }
            Some(fits) if !fits.is_zero() => format!(
                "the largest rate that fits in these blocks is {fits}: make `rate` smaller or \
                 `block` larger in the file, or close a stream"
            ),
            _ => error.next_step(),
        };
        Self { state, what: error.to_string(), next, soon }
    }
}

/// There is a daemon, which has not answered in time: it need not be started.
fn is_late(error: &Error) -> bool {
    use std::io::ErrorKind::{TimedOut, WouldBlock};
    matches!(error, Error::Broken(cause) if matches!(cause.kind(), TimedOut | WouldBlock))
}

impl WhyNot {
    /// The same of a ring that was there already, has nothing, and is too small for the contract.
    fn of_an_empty(self, volume: &str) -> Self {
        let quoted = report::quoted(volume);
        let next = format!(
            "{}; nothing is recorded in volume {volume}: `slackline volume delete {quoted}` has it made \
             anew as the file says",
            self.next
        );
        Self { next, ..self }
    }
}

fn full(camera: &Camera) -> WhyNot {
    let (volume, quoted) = (&camera.spec.volume, report::quoted(&camera.spec.volume));
    WhyNot {
        state: "full",
        what: format!("volume {volume} has no more room, and what comes now is lost"),
        next: format!(
            "give it more: `slackline volume resize {quoted} SIZE`; or name another volume for this \
             camera in the file, and start this again"
        ),
        soon: false,
    }
}

fn no_ring(camera: &Camera) -> WhyNot {
    let (volume, quoted) = (&camera.spec.volume, report::quoted(&camera.spec.volume));
    WhyNot {
        state: "failed",
        what: format!("volume {volume} is no ring, and the file wants one"),
        next: format!(
            "name another volume for this camera in the file, or remove `ring` and `keep` there; or, \
             where nobody needs what it has, `slackline volume delete {quoted}`"
        ),
        soon: false,
    }
}

/// Removes a volume that was made for a stream which was refused, by its number, where nobody has
/// used it since, or given it another name; gives it back where it is still there.
fn unmake(camera: &Camera, client: &Client, made: String) -> Option<String> {
    let is_unused = |volume: &Volume| volume.length_bytes.is_zero() && volume.streams == 0;
    match client.volume(&made) {
        Ok(volume) if is_unused(&volume) && volume.name == camera.spec.volume => {
            client.volume_delete(&made).err().map(|_| made)
        }
        Err(error) if error.code() != Some(Code::NoSuchVolume) => Some(made),
        _ => None,
    }
}

/// Opens its volume for writing, behind what it has; makes it where there is none, and says so by its
/// number.
fn open(camera: &Camera, client: &Client, made: &mut Option<String>) -> Result<Writer, WhyNot> {
    let spec = &camera.spec;
    match client.volume(&spec.volume) {
        Err(error) if error.code() == Some(Code::NoSuchVolume) => {
            let (ring, keep_ns) = (spec.ring, spec.keep);
            let size = match spec.is_size_by_keep {
                true => spec.ring_size(check::ring_least(spec, client)?),
                false => spec.size,
            };
            let new = VolumeCreate::new(&spec.volume, size);
            let placement = thin_placement(spec.thin);
            let new = VolumeCreate { ring, keep_ns, placement, ..new };
            *made = Some(client.volume_create(&new)?.by_number());
        }
        other => {
            let there = other?.ring;
            if spec.ring && there.is_none() {
                return Err(no_ring(camera));
            }
            // Once: whoever changes it meanwhile (`volume keep NAME off`) has his reasons.
            let is_new = !camera.was_opened();
            let was = there.and_then(|ring| ring.keep_ns);
            if let (true, Some(keep)) = (is_new && was != spec.keep, spec.keep) {
                client.volume_keep(&spec.volume, spec.keep)?;
                camera.keeps(was, keep);
            }
        }
    }
    // A writer of this program's that the daemon has not yet closed may still make it longer.
    let writes = |mode| mode != Mode::Read;
    let other =
        client.streams()?.into_iter().find(|one| one.volume == spec.volume && writes(one.mode));
    if let Some(other) = other {
        return Err(WhyNot {
            state: "busy",
            what: format!(
                "stream {} of user {} writes volume {}",
                other.id, other.user, spec.volume
            ),
            next: format!(
                "wait for its end, or close it: `slackline stream close {}`",
                report::stream_on(&spec.volume, other.id)
            ),
            soon: true,
        });
    }
    let volume = client.volume(&spec.volume)?;
    let (length, room) = (volume.length_bytes, Room::of(spec, &volume));
    if length >= room.size && !room.is_ring {
        return Err(full(camera));
    }
    let rate = camera.rate();
    let chosen = match spec.block {
        Some(block) => block,
        None => client.block_for(&spec.volume, Mode::Write, rate)?,
    };
    let contract = spec.contract(rate, chosen);
    let opened = writer_at(client, &spec.volume, contract, length, spec.grow_to);
    let (writer, unread) = match opened {
        // With what it asked for lately it does not fit any more: with the file's it may.
        Err(error) if error.code() == Some(Code::Refused) && camera.reset_rate() => {
            return Err(WhyNot { soon: true, ..error.into() });
        }
        // What the daemon says of a ring that is too small for its contract.
        Err(error)
            if made.is_none()
                && length.is_zero()
                && room.is_ring
                && error.code() == Some(Code::Invalid) =>
        {
            return Err(WhyNot::from(error).of_an_empty(&spec.volume));
        }
        opened => opened?,
    };
    // What its ring gives up ahead of it is known since it is open.
    let room = match room.is_ring {
        true => client.volume(&spec.volume).map_or(room, |volume| Room::of(spec, &volume)),
        false => room,
    };
    camera.opened(writer.stream(), contract, length, room);
    if !unread.is_zero() {
        camera.unread(unread);
    }
    Ok(writer)
}

/// Hands over what comes, until nothing more will: then everything is on the medium.
fn carry(camera: &Camera, mut writer: Writer) -> Result<(), WhyNot> {
    // Since when nothing came.
    let mut idle = Instant::now();
    let mut durable = writer.durable();
    let mut due = Due::new(idle, durable);
    // When the daemon last had to hear of it: what is less than a block makes no call.
    let mut rung = Instant::now();
    loop {
        match camera.next(LOOK) {
            Next::Piece(piece) => {
                let written = writer.write_all(&piece).map_err(Error::from);
                if let Err(error) = written {
                    return Err(ended(camera, writer, error));
                }
                idle = Instant::now();
                if rung.elapsed() >= IDLE {
                    rung = idle;
                    writer.flush().map_err(Error::from)?;
                }
            }
            // Also hears where there is no daemon any more.
            Next::Nothing if idle.elapsed() >= IDLE => {
                idle = Instant::now();
                writer.pause(PAUSE)?;
            }
            Next::Nothing => {}
            Next::Over => {
                let durable = writer.close()?;
                camera.durable(durable);
                return Ok(());
            }
        }
        let now = writer.durable();
        if now > durable {
            camera.unstuck();
        }
        durable = now;
        if due.is_due(Instant::now(), durable, camera.durable(durable)) {
            let synced = writer.sync();
            match synced {
                Ok(now) => durable = now,
                Err(error) => return Err(ended(camera, writer, error)),
            }
            due.asked(Instant::now(), durable);
            camera.unstuck();
            camera.durable(durable);
        }
        renegotiate(camera, &mut writer)?;
    }
}

/// What went through is durable, and the stream is closed, where there still is a daemon.
fn ended(camera: &Camera, writer: Writer, error: Error) -> WhyNot {
    if error.code() != Some(Code::VolumeFull) {
        return error.into();
    }
    if let Ok(durable) = writer.close() {
        camera.durable(durable);
    }
    full(camera)
}

/// Asks for another rate, where the camera has another than its contract.
fn renegotiate(camera: &Camera, writer: &mut Writer) -> Result<(), WhyNot> {
    let Some((wish, measured)) = camera.wish() else { return Ok(()) };
    let mut next = Some(wish);
    while let Some(rate) = next.take() {
        // Others may have changed its burst.
        let now = camera.contract().unwrap_or_else(|| writer.contract());
        let contract = Contract { rate_bytes_per_second: rate, ..now };
        match writer.set_contract(contract) {
            Ok(()) => camera.granted(rate, measured),
            Err(error) if error.problem().is_none() => return Err(error.into()),
            Err(error) => {
                let fits = error.refusal().map(|refusal| refusal.rate_max_bytes_per_second);
                let (why, what_next) = (error.to_string(), error.next_step());
                let again = camera.rate_refused(rate, measured, fits, &why, &what_next);
                // Once: what fitted a moment ago is either granted or gone.
                next = again.filter(|_| rate == wish);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use client::Problem;

    /// A host that is busy for a while costs a camera seconds, not half a minute.
    #[test]
    fn what_passes_by_itself_is_asked_for_again_soon() {
        let soon = |code, passes| {
            let problem = Problem { passes, ..Problem::new(code, "why", "what next") };
            WhyNot::from(Error::Problem(Box::new(problem))).soon
        };
        assert!(soon(Code::Refused, true) && soon(Code::VolumeBusy, false));
        assert!(soon(Code::NoSuchStream, false));
        assert!(!soon(Code::Refused, false) && !soon(Code::VolumeFull, false));
    }

    /// Who was told to start a daemon that hangs found that there is one.
    #[test]
    fn a_daemon_that_does_not_answer_is_not_to_be_started() {
        let broken = |kind: std::io::ErrorKind| WhyNot::from(Error::Broken(kind.into()));
        let late = broken(std::io::ErrorKind::WouldBlock);
        assert_eq!(late.state, AWAY);
        assert!(
            late.next.contains("wait in memory; look at the daemon's messages"),
            "{}",
            late.next
        );
        let gone = broken(std::io::ErrorKind::ConnectionReset);
        assert!(gone.next.contains("start the daemon"), "{}", gone.next);
    }
}
