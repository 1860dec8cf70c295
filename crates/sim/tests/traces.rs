//! Recorded loads of every format: small ones written by hand with all facts asserted,
//! damaged ones that must end in an error with its place and never in a panic, and a
//! real week of 1992 where it is at hand (set SLACKLINE_DATA to the folder that holds
//! hp1992/).
#![allow(clippy::print_stdout)] // what is skipped is said

use sim::Random;
use sim::traces::{Format, Notes, Options, Place, Trace, detect};
use sim::workload::{Demand, Source};
use std::io::Cursor;
use std::path::PathBuf;
use units::{Bytes, Direction, Duration};

const BLKPARSE: &str = "\
  8,0    3        1     0.000000000   697  A   R 223490 + 8 <- (8,1) 223426
  8,0    3        2     0.000001000   697  Q   R 223490 + 8 [cat]
  8,0    3        3     0.000002000   697  G   R 223490 + 8 [cat]
  8,0    3        4     0.000009000   697  D   R 223490 + 8 [cat]
  8,0    0        1     0.004001000     0  C   R 223490 + 8 [0]
  8,16   1        7     0.010000000   701  Q  WS 1024 + 256 [jbd2/sdb]
  8,0    3        5     0.009000000   697  Q  RA 223498 + 16 [cat]
  8,16   1        8     0.011000000   701  Q   W 0 + 1 [kworker]
  8,16   1        9     0.012000000   701  Q FWS [jbd2/sdb]
  8,16   1       10     0.013000000   701  Q   D 2048 + 4096 [fstrim]
  8,16   1       11     0.014000000   701  Q  FN [jbd2/sdb]
  8,16   1       12     0.015000000   701  P   N [kworker]
CPU0 (8,0):
 Reads Queued:           2,       12KiB\t Writes Queued:           0,        0KiB
Total (8,0):
";

const FIO_2: &str = "\
fio version 2 iolog
/dev/sda add
/dev/sda open
/dev/sdb add
/dev/sda read 4096 8192
/dev/sda wait 1000 0
/dev/sda write 0 512
/dev/sdb wait 250 0
/dev/sdb read 100 1
/dev/sdb datasync 0 0
/dev/sda close
";

const FIO_3: &str = "\
fio version 3 iolog
2 nvme add
5 nvme open
15 nvme read 4096 8192
1000015 nvme write 0 512
1000016 nvme trim 0 65536
1000017 nvme close
";

const SPC: &str = "\
0,20941264,8192,W,0.551706
0,20939840,8192,w,0.554041,extra,fields
1,3072,512,R,0.600000
";

const MSR: &str = "\
128166372003061629,usr,0,Read,7014609920,24576,41286
128166372013061629,usr,1,Write,1317441536,8192,1963
128166372013061628,web,0,Read,0,4096,1000
";

/// A header as HP's files have it, and some records.
fn srt(records: &[&[u32]]) -> Vec<u8> {
    let header = "$$TR_IOREC-1.3 (x) \nversion = 1.3;\nsystem = \"h\";\ndisks = {\n 0 -> {\n  \
                  disktype = hp335h,\n nspt = 113,\n ntpc = 8,\n ncyl = 1449,\n seekparms = {616, \
                  3450},\n adaptor = 1 -> { hp_ib , 1.2 , 250 },\n sectorsize = 256,\n sections = \
                  { 8 -> { \"/\", size = (1 2), blocksize = 8192 } }\n },\n 2 -> { sectorsize = \
                  1024, nspt = 10, ntpc = 2, ncyl = 5 }\n };\n\x0c";
    let mut bytes = header.as_bytes().to_vec();
    for word in records.iter().flat_map(|it| it.iter()) {
        bytes.extend(word.to_be_bytes());
    }
    bytes
}

fn srt_sample() -> Vec<u8> {
    srt(&[
        &[56, 4 << 16 | 1, 0, 0, 174, 19_687, 4096, 1056, 0x0800_0007, 4, 1, 0x1b, 0, 1],
        &[60, 4 << 16 | 2, 1, 0, 1, 2, 4096, 1056, 0x0800_0007, 4, 1, 0x1b, 0, 1, 9],
        &[52, 3 << 16 | 1, 1, 500_000, 10, 900, 1024, 9, 0x0800_0207, 4, 1, 0x10a, 0],
    ])
}

