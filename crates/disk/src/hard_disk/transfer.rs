//! Transfers between platters, cache and bus, track by track.
//!
//! A read ends when its last sector is on the host's side of the bus. Sectors go
//! over the bus in the order of their addresses, each after the platters gave it,
//! however the heads found them. A write ends when the last sector is on the
//! medium; each track waits until the bus brings its data fast enough.
//!
//! Invariant, which the bound in [`Profile`](crate::Profile) relies on: from the
//! moment the heads reach the first track, a transfer takes at most one turn, one
//! sector, and its length at the rate of the slower of platters and bus.

use super::HardDisk;
use crate::bus::Bus;
use crate::geometry::Piece;
use crate::model::Bad;
use units::{Direction, Duration, Instant};

/// How one piece of a track comes off the platters.
struct Pass {
    land: Instant,
    wait: Duration,
    span: Duration,
    /// The heads came down among the piece's sectors and took what they found.
    wrapped: bool,
}

/// What of a read waits to be sent in one burst.
struct Burst {
    sectors: u64,
    /// The bus does not run dry if it begins here or later.
    from: Instant,
}

impl HardDisk {
    /// Reads from the medium; returns the end at the host.
    pub(super) fn read_medium(
        &mut self,
        bus: &mut Bus,
        begin: Instant,
        first: u64,
        end: u64,
    ) -> Instant {
        let (mut media, mut sent, mut lba) = (begin, begin, first);
        let mut last = None;
        let mut burst = Burst { sectors: 0, from: Instant::EPOCH };
        while lba < end {
            let (most, bad) = self.good_run(lba, end - lba);
            let piece = self.next_piece(last, lba, most);
            last = Some(piece);
            let is_first = lba == first;
            let step = if is_first {
                self.seek_to(&piece, Direction::Read)
            } else {
                self.switch_to(&piece)
            };
            let land = media + step;
            let (wait, span) = self.geometry.timing(land, &piece);
            let in_any_order =
                self.disk.reading.zero_latency && !(is_first && self.in_order(&piece, end - first));
            let wrapped = in_any_order && self.disk.rotation - wait < span;
            let pass = Pass { land, wait, span, wrapped };
            media = if wrapped { land + self.disk.rotation } else { land + wait + span };
            sent = if self.disk.reading.burst_sectors > 0 {
                self.gather(bus, &mut burst, &piece, &pass, sent, lba + piece.count == end)
            } else {
                self.send(bus, &piece, &pass, media, sent, is_first.then_some(end - first))
            };
            if let Some(bad) = bad {
                media = self.reach_bad(media, lba, bad, Direction::Read);
                sent = sent.max(media);
            }
            lba += piece.count;
        }
        self.busy_until = media;
        sent
    }

    /// True where a read that does not begin with a track waits for its first
    /// sector, since it is sent a whole track at a time.
    fn waits_for_track(&self, piece: &Piece, sectors: u64) -> bool {
        let tracks = self.disk.reading.whole_track_from;
        let per_track = self.geometry.zones[piece.zone].sectors_per_track;
        tracks > 0 && sectors >= tracks * per_track && piece.span < per_track
    }

    /// True where a long read waits for its first sector after all: the platters
    /// are slower than the bus, which would run dry.
    fn waits_for_first(&self, piece: &Piece, sectors: u64) -> bool {
        let tracks = self.disk.reading.in_order_beyond;
        let per_track = self.geometry.zones[piece.zone].sectors_per_track;
        tracks > 0
            && sectors > tracks * per_track
            && self.disk.rotation > self.disk.bus_sector * per_track
    }

    /// True where a read begins with its first sector, whatever comes by before.
    fn in_order(&self, piece: &Piece, sectors: u64) -> bool {
        self.waits_for_first(piece, sectors) || self.waits_for_track(piece, sectors)
    }

