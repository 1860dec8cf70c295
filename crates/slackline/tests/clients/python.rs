//! The library for Python beyond the table: views, NumPy's arrays, asyncio, and Python's
//! own buffers around a file.

use crate::driver;
use crate::installed::{built, prefix, root, run};
use crate::outside;
use crate::support::{Scratch, noise};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// A folder with the package as a wheel lays it down.
fn package() -> PathBuf {
    static PACKAGE: OnceLock<PathBuf> = OnceLock::new();
    let made = PACKAGE.get_or_init(|| {
        let site = prefix().join("python");
        let package = site.join("slackline");
        std::fs::create_dir_all(&package).unwrap();
        for file in ["__init__.py", "aio.py"] {
            let source = root().join("crates/python/slackline").join(file);
            std::fs::copy(source, package.join(file)).unwrap();
        }
        // Not over the one that another test has mapped.
        let library = package.join("_slackline.abi3.so");
        let _ = std::fs::remove_file(&library);
        std::fs::copy(built().join("lib_slackline.so"), library).unwrap();
        site
    });
    made.clone()
}

/// Python, with the package to be found: the system's own, which sees NumPy where the
/// system's packages put it. `SLACKLINE_PYTHON` names one in which a wheel is installed;
/// then that is what is tested (`make wheel`).
pub fn python() -> Command {
    let mut python = match std::env::var_os("SLACKLINE_PYTHON") {
        Some(program) => Command::new(program),
        None => {
            let mut python = Command::new("/usr/bin/python3");
            python.env("PYTHONPATH", package());
            python
        }
    };
    python.env("PYTHONDONTWRITEBYTECODE", "1");
    python
}

#[test]
fn views_buffers_and_tasks_of_python_work_on_a_file() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let script = dir.path("more.py");
    std::fs::write(&script, MORE).unwrap();
    let said = run(python().arg(script).arg(dir.path("s.sock")));
    assert_eq!(said, "views\nbuffers\ntasks\nerrors\n");
}

#[test]
fn arrays_of_numpy_are_written_filled_and_laid_over_the_window_by_python() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let said = run(python().arg(driver("arrays.py")).arg(dir.path("s.sock")));
    assert_eq!(said, "written\nread\nseen\ntasks\n");
}

/// (What the child dropped at its end ended its parent's recording.)
#[test]
fn the_child_of_a_fork_does_its_parents_files_no_harm_in_python() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let said = run(python().arg(driver("forks.py")).arg(dir.path("s.sock")));
    assert_eq!(said, "writer\nreader\nbest effort, read\nbest effort\n");
}

/// (Eight readers that waited for their writers had all threads of asyncio, and the writers none.)
#[test]
fn who_waits_in_python_holds_up_nobody_else() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let said = run(python().arg(driver("waits.py")).arg(dir.path("s.sock")));
    assert_eq!(said, "tasks\nsignals\n");
}

/// Its stream is carried over a socket, into memory that moves when more comes.
#[test]
fn nothing_moves_the_bytes_under_a_view_of_a_file_outside_the_pool() {
    let dir = Scratch::new();
    let Some(_daemon) = outside::serve(&dir) else { return };
    outside::lay(&dir.text("film"), &noise(1, 2_000_000).bytes());
    let script = dir.path("view.py");
    std::fs::write(&script, VIEW).unwrap();
    let said = run(python().arg(script).arg(dir.path("s.sock")).arg(dir.path("film")));
    assert_eq!(said, "held\n");
}

const VIEW: &str = r#"
import sys
import slackline

own = {"socket": sys.argv[1]}
terms = {"rate": "1MB/s", "block": "64KiB", "burst": "1MiB"}
with slackline.open(sys.argv[2], **terms, **own) as film:
    view = film.peek(1000)
    before = bytes(view)
    try:
        film.read_at(600_000, bytearray(1))
        raise SystemExit("moved under a view")
    except BufferError:
        pass
    assert bytes(view) == before
    view.release()
    assert film.read_at(600_000, bytearray(1)) == 1
print("held")
"#;

#[test]
fn a_flag_that_a_volume_does_not_know_is_refused_by_python() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let script = dir.path("flags.py");
    std::fs::write(&script, FLAGS).unwrap();
    let said = run(python().arg(script).arg(dir.path("s.sock")));
    assert_eq!(said, "refused\n");
}

const FLAGS: &str = r#"
import os, sys
import slackline