fn read(text: impl Into<Vec<u8>>, format: Format) -> Trace {
    Trace::read(Box::new(Cursor::new(text.into())), format, Options::default())
}

type Fact = (u64, u32, u64, u64, Direction, bool);

/// Time in us, disk, sector, bytes, direction, synchronous.
fn fact(demand: Demand) -> Fact {
    let Demand { at, disk, access, synchronous } = demand;
    (at.as_micros(), disk, access.lba.get(), access.len.get(), access.direction, synchronous)
}

fn facts(trace: &mut Trace) -> Vec<Fact> {
    let facts = trace.by_ref().map(fact).collect();
    assert_eq!(trace.error(), None);
    facts
}

use Direction::{Read, Write};

#[test]
fn blkparse_text_gives_the_requests_that_were_queued() {
    let mut trace = read(BLKPARSE, Format::Blkparse);
    assert_eq!(
        facts(&mut trace),
        [
            (1, 0, 223_490, 4096, Read, true),
            (10_000, 1, 1024, 131_072, Write, true),
            (10_000, 0, 223_498, 8192, Read, false), // was earlier: another processor's clock
            (11_000, 1, 0, 512, Write, false),
        ]
    );
    assert_eq!(trace.disks(), ["8,0", "8,16"]);
    assert_eq!(trace.notes(), Notes { skipped: 3, earlier: 1 });
    let options = Options { blkparse_action: 'D', ..Options::default() };
    let input = Box::new(Cursor::new(BLKPARSE));
    let issued = Trace::read(input, Format::Blkparse, options);
    assert_eq!(issued.map(fact).collect::<Vec<_>>(), [(9, 0, 223_490, 4096, Read, true)]);
}

#[test]
fn fio_logs_of_both_versions_give_offsets_as_sectors_and_microseconds() {
    let mut two = read(FIO_2, Format::FioIolog);
    assert_eq!(
        facts(&mut two),
        [
            (0, 0, 8, 8192, Read, true),
            (1_000, 0, 0, 512, Write, false),
            (1_250, 1, 0, 512, Read, true), // one byte touches one sector
        ]
    );
    assert_eq!(two.disks(), ["/dev/sda", "/dev/sdb"]);
    let mut three = read(FIO_3, Format::FioIolog);
    assert_eq!(
        facts(&mut three),
        [(15, 0, 8, 8192, Read, true), (1_000_015, 0, 0, 512, Write, false)]
    );
    assert_eq!((two.notes().skipped, three.notes().skipped), (1, 1));
}

#[test]
fn spc_records_count_in_blocks_of_the_files_own_size() {
    let first = (551_706, 0, 20_941_264, 8192, Write, false);
    let mut trace = read(SPC, Format::Spc);
    assert_eq!(
        facts(&mut trace),
        [first, (554_041, 0, 20_939_840, 8192, Write, false), (600_000, 1, 3072, 512, Read, true)]
    );
    let options = Options { spc_block: Bytes::kib(4), ..Options::default() };
    let mut large = Trace::read(Box::new(Cursor::new(SPC)), Format::Spc, options);
    assert_eq!(large.next().unwrap().access.lba.get(), 20_941_264 * 8);
}

#[test]
fn msr_records_begin_with_the_first_and_name_disks_by_host() {
    let mut trace = read(MSR, Format::Msr);
    assert_eq!(
        facts(&mut trace),
        [
            (0, 0, 13_700_410, 24_576, Read, true),
            (1_000_000, 1, 2_573_128, 8192, Write, false),
            (1_000_000, 2, 0, 4096, Read, true),
        ]
    );
    assert_eq!(trace.disks(), ["usr.0", "usr.1", "web.0"]);
    assert_eq!(trace.notes().earlier, 1);
    assert_eq!(trace.recorded().unwrap().done, Duration::from_micros(100));
}