    /// Sends a piece over the bus; `whole` is the length of the transfer, given
    /// with its first piece. Returns the end of the last sector.
    fn send(
        &mut self,
        bus: &mut Bus,
        piece: &Piece,
        pass: &Pass,
        media: Instant,
        sent: Instant,
        whole: Option<u64>,
    ) -> Instant {
        let sector = self.disk.bus_sector;
        if sector.is_zero() {
            return sent.max(media);
        }
        let first_in = pass.land + pass.wait + self.geometry.sectors_time(piece, 1);
        let from = match whole {
            Some(sectors) => self.first_burst(piece, pass, media, first_in, sectors),
            None => first_in,
        };
        // The sectors that passed before the heads came down come last.
        let (late_end, after) = if pass.wrapped {
            let late = self.geometry.sectors_in(piece, self.disk.rotation - pass.wait);
            (pass.land + self.disk.rotation, piece.count.saturating_sub(late))
        } else {
            (media, 0)
        };
        // One burst that does not run dry, however fast the bus: the others need it.
        let span = sector * piece.count;
        let steady = (late_end + sector * (after + 1)).saturating_sub(span);
        bus.reserve(from.max(steady).max(sent), span)
    }

    /// Adds a piece to a burst, and sends each that is whole; with the last piece, what there
    /// is. Returns the end of the last that was sent; those before were sent by `sent`.
    fn gather(
        &self,
        bus: &mut Bus,
        burst: &mut Burst,
        piece: &Piece,
        pass: &Pass,
        sent: Instant,
        is_last: bool,
    ) -> Instant {
        let (sector, whole) = (self.disk.bus_sector, self.disk.reading.burst_sectors);
        // They go in the order of their addresses: what the heads found before the first
        // one is in by the end of the turn.
        let turn = pass.land + self.disk.rotation;
        let is_in = |count: u64| {
            let rest = self.geometry.sectors_time(piece, piece.count - count);
            let at = pass.land + pass.wait + pass.span.saturating_sub(rest);
            if pass.wrapped { at.min(turn) } else { at }
        };
        let turned = match pass.wrapped {
            true => self.geometry.sectors_in(piece, self.disk.rotation - pass.wait),
            false => 0,
        };
        let (mut taken, mut sent) = (0, sent);
        while taken < piece.count {
            let until = (taken + whole - burst.sectors).min(piece.count);
            // Up to the turn, and from there on, they come at a steady pace: the bus has to
            // wait for the first or for the last of them.
            for at in [taken, turned.clamp(taken, until - 1), until - 1] {
                let before = sector * (burst.sectors + at - taken);
                burst.from = burst.from.max(is_in(at + 1).saturating_sub(before));
            }
            burst.sectors += until - taken;
            taken = until;
            if burst.sectors == whole || (is_last && taken == piece.count) {
                sent = bus.reserve(burst.from.max(sent), sector * burst.sectors);
                *burst = Burst { sectors: 0, from: Instant::EPOCH };
            }
        }
        sent
    }

    /// When the bus may begin with a transfer.
    fn first_burst(
        &self,
        piece: &Piece,
        pass: &Pass,
        media: Instant,
        first_in: Instant,
        sectors: u64,
    ) -> Instant {
        let reading = self.disk.reading;
        let per_track = self.geometry.zones[piece.zone].sectors_per_track;
        let tracks = reading.whole_track_from;
        let in_order = self.waits_for_first(piece, sectors);
        if !in_order && self.waits_for_track(piece, sectors) {
            let skew = self.geometry.zones[piece.zone].track_skew(self.disk.rotation);
            return pass.land + pass.wait + self.disk.rotation + skew;
        }
        if !in_order && tracks > 0 && sectors >= tracks * per_track {
            return media;
        }
        if !reading.half_track || in_order {
            return first_in;
        }
        let half = pass.span / 2;
        let inside = self.disk.rotation - pass.wait;
        let half_in = if !pass.wrapped {
            pass.wait + half
        } else if inside <= half {
            half
        } else {
            half + (self.disk.rotation - pass.span)
        };
        first_in.max(pass.land + half_in)
    }