own = {"socket": sys.argv[1], "size": 1 << 20}
plain = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY | os.O_NOFOLLOW
with slackline.open("v", plain, **own) as file:
    file.write(b"bytes")
for flag in ("O_EXCL", "O_DIRECT", "O_SYNC", "O_NONBLOCK", "O_TMPFILE"):
    try:
        slackline.open("v", os.O_RDWR | os.O_CREAT | os.O_TRUNC | getattr(os, flag), **own)
        raise SystemExit(flag + " is taken")
    except ValueError as error:
        assert "flag" in str(error), error
for mode in ("x", "xb"):
    try:
        slackline.open("v", mode, **own)
        raise SystemExit(mode + " is taken")
    except ValueError:
        pass
with slackline.open("v", os.O_RDONLY, **own) as file:
    assert file.read() == b"bytes"
print("refused")
"#;

const MORE: &str = r#"
import asyncio, io, sys, threading
import slackline, slackline.aio

own = {"socket": sys.argv[1]}
data = bytes(range(256)) * 1000
with slackline.open("v", "wb", rate="8MB/s", size="4MiB", **own) as out:
    assert isinstance(out, io.RawIOBase) and out.writable() and not out.readable()
    assert out.write(data) == len(data)
    assert out.contract == (8000000, 1 << 20, 1 << 20), out.contract

grows = {"size": "1MiB", "grow_to": "8MiB", **own}
with slackline.open("grows", "wb", rate="8MB/s", **grows) as out:
    left = memoryview(data * 12)
    while len(left):
        left = left[out.write(left):]

with slackline.open("v", rate="2MB/s", block="64KiB", **own) as video:
    back = b""
    while True:
        view = video.peek(100000)
        if not len(view):
            break
        assert view.readonly and view.contiguous
        try:
            video.advance(1)
            raise SystemExit("moved under a view")
        except BufferError:
            pass
        back += bytes(view)
        passed = len(view)
        view.release()
        video.advance(passed)
    assert back == data
    video.seek(0)  # the view of nothing, at the end, is in nobody's way
    held = video.peek(10)
    for call in (video.close, lambda: video.read(1), video.sync):
        try:
            call()
            raise SystemExit("moved under a view")
        except BufferError:
            pass
    assert bytes(held) == data[:10]
    held.release()
try:
    with slackline.open("v", rate="2MB/s", block="64KiB", **own) as video:
        held = video.peek(10)
        raise KeyError("the program's own")
except KeyError:
    held.release()
try:
    slackline.open("v", block="64KiB", **own)
    raise SystemExit("a block of no contract was taken")
except ValueError as error:
    assert "rate" in str(error)
print("views")

lines = io.TextIOWrapper(io.BufferedWriter(slackline.open("text", "w", size=1 << 20, rate=8e6.__int__(), **own)))
for number in range(1000):
    print("line", number, file=lines)
lines.close()
with io.TextIOWrapper(io.BufferedReader(slackline.open("text", **own))) as lines:
    assert [line.split()[1] for line in lines] == [str(number) for number in range(1000)]
with slackline.open("text", "r+", **own) as both:
    both.seek(5)
    both.write(b"X")
    both.seek(0)
    assert both.read(7) == b"line X\n"
print("buffers")

async def tasks():
    async with await slackline.aio.open("a", "w", rate="8MB/s", size="4MiB", **own) as out:
        assert await out.write(data) == len(data)
        await out.sync()
    async with await slackline.aio.open("a", rate="8MB/s", **own) as one:
        async with await slackline.aio.open("v", rate="2MB/s", block="64KiB", **own) as two:
            assert await asyncio.gather(one.read(), two.read()) == [data, data]
            ran = asyncio.create_task(one.seek(0))
            await asyncio.sleep(0)
            ran.cancel()
            await asyncio.gather(ran, return_exceptions=True)
            await one.seek(3)
            assert await one.read(4) == data[3:7]
asyncio.run(tasks())
print("tasks")

try:
    slackline.open("v", rate="300MB/s", **own)
except OSError as error:
    assert error.refusal["rate_max"] > 0 and "rate" in error.next_step and error.errno == 16
for wrong in ({"rate": "fast"}, {"mode": "x"}, {"priority": "first"}):
    try:
        slackline.open("v", **wrong, **own)
        raise SystemExit("taken")
    except ValueError:
        pass
closed = slackline.open("v", **own)
closed.close()
closed.close()
try:
    closed.tell()
    raise SystemExit("told")
except ValueError:
    pass
print("errors")
"#;