#[test]
fn srt_records_count_in_sectors_of_each_disk_and_doubted_ones_are_left_out() {
    let mut trace = read(srt_sample(), Format::Srt);
    let first = trace.next().map(fact);
    assert_eq!(first, Some((0, 0, 528, 4096, Read, true)));
    let recorded = trace.recorded().unwrap();
    assert_eq!(recorded.started, Some(Duration::from_micros(174)));
    assert_eq!((recorded.done, recorded.queue), (Duration::from_micros(19_687), Some(1)));
    assert_eq!(facts(&mut trace), [(1_500_000, 2, 18, 1024, Write, false)]);
    assert_eq!(trace.recorded().unwrap().queue, None, "version 3 does not tell it");
    assert_eq!(trace.notes().skipped, 1);
    assert_eq!(trace.capacity(0), Some(Bytes::new(1449 * 8 * 113 * 256)));
    assert_eq!(trace.capacity(2), Some(Bytes::new(100 * 1024)));
    assert_eq!((trace.capacity(1), trace.capacity(9)), (None, None));
}

fn samples() -> Vec<(Format, Vec<u8>)> {
    vec![
        (Format::Blkparse, BLKPARSE.into()),
        (Format::FioIolog, FIO_2.into()),
        (Format::FioIolog, FIO_3.into()),
        (Format::Spc, SPC.into()),
        (Format::Msr, MSR.into()),
        (Format::Srt, srt_sample()),
    ]
}

#[test]
fn the_format_is_told_from_the_begin() {
    for (format, sample) in samples() {
        assert_eq!(detect(&sample), Some(format), "{format}");
    }
    assert_eq!(detect(b"Timestamp,Hostname,DiskNumber,Type\n"), Some(Format::Msr));
    assert_eq!(detect(b"\x1f\x8b\x08\x00compressed"), None);
    assert_eq!(detect(b"just some text\n1,2,3\nfields, of, no, trace, 5\n"), None);
    assert_eq!(detect(b""), None);
}

#[test]
fn what_cannot_be_read_is_an_error_with_its_place_and_a_remedy() {
    let line = |text: &str, line: &str, format| {
        (Vec::from(text.replacen(line, "nonsense 12\n", 1)), format)
    };
    let two = MSR.lines().nth(1).unwrap();
    let cases = [
        (line(MSR, two, Format::Msr), Place::Line(2), 1),
        (line(SPC, "1,3072,512,R,0.600000", Format::Spc), Place::Line(3), 2),
        (line(FIO_2, "/dev/sda wait 1000 0", Format::FioIolog), Place::Line(6), 1),
        (line(FIO_3, "15 nvme read 4096 8192", Format::FioIolog), Place::Line(4), 0),
        ((SPC.replace("0.554041", "0.55404x").into(), Format::Spc), Place::Line(2), 1),
        ((SPC.replace("3072,512", "3072,9999999999").into(), Format::Spc), Place::Line(3), 2),
        ((BLKPARSE.replacen("8,0 ", "8.0 ", 1).into(), Format::Blkparse), Place::Line(1), 0),
        ((BLKPARSE.replace("0 + 1 [", "0 + x [").into(), Format::Blkparse), Place::Line(8), 3),
        ((vec![0xff; 70_000], Format::Spc), Place::Line(1), 0),
        ((b"fio version 4 iolog\n".to_vec(), Format::FioIolog), Place::Line(1), 0),
    ];
    for ((text, format), place, good) in cases {
        let mut trace = read(text, format);
        assert_eq!(trace.by_ref().count(), good, "{format} {place}");
        let error = trace.error().unwrap_or_else(|| panic!("{format} {place} is an error"));
        assert_eq!(error.place, place, "{error}");
        assert!(!error.problem.is_empty() && !error.remedy.is_empty(), "{error}");
        assert_eq!(trace.next(), None, "it stays ended");
    }
}