    /// Writes to the medium; the arm moves while the data comes over the bus.
    pub(super) fn write_medium(
        &mut self,
        bus: &mut Bus,
        begin: Instant,
        first: u64,
        end: u64,
    ) -> Instant {
        let sector = self.disk.bus_sector;
        let span = sector * (end - first);
        let data = bus.reserve(begin, span).saturating_sub(span);
        self.media_write(begin, first, end, |count| data + sector * count);
        self.busy_until
    }

    /// Writes sectors from the buffer; `data_in` tells when so many of them are
    /// there. Where the model says so, the last track is waited out.
    pub(super) fn media_write(
        &mut self,
        begin: Instant,
        first: u64,
        end: u64,
        data_in: impl Fn(u64) -> Instant,
    ) {
        let (mut media, mut lba) = (begin, first);
        let mut last = None;
        while lba < end {
            let (most, bad) = self.good_run(lba, end - lba);
            let piece = self.next_piece(last, lba, most);
            last = Some(piece);
            let step = if lba == first {
                self.seek_to(&piece, Direction::Write)
            } else {
                self.switch_to(&piece)
            };
            let span = self.geometry.sectors_time(&piece, piece.span);
            let (before, after) = (lba - first, lba - first + piece.count);
            // The bus must keep ahead of the platters to the end of the track.
            let ready = data_in(before + 1).max(data_in(after).saturating_sub(span));
            let ready = ready.max(media + step);
            let (wait, span) = self.geometry.timing(ready, &piece);
            media = ready + wait + span;
            if let Some(bad) = bad {
                media = self.reach_bad(media, lba, bad, Direction::Write);
            }
            lba += piece.count;
        }
        self.busy_until =
            media + last.map_or(Duration::ZERO, |it| self.rest_of_track(&it, first, end));
        self.writes_at = Some(end);
    }

    /// From the end of a write's last piece to the end of its track, where the write is so long
    /// that the disk goes on to it.
    fn rest_of_track(&self, last: &Piece, first: u64, end: u64) -> Duration {
        let beyond = self.disk.writing.whole_tracks_beyond;
        let track = self.geometry.zones[last.zone].sectors_per_track;
        if beyond == 0 || end - first <= beyond * track {
            return Duration::ZERO;
        }
        self.geometry.sectors_time(last, track - (last.sector + last.span))
    }

    /// The piece at `lba`, which follows the last one if there was any.
    fn next_piece(&self, last: Option<Piece>, lba: u64, most: u64) -> Piece {
        match last {
            Some(last) => self.geometry.piece_after(&last, lba, most),
            None => self.geometry.piece(lba, most),
        }
    }

    /// The sectors from `lba` on, at most `most`, before the next bad one; or
    /// that one alone.
    fn good_run(&self, lba: u64, most: u64) -> (u64, Option<Bad>) {
        let bad = &self.disk.bad;
        if bad.is_empty() {
            return (most, None);
        }
        match bad.get(bad.partition_point(|&(at, _)| at < lba)) {
            Some(&(at, kind)) if at == lba => (1, Some(kind)),
            Some(&(at, _)) => (most.min(at - lba), None),
            None => (most, None),
        }
    }

    /// What a bad sector costs once the heads have passed it at `now`.
    fn reach_bad(&mut self, now: Instant, lba: u64, bad: Bad, direction: Direction) -> Instant {
        match bad {
            Bad::Retried(turns) => now + self.disk.rotation * turns,
            Bad::Remapped => {
                let zone = &self.geometry.zones[self.geometry.zone(lba)];
                let (_, spare) = (lba, zone.first_sector + zone.sectors - 1);
                let place = spare - lba % zone.sectors_per_track.min(zone.sectors);
                let piece = self.geometry.piece(place, 1);
                let home = self.arm;
                let land = now + self.seek_to(&piece, direction);
                let (wait, span) = self.geometry.timing(land, &piece);
                let back = Piece { cylinder: home.0, head: home.1, ..piece };
                land + wait + span + self.seek_to(&back, direction)
            }
        }
    }
}
