//! On-disk format, version 7: the byte tables of every structure.
//!
//! What may never change, whatever the version: the first 16 bytes of the header
//! (magic, version, checksum) and that the checksum covers the header's 96 bytes.
//! So an old program recognises a newer pool and says so.

use crate::layout::{Table, layout};

/// The version that this program writes. It reads the earlier ones as well. Before version 7
/// there are no changes 20 to 23. Before version 6
/// there are no changes 18 and 19, names have at most 64 bytes and no slashes, and modes nine
/// bits. Before version 5
/// there are no changes 13 and 14, before version 4 no change 12. Before version 3 there are no changes 10 and 11, and the base of a twin is its own sequence number, which proves
/// nothing; version 1 has no changes 8 and 9, either, and no profile of a later generation.
pub const VERSION: u32 = 7;

layout! {
    /// What every structure begins with.
    header, "Header" {
        MAGIC, 8, "which structure this is";
        VERSION, 4, "format version, 7; this program reads 1 to 7";
        CHECKSUM, 4, "CRC-32C of these 96 bytes with this field zero";
        POOL, 16, "identity of the pool";
        DISK, 16, "identity of the disk that this was written for";
        GENERATION, 8, "labels: 1; profiles: 1 when the pool is made, and grows each time that the profile is replaced; areas: grows with every checkpoint, over all areas of the pool";
        PARENT, 8, "areas: the generation of the twin checkpoint with the same content, or this one's own where it has none";
        SEQUENCE, 8, "records: their number, each one more than the last; checkpoints: the last number that they contain";
        BASE, 8, "records: the number that the generation's checkpoint contains; checkpoints: a number that every disk held when this was written, of the current one the same as sequence";
        PLACE, 8, "byte offset on the disk at which this structure lies";
        PAYLOAD_LENGTH, 4, "bytes of payload behind the header";
        PAYLOAD_CHECKSUM, 4, "CRC-32C of everything from the end of the header to the end of the structure's last block";
    }
}

layout! {
    /// Payload of a label; `DISKS` entries follow.
    label, "Label payload" {
        INDEX, 2, "this disk's number in the pool";
        DISKS, 2, "number of disks of the pool; as many entries follow, in the order of their numbers";
        NAME_LENGTH, 2, "bytes of the pool's name";
        NAME, 64, "the pool's name, zeros behind it";
        CHECKPOINT_SIZE, 8, "bytes of each area that hold the checkpoint";
        LOG_SIZE, 8, "bytes of each area that hold the log";
    }
}

layout! {
    /// One disk in a label.
    label_disk, "Disk entry of a label" {
        ID, 16, "identity of the disk";
        CAPACITY, 8, "bytes of the disk";
    }
}

layout! {
    /// Payload of a seal.
    seal, "Seal payload" {
        SUCCESSOR, 8, "a generation that was durable on every disk when the seal was written";
    }
}

layout! {
    /// Payload of a record or a checkpoint; `COUNT` changes follow.
    changes, "Changes payload" {
        NEXT_VOLUME, 8, "the number that the next new volume gets, below 2^62";
        COUNT, 4, "number of changes that follow";
    }
}

layout! {
    /// A new volume without extents; the name, then the disks as `volume_disk` follow.
    create, "Change 1: create" {
        TAG, 1, "1";
        VOLUME, 8, "the volume's number";
        ZONE, 1, "0 any, 1 outer half, 2 inner half";
        NAME_LENGTH, 1, "bytes of the name, which follows";
        DISKS, 2, "number of disks; their numbers follow the name";
    }
}

layout! {
    /// A disk of a volume.
    volume_disk, "Disk of a volume" {
        INDEX, 2, "the disk's number in the pool";
    }
}

layout! {
    /// More extents; for each disk a `run_list` and its runs follow.
    grow, "Change 2: grow" {
        TAG, 1, "2";
        VOLUME, 8, "the volume's number";
        EXTENTS, 4, "how many extents the volume has after this";
        DISKS, 2, "number of disks of the volume; as many run lists follow";
    }
}

layout! {
    /// The new extents on one of a volume's disks.
    run_list, "Run list" {
        RUNS, 4, "number of runs that follow";
    }
}

layout! {
    /// Neighbouring extents.
    run, "Run" {
        START, 4, "number of the first extent: its byte offset on the disk in MiB; 4294967295: these have no place yet, in a thin volume";
        COUNT, 4, "how many extents";
    }
}

layout! {
    /// Fewer extents and bytes.
    cut, "Change 3: cut" {
        TAG, 1, "3";
        VOLUME, 8, "the volume's number";
        SIZE, 8, "extents wholly beyond this many bytes are given back; length and watermarks are lowered to it";
    }
}