#[test]
fn a_damaged_srt_file_tells_the_byte_of_the_record() {
    let sample = srt_sample();
    let header = sample.len() - 56 - 60 - 52;
    let mut cut = read(sample[..sample.len() - 3].to_vec(), Format::Srt);
    assert_eq!(cut.by_ref().count(), 1);
    assert_eq!(cut.error().unwrap().place, Place::Offset((header + 56 + 60) as u64));
    let mut long = sample.clone();
    long[header + 56 + 2] = 0x70; // a record of 28 kB
    let mut long = read(long, Format::Srt);
    assert_eq!(long.by_ref().count(), 1);
    let error = long.error().unwrap().to_string();
    assert!(error.starts_with(&format!("byte {}: a record of version 4", header + 56)), "{error}");
    let mut unknown =
        read(srt(&[&[52, 3 << 16 | 1, 0, 0, 0, 0, 1, 1, 0x100, 0, 0, 0, 0]]), Format::Srt);
    assert_eq!(unknown.next(), None);
    assert!(unknown.error().unwrap().problem.contains("disk 1"));
}

/// Bytes are changed, dropped, doubled and cut anywhere; also a reader gets another
/// format's file. Times never go back, every demand is whole, and nothing panics.
#[test]
fn damaged_traces_end_in_order() {
    let rounds = std::env::var("SLACKLINE_FUZZ").ok().and_then(|it| it.parse().ok());
    let mut random = Random::new(5);
    let formats = samples();
    let (mut errors, mut whole) = (0u64, 0u64);
    for _ in 0..rounds.unwrap_or(5_000) {
        for (format, sample) in &formats {
            let mut bytes = sample.clone();
            for _ in 0..random.between(1, 6) {
                damage(&mut bytes, &mut random);
            }
            let format =
                if random.chance(5) { formats[random.below(6) as usize].0 } else { *format };
            let mut trace = read(bytes.clone(), format);
            let mut last = Duration::ZERO;
            for demand in trace.by_ref() {
                assert!(demand.at >= last, "times go on");
                assert!(!demand.access.len.is_zero());
                assert!(demand.access.len.is_multiple_of(units::SECTOR));
                let _ = demand.access.end().offset(); // does not overflow
                last = demand.at;
            }
            *if trace.error().is_some() { &mut errors } else { &mut whole } += 1;
            let _ = detect(&bytes);
        }
    }
    println!("{errors} damaged traces refused, {whole} still readable");
    assert!(errors > whole / 2, "damage is found: {errors} of {}", errors + whole);
}

fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    if bytes.is_empty() {
        return;
    }
    let at = random.below(bytes.len() as u64) as usize;
    match random.below(6) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = random.below(256) as u8,
        2 => bytes[at] = *random.pick(b"0123456789,. \n+-"),
        3 => drop(bytes.remove(at)),
        4 => bytes.truncate(at),
        _ => {
            let piece = bytes[at..(at + 20).min(bytes.len())].to_vec();
            bytes.splice(at..at, piece);
        }
    }
}

/// The real week: what the file is known to hold, and what the thesis prints of the
/// whole trace that it is a part of.
#[test]
fn a_real_week_is_read_to_its_end() {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let data = std::env::var_os("SLACKLINE_DATA").map_or(beside, PathBuf::from);
    let path = data.join("hp1992/ajw.1week.srt");
    if !path.is_file() {
        return skips::not_run("needs SLACKLINE_DATA, a folder that holds hp1992/ajw.1week.srt");
    }
    let mut trace = Trace::open(&path).unwrap();
    assert_eq!(trace.format(), Format::Srt);
    let (mut count, mut queue, mut last) = ([0u64; 2], 0, Duration::ZERO);
    let mut service = [Duration::ZERO; 2];
    while let Some(demand) = trace.next() {
        let (disk, recorded) = (demand.disk as usize, trace.recorded().unwrap());
        assert!(demand.access.end().offset() <= trace.capacity(demand.disk).unwrap());
        count[disk] += 1;
        service[disk] += recorded.done - recorded.started.unwrap();
        queue += u64::from(recorded.queue.unwrap());
        last = demand.at;
    }
    assert_eq!(trace.error(), None);
    assert_eq!(trace.notes(), Notes::default());
    assert_eq!(count, [42_252, 2_267]);
    assert_eq!(last.as_millis() / 1000, 603_064);
    let mean = |disk: usize| service[disk].as_micros() / count[disk];
    assert!(mean(0).abs_diff(25_350) <= 5 && mean(1).abs_diff(20_130) <= 5, "25.35 and 20.13 ms");
    assert_eq!(queue * 100 / 44_519, 491, "4.91 in the mean; the thesis prints 4.1 of all weeks");
}
