//! Signals while a call of Python waits: its handlers run, and what they raise ends the call.

use crate::installed::run;
use crate::outside;
use crate::python::python;
use crate::support::{Scratch, noise};

/// Whoever waits for bytes that do not come is ended by ctrl-C.
#[test]
fn a_signal_ends_a_call_that_waits_in_python() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let script = dir.path("waits.py");
    std::fs::write(&script, [COMMON, WAITS].concat()).unwrap();
    let said = run(python().arg(script).arg(dir.path("s.sock")));
    assert_eq!(said, "read\npeeked\nhandled\ngoes on\nawaited\n");
}

const WAITS: &str = r#"
import asyncio
import slackline.aio

own = {"socket": sys.argv[1]}
data = bytes(range(256)) * 1000
out = slackline.open("v", "wb", rate="2MB/s", block="64KiB", size="4MiB", **own)
out.write_all(data)
out.sync()


def rest(file):
    while file.read(1 << 16):
        pass


# The writer is silent: what is behind the end does not come.
reader = slackline.open("v", rate="1MB/s", block="64KiB", **own)
waits(rest, reader)
print("read")
place = reader.tell()
waits(reader.peek)
assert reader.tell() == place
print("peeked")

# A handler that returns does not end the call.
heard = []


def hear(*_):
    try:
        reader.tell()
    except RuntimeError:
        heard.append(out.tell())  # another file is not in that call


signal.signal(signal.SIGUSR1, hear)
end = interrupt(signal.SIGUSR1)
threading.Thread(target=lambda: (time.sleep(0.5), out.write_all(data), out.flush())).start()
more = reader.read(1000)
end()
assert more == data[place % 256 :][:1000], (place, len(more))
assert heard and heard[0] >= len(data)
print("handled")

# The handle is of use.
reader.seek(3)
assert reader.read(1000) == data[3:1003]
print("goes on")


async def awaited():
    file = await slackline.aio.open("v", rate="1MB/s", block="64KiB", **own)
    size = len(data)
    task = asyncio.create_task(file.read(size))
    assert (await task)[:5] == data[:5]
    await file.close()


asyncio.run(awaited())
print("awaited")
reader.close()
out.close()
"#;

/// A daemon that hangs: whoever does not want to wait for it goes on, and what was asked before does not
/// come to be the answer to what is asked later.
#[test]
fn a_handle_is_of_use_behind_a_signal_or_says_that_it_is_not() {
    let dir = Scratch::new();
    let (daemon, film) = match outside::serve(&dir) {
        Some(daemon) => (daemon, dir.text("film")),
        None => (dir.serve(&dir.make_pool(&["a"])), String::new()),
    };
    outside::lay(&dir.text("film"), &noise(1, 3_000_000).bytes());
    let script = dir.path("hangs.py");
    std::fs::write(&script, [COMMON, HANGS].concat()).unwrap();
    let mut python = python();
    python.arg(script).arg(dir.path("s.sock")).arg(daemon.id().to_string()).arg(film);
    assert_eq!(run(&mut python), "best effort\nstream\nfile\n");
}

const COMMON: &str = r#"
import errno, faulthandler, os, signal, sys, threading, time
import slackline

# It is ignored in what a shell has begun in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
# A test that hangs says where.
faulthandler.dump_traceback_later(200, exit=True)


def interrupt(number=signal.SIGINT):
    # Again and again: one that comes before the call waits is not this one's.
    def send():
        while not over.wait(0.1):
            os.kill(os.getpid(), number)
    over = threading.Event()
    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    def end():
        over.set()
        thread.join()
    return end


def waits(call, *arguments):
    end = interrupt()
    try:
        call(*arguments)
        raise SystemExit("it did not wait")
    except KeyboardInterrupt:
        pass
    finally:
        while True:
            try:
                end()
                break
            except KeyboardInterrupt:
                pass

"#;

const HANGS: &str = r#"
def stop():
    os.kill(daemon, signal.SIGSTOP)
    tasks = f"/proc/{daemon}/task"
    while any(open(f"{tasks}/{task}/stat").read().rsplit(") ")[1][0] != "T" for task in os.listdir(tasks)):
        time.sleep(0.01)


def go():
    os.kill(daemon, signal.SIGCONT)


def rest(file, into):
    while data := file.read(1 << 16):
        into += data


daemon, own = int(sys.argv[2]), {"socket": sys.argv[1]}
data = bytes(range(256)) * 1000
with slackline.open("v", "wb", size="4MiB", **own) as made:
    made.write_all(data)

file = slackline.open("v", "r+", **own)
assert file.read(10) == data[:10]
stop()
waits(file.read, 1000)
waits(file.read, 5000)
waits(file.write, data[10:200])
waits(file.sync)
waits(lambda: file.length)
go()
assert file.tell() == 10
assert file.read(7000) == data[10:7010]
file.sync()
file.close()
print("best effort")

out = slackline.open("w", "wb", rate="1MB/s", block="64KiB", size="4MiB", **own)
out.write_all(data)
stop()
waits(out.sync)
go()
try:
    out.sync()
    raise SystemExit("an answer of an earlier sync was taken")
except OSError as error:
    assert "a signal has ended a call" in str(error), error
# The connection has ended, and the daemon closes its stream when it hears of that.
while True:
    try:
        again = slackline.open("w", "ab", rate="1MB/s", **own)
        break
    except OSError as error:
        assert error.errno == errno.EBUSY, error
        time.sleep(0.01)
with again:
    again.write_all(b"more")
print("stream")

if sys.argv[3]:
    wanted = open(sys.argv[3], "rb").read()
    with slackline.open(sys.argv[3], rate="1MB/s", block="64KiB", **own) as film:
        back = bytearray(film.read(1000))
        stop()
        waits(rest, film, back)
        assert len(back) == film.tell() < len(wanted)
        go()
        rest(film, back)
        assert back == wanted
print("file")
"#;