layout! {
    /// The volume is gone.
    delete, "Change 4: delete" {
        TAG, 1, "4";
        VOLUME, 8, "the volume's number";
    }
}

layout! {
    /// The volume's recorded data ends elsewhere.
    length, "Change 5: length" {
        TAG, 1, "5";
        VOLUME, 8, "the volume's number";
        LENGTH, 8, "end of the recorded data in bytes";
    }
}

layout! {
    /// Watermarks of neighbouring extents, all alike.
    written, "Change 6: written" {
        TAG, 1, "6";
        VOLUME, 8, "the volume's number";
        FIRST, 4, "the first extent, counted in the volume";
        COUNT, 4, "how many extents";
        BLOCKS, 2, "the watermark of each of them, in blocks of 4 KiB";
    }
}

layout! {
    /// Watermarks of neighbouring extents, each its own; they follow.
    written_each, "Change 7: written, each its own" {
        TAG, 1, "7";
        VOLUME, 8, "the volume's number";
        FIRST, 4, "the first extent, counted in the volume";
        COUNT, 4, "how many watermarks follow";
    }
}

layout! {
    /// One watermark.
    watermark, "Watermark" {
        BLOCKS, 2, "blocks of 4 KiB";
    }
}

layout! {
    /// An extent of a volume lies elsewhere on its disk.
    moved, "Change 8: move" {
        TAG, 1, "8";
        VOLUME, 8, "the volume's number";
        INDEX, 4, "which extent, counted in the volume";
        EXTENT, 4, "where it lies from now on: its byte offset on the same disk in MiB";
    }
}

layout! {
    /// Bad and slow extents of a disk, in place of those that were said before.
    suspects, "Change 9: suspects" {
        TAG, 1, "9";
        DISK, 2, "the disk's number in the pool";
        COUNT, 2, "how many entries follow, in the order of the disk";
    }
}

layout! {
    /// One bad or slow extent.
    suspect, "Suspect" {
        EXTENT, 4, "number of the extent: its byte offset on the disk in MiB";
        ERRORS, 4, "commands on it that failed";
        SLOW, 4, "commands on it that overran far more than others like them";
        COMMANDS, 4, "commands that touched it since the first of these";
    }
}

layout! {
    /// Blocks of an extent that were written, with holes before them or between.
    scattered, "Change 10: scattered" {
        TAG, 1, "10";
        VOLUME, 8, "the volume's number";
        INDEX, 4, "which extent, counted in the volume";
        BLOCKS, 32, "a bit for each block of 4 KiB, the lowest of the first byte for the first: set where it was written";
    }
}

layout! {
    /// The volume is somebody else's, or others may do something else with it.
    owner, "Change 11: owner" {
        TAG, 1, "11";
        VOLUME, 8, "the volume's number";
        UID, 4, "number of the user whose it is";
        GID, 4, "number of its group";
        MODE, 2, "permission bits, as a file's: owner, group and others, three bits each; and 4 in the highest four bits for a directory, 10 for a symbolic link, 0 for all else";
    }
}

layout! {
    /// How reads and writes of the volume that no stream carries are served.
    service, "Change 12: service" {
        TAG, 1, "12";
        VOLUME, 8, "the volume's number";
        UID, 4, "number of the user who gave the volume this service";
        KIND, 1, "0 as by default, 1 best effort of a priority, 2 best effort at a rate, 3 answers in time";
        PRIORITY, 1, "kind 1: 0 interactive, 1 normal, 2 background; else 0";
        BLOCK, 8, "kind 2: bytes of the smallest operation that gets all of the rate; 3: of the largest that is answered in time; else 0";
        AMOUNT, 8, "kind 2: bytes per second; 3: nanoseconds within which an operation is answered; else 0";
        PERIOD, 8, "kind 2: nanoseconds over which the rate is kept; 3: nanoseconds between operations on one disk; else 0";
    }
}

layout! {
    /// Another policy was chosen for the pool's disks.
    policy, "Change 13: policy" {
        TAG, 1, "13";
        NAME_LENGTH, 1, "bytes of the policy's name, which follows; 0 where none is chosen any more";
        SETTINGS, 1, "number of settings that were chosen; as many follow the name";
    }
}

layout! {
    /// A setting of the policy that is not as by default.
    policy_setting, "Setting of a policy" {
        VALUE, 8, "nanoseconds, bytes, or a number";
        NAME_LENGTH, 1, "bytes of the setting's name, which follows";
    }
}

layout! {
    /// The volume, which has no extents yet, rotates over its disks by longer runs.
    rotation, "Change 14: run" {
        TAG, 1, "14";
        VOLUME, 8, "the volume's number";
        EXTENTS, 2, "extents that lie on one disk before the next disk's turn comes: a power of two, at most 16";
    }
}

