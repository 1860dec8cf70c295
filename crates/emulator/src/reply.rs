//! An answer that the kernel waits for.

use crate::device::Failed;
use crate::order::Failure;
use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};

fn errno(failure: Failure) -> Errno {
    match failure {
        Failure::Io => Errno::EIO,
        Failure::NoSpace => Errno::ENOSPC,
        Failure::NoMemory => Errno::ENOMEM,
        Failure::ReadOnly => Errno::EROFS,
    }
}

/// How the sender of a request is told.
#[derive(Debug)]
pub(crate) enum Reply {
    Read(ReplyData),
    Write(ReplyWrite),
    Sync(ReplyEmpty),
}

impl Reply {
    /// Answers; gives back the memory that is not needed any more.
    pub fn send(self, result: Result<Vec<u8>, Failed>) -> Option<Vec<u8>> {
        match (self, result) {
            (Self::Read(reply), Ok(bytes)) => {
                reply.data(&bytes);
                Some(bytes)
            }
            (Self::Write(reply), Ok(bytes)) => {
                reply.written(u32::try_from(bytes.len()).expect("no more than was asked for"));
                Some(bytes)
            }
            (Self::Sync(reply), Ok(_)) => {
                reply.ok();
                None
            }
            (Self::Read(reply), Err(Failed(failure))) => {
                reply.error(errno(failure));
                None
            }
            (Self::Write(reply), Err(Failed(failure))) => {
                reply.error(errno(failure));
                None
            }
            (Self::Sync(reply), Err(Failed(failure))) => {
                reply.error(errno(failure));
                None
            }
        }
    }
}
