//! The bounds of `slackline cameras`, in one place.

use std::time::Duration;
use units::Bytes;

/// Cameras in one file: each has two threads and a child.
pub const CAMERAS_MAX: usize = 256;
/// Bytes in one piece of a buffer: 348 packets of MPEG-TS, and what a pipe holds.
pub const PIECE: usize = 348 * 188;
/// The least buffer of a camera: some pieces.
pub const BUFFER_MIN: Bytes = Bytes::MIB;
/// The largest.
pub const BUFFER_MAX: Bytes = Bytes::GIB;
/// Buffers of all cameras together.
pub const BUFFERS_MAX: Bytes = Bytes::new(16 << 30);
/// A camera's buffer holds so many seconds of its rate unless its file says otherwise: the
/// daemon's start takes less.
pub const BUFFER_LASTS: units::Duration = units::Duration::from_secs(20);
/// Bytes of a packet at the most.
pub const PACKET_MAX: Bytes = Bytes::new(4_096);
/// Lines of a command's standard error that are kept.
pub const LINES: usize = 5;
/// Characters of each.
pub const LINE_MAX: usize = 300;
/// Bytes of a line that are read, to know what of it is a password.
pub const HEARD_MAX: usize = 4_096;
/// Lines that are known of a command, so that none is told twice.
pub const KNOWN: usize = 64;
/// So many lines of a command that runs are told within [`TOLD_WITHIN`] at the most.
pub const TOLD_MAX: usize = 10;
/// See [`TOLD_MAX`].
pub const TOLD_WITHIN: units::Duration = units::Duration::from_secs(3_600);
/// Of the last lines of a command that runs, the status has so many.
pub const LINES_NOTED: usize = 2;
/// Things that players do not know which are kept of a command: a stream has few codecs.
pub const UNPLAYABLE_MAX: usize = 4;
/// What was lost is told beside a camera that records for so long.
pub const LOST_LATELY: Duration = Duration::from_secs(3_600);
/// Losses of a camera that the status names.
pub const LOSSES: usize = 8;
/// A loss is over, and told, when nothing was lost for so long.
pub const LOSS_OVER: Duration = Duration::from_secs(5);
/// A command that was asked to end has so long before it is killed.
pub const CHILD_WITHIN: Duration = Duration::from_secs(3);
/// All of it ends within this after SIGTERM, or says what did not.
pub const STOP_WITHIN: Duration = Duration::from_secs(10);
/// And then so long for what is left to be told.
pub const TELL_WITHIN: Duration = Duration::from_secs(1);
/// A larger file is not read for the names in it, which a shell asks for.
pub const FILE_MAX: u64 = 1 << 20;
/// How often threads look whether they shall end.
pub const LOOK: Duration = Duration::from_millis(100);
/// How often the table on a terminal is drawn.
pub const DRAW: Duration = Duration::from_secs(1);
/// What to do is told to a person once in this time, however many cameras have it.
pub const SAME_NEXT: Duration = Duration::from_secs(60);
/// Bytes of events that wait for whoever reads standard output.
pub const UNTOLD_MAX: usize = 1 << 20;
/// The daemon has so long for an answer: it is on this machine.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(20);
/// Whoever has no bytes for so long tells the daemon that it pauses, and hears whether the daemon
/// is still there.
pub const IDLE: Duration = Duration::from_millis(500);
/// A daemon that takes nothing for so long, while there is something, hangs.
pub const STUCK: Duration = Duration::from_secs(10);
/// How often an answer of the daemon's is asked for again while it says no: at first, and at most.
pub const ASK_AGAIN: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));
/// The same where it said why not and only a person changes that.
pub const ASK_AGAIN_LATER: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// How often it is looked what the daemon has of the cameras, unless somebody asks for it.
pub const FOLLOW: Duration = Duration::from_secs(5);
/// Whoever asks for it waits for the daemon so long at the most.
pub const FOLLOWED_WITHIN: Duration = Duration::from_secs(2);
/// Connections to the status socket are served one after the other, each within this.
pub const STATUS_WITHIN: Duration = Duration::from_secs(1);
/// Whoever asks there has an answer within this, or none: some may be before him.
pub const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
/// `slackline status` waits no longer for supervisors: one that was stopped does not answer.
pub const BRIEFLY: Duration = Duration::from_secs(1);