layout! {
    /// The volume has another name.
    rename, "Change 18: rename" {
        TAG, 1, "18";
        VOLUME, 8, "the volume's number";
        NAME_LENGTH, 1, "bytes of the name, which follows";
    }
}

layout! {
    /// When the volume was last used.
    times, "Change 19: times" {
        TAG, 1, "19";
        VOLUME, 8, "the volume's number";
        ACCESSED, 8, "read, as far as somebody said so: nanoseconds since 1970, negative before, as the next two";
        MODIFIED, 8, "written, or cut";
        CHANGED, 8, "anything of it changed";
    }
}

layout! {
    /// The volume, in which nothing was written yet, is a ring from now on.
    ring, "Change 20: ring" {
        TAG, 1, "20";
        VOLUME, 8, "the volume's number";
    }
}

layout! {
    /// A ring's oldest extents are given up.
    given_up, "Change 21: given up" {
        TAG, 1, "21";
        VOLUME, 8, "the volume's number";
        FIRST, 8, "the first extent that the ring still holds, counted from its beginning: a multiple of 16, never less than before";
    }
}

layout! {
    /// When the volume was recorded; the list of what is dropped, then the points follow.
    recorded, "Change 22: recorded" {
        TAG, 1, "22";
        VOLUME, 8, "the volume's number";
        DOUBLINGS, 1, "how often the tolerance of half a second has doubled, of the least exact of what is held: at most 40";
        DROPPED, 2, "bytes of the list of points that are dropped, which follows: a bit for each point that there is, the lowest of the first byte for the first, set where it is dropped; points behind the last byte stay";
        KEPT, 2, "of the points that are left, how many stay, from the first on";
        POINTS, 2, "number of points that come behind them, and follow the list; 2048 at the most are there then";
    }
}

layout! {
    /// Up to where a volume was recorded at a time.
    point, "Point of a recording" {
        BLOCK, 6, "blocks of 4 KiB from the start of the volume: no less than at the point before";
        TIME, 6, "wall-clock time when the recording had come so far, in milliseconds since 1970";
    }
}

layout! {
    /// For how long the ring keeps what is recorded to it, from now on.
    keep, "Change 23: keep" {
        TAG, 1, "23";
        VOLUME, 8, "the volume's number";
        SECONDS, 4, "what was recorded so long ago is given up, also where there is room for it; 0: never for its age";
    }
}

layout! {
    /// The volume, which has no extents yet, takes their places when they are written.
    thin, "Change 24: thin" {
        TAG, 1, "24";
        VOLUME, 8, "the volume's number";
    }
}

layout! {
    /// Extents of a thin volume have a place from now on; where they had one, another.
    placed, "Change 25: placed" {
        TAG, 1, "25";
        VOLUME, 8, "the volume's number";
        INDEX, 4, "the first of them, counted in the volume";
        EXTENT, 4, "where that lies: its byte offset on its disk in MiB";
        COUNT, 4, "how many extents, one behind the other in the volume and on the disk";
    }
}

layout! {
    /// In a checkpoint, in the place of change 21: where a thin ring begins that has places. None of
    /// these is given back by it.
    begins, "Change 26: begins" {
        TAG, 1, "26";
        VOLUME, 8, "the volume's number";
        FIRST, 8, "the first extent that the ring holds, a multiple of 16";
    }
}

layout! {
    /// A ring was recorded by a clock that was set forward afterwards.
    stepped, "Change 27: stepped" {
        TAG, 1, "27";
        VOLUME, 8, "the volume's number";
        FIRST, 6, "it was so from this block on, of 4 KiB, counted from the ring's beginning";
        UNTIL, 6, "and at times before this: milliseconds since 1970";
        BY, 6, "for the ring's age all of that counts as recorded so many milliseconds later; 0: nothing does";
    }
}

/// Every table, in the document's order.
pub const TABLES: &[Table] = &[
    header::TABLE,
    label::TABLE,
    label_disk::TABLE,
    seal::TABLE,
    changes::TABLE,
    create::TABLE,
    volume_disk::TABLE,
    grow::TABLE,
    run_list::TABLE,
    run::TABLE,
    cut::TABLE,
    delete::TABLE,
    length::TABLE,
    written::TABLE,
    written_each::TABLE,
    watermark::TABLE,
    moved::TABLE,
    suspects::TABLE,
    suspect::TABLE,
    scattered::TABLE,
    owner::TABLE,
    service::TABLE,
    policy::TABLE,
    policy_setting::TABLE,
    rotation::TABLE,
    rename::TABLE,
    times::TABLE,
    ring::TABLE,
    given_up::TABLE,
    recorded::TABLE,
    point::TABLE,
    keep::TABLE,
    thin::TABLE,
    placed::TABLE,
    begins::TABLE,
    stepped::TABLE,
];
