"""The driver for Python: reads steps of the table on standard input, does them with the
package slackline, and prints one line for each. The first argument is the socket."""

import errno
import os
import sys

import slackline

file = None
last = None


def stream(seed, at, length):
    start = (at * 0x9E3779B1 + seed * 0x85EBCA6B) & 0xFFFFFFFF
    return bytes(((start + i * 0x9E3779B1) & 0xFFFFFFFF) >> 24 for i in range(length))


def same(data, seed, at):
    if data == stream(seed, at, len(data)):
        return "same"
    return "other" if any(data) else "zeros"


def terms(options):
    return {name: int(options[name]) for name in ("rate", "block", "burst") if name in options}


def open_it(target, mode, *words):
    global file
    options = dict(word.split("=") for word in words if "=" in word)
    flags = {"r": os.O_RDONLY, "w": os.O_WRONLY, "rw": os.O_RDWR}[mode]
    flags |= os.O_TRUNC * ("truncate" in words) | os.O_APPEND * ("append" in words)
    flags |= os.O_CREAT * ("create" in options)
    size = int(options["create"]) if "create" in options else None
    socket = options.get("socket", sys.argv[1])
    first = options.get("priority")
    file = slackline.open(
        target,
        flags,
        size=size,
        socket=socket,
        priority=first,
        update="update" in words,
        **terms(options),
    )


def write_it(seed, length):
    data = memoryview(stream(int(seed), file.tell(), int(length)))
    while len(data):
        data = data[file.write(data):]
    file.flush()
    return f"wrote {length}"


def read_it(seed, length):
    at, data = file.tell(), b""
    while len(data) < int(length) and (more := file.read(int(length) - len(data))):
        data += more
    return f"read {len(data)} {same(data, int(seed), at)}"


def peek_it(seed, length):
    with file.peek(int(length)) as view:
        return "saw " + (same(bytes(view), int(seed), file.tell()) if len(view) else "nothing")


def whole(seed, length):
    with file.peek(int(length), whole=True) as view:
        return f"saw {len(view)} {same(bytes(view), int(seed), file.tell())}"


def read_at(seed, place, length):
    data = bytearray(int(length))
    got = file.read_at(int(place), data)
    return f"read {got} {same(bytes(data[:got]), int(seed), int(place))}"


def write_at(seed, place, length):
    data = stream(int(seed), int(place), int(length))
    return f"wrote {file.write_at(int(place), data)}"


def places(place, count, step):
    return [int(place) + int(step) * at for at in reversed(range(int(count)))]


def read_ranges(seed, place, count, step, length):
    wanted = [(at, bytearray(int(length))) for at in places(place, count, step)]
    filled = file.read_ranges(wanted)
    as_said = [same(bytes(data[:got]), int(seed), at) for (at, data), got in zip(wanted, filled)]
    return f"read {sum(filled)} {'same' if set(as_said) == {'same'} else 'other'}"


def write_ranges(seed, place, count, step, length):
    given = [(at, stream(int(seed), at, int(length))) for at in places(place, count, step)]
    return f"wrote {file.write_ranges(given)}"


def refused():
    if not last.refusal:
        return "not refused"
    over = last.refusal["utilisation_ppm"] > 0 and last.refusal["rate_max"] > 0
    fits = last.refusal["rate_max"] < 200000000
    yes = {True: "yes", False: "no"}
    return f"refused disk {last.refusal['disk']} over {yes[over]} fits {yes[fits]}"


def contract():
    has = file.contract
    return f"rate {has.rate} block {has.block} burst {has.burst}" if has else "none"


def priority(*name):
    if name:
        (file.priority,) = name
    return f"priority {file.priority or 'unsaid'}"


def within(*words):
    if len(words) == 3:
        file.within = "{}B within {}ms every {}ms".format(*words)
    elif words:
        file.within = None
    return "within none" if file.within is None else "within {} {} {}".format(*file.within)


WHENCE = {"set": 0, "cur": 1, "end": 2}
STEPS = {
    "open": open_it,
    "close": lambda: file.close(),
    "text": lambda: f"{last.strerror}; next: {last.next_step}",
    "refused": refused,
    "write": write_it,
    "read": read_it,
    "peek": peek_it,
    "seek": lambda offset, whence: f"at {file.seek(int(offset), WHENCE[whence])}",
    "tell": lambda: f"at {file.tell()}",
    "whole": whole,
    "readat": read_at,
    "writeat": write_at,
    "readranges": read_ranges,
    "writeranges": write_ranges,
    "playout": lambda place: file.set_playout(int(place)),
    "keep": lambda length: file.keep(int(length)),
    "advance": lambda length: file.advance(int(length)),
    "priority": priority,
    "within": within,
    "sync": lambda: file.sync(),
    "durable": lambda: "none" if file.durable is None else f"durable {file.durable}",
    "length": lambda: f"length {file.length}",
    "truncate": lambda length: file.truncate(int(length)) and None,
    "stream": lambda: "no" if file.stream is None else "yes",
    "contract": contract,
    "set": lambda *words: file.set_contract(**terms(dict(word.split("=") for word in words))),
    "drop": lambda: setattr(file, "contract", None),
}

for line in sys.stdin:
    step, *words = line.split()
    try:
        answer = STEPS[step](*words) or "ok"
    except slackline.Error as error:
        last = error
        answer = f"error {errno.errorcode[error.errno]}"
    print(answer, flush=True)
