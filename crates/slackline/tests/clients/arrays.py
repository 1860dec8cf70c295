"""Arrays of NumPy to and from files, and over the bytes of a peek where they lie. The
first argument is the socket."""

import asyncio
import io
import sys

import numpy

import slackline
import slackline.aio

own = {"socket": sys.argv[1]}
numbers = numpy.arange(96 * 1000, dtype="<f8").reshape(1000, 96)


def fails(wanted, call, *arguments):
    try:
        call(*arguments)
    except wanted:
        return
    raise SystemExit(f"{call} was done")


def place(array):
    """Where an array's bytes are, and whether nobody may change them."""
    return array.__array_interface__["data"]


def mapped_from(address):
    """What is mapped at an address."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            words = line.split()
            first, end = (int(word, 16) for word in words[0].split("-"))
            if first <= address < end:
                return words[1], " ".join(words[5:])
    raise SystemExit("nothing is mapped there")


# Written piece by piece, any kind of number, as many dimensions as there are.
with slackline.open("a", "wb", rate="8MB/s", size="4MiB", **own) as out:
    with io.BufferedWriter(out) as buffered:
        assert buffered.write(numbers) == numbers.nbytes
with slackline.open("b", "wb", rate="8MB/s", size="1MiB", **own) as out:
    pieces = [
        numbers[:3],
        numpy.array(2.5),
        numpy.arange(5, dtype=">i2"),
        numpy.array([(1, 2.0)], dtype=[("Offset", "u1"), ("y", ">f4")]),
        numpy.zeros((0, 7)),
        numpy.array([True, False]),
        numpy.array(["2026-11-22"], dtype="datetime64[D]"),
    ]
    for piece in pieces:
        assert out.write(piece) == piece.nbytes
    # What does not lie in one piece, or is no bytes, is refused, and nothing is written.
    before = out.tell()
    fails(ValueError, out.write, numbers[:, ::2])
    fails(ValueError, out.write, numbers.T)
    fails(BufferError, out.write, memoryview(bytes(8))[::2])
    fails(TypeError, out.write, numpy.array([None, "text"]))
    fails(TypeError, out.write, numpy.zeros(1, dtype=[("x", "u1"), ("o", "O")]))
    assert out.tell() == before
with slackline.open("b", **own) as back:
    assert back.readall() == b"".join(piece.tobytes() for piece in pieces)
print("written")

# Read into an array that is there.
for terms in ({}, {"rate": "8MB/s"}):
    with slackline.open("a", **terms, **own) as source:
        back = numpy.empty_like(numbers)
        with io.BufferedReader(source) as buffered:
            assert buffered.readinto(back) == back.nbytes
        assert (back == numbers).all()
    with slackline.open("a", **terms, **own) as source:
        rows = numpy.empty((2, 96))
        assert source.readinto(rows) == rows.nbytes
        assert (rows == numbers[:2]).all()
        fails(ValueError, source.readinto, numbers[:, ::2])
        fixed = numpy.zeros(4)
        fixed.flags.writeable = False
        fails((ValueError, BufferError), source.readinto, fixed)
        fails(BufferError, source.readinto, b"bytes")
        fails(TypeError, source.readinto, numpy.array([None, None]))
        assert source.tell() == rows.nbytes
print("read")

# Looked at where they are: in the window, which daemon and program share.
with slackline.open("a", rate="2MB/s", block="64KiB", **own) as source:
    seen = 0
    while seen < numbers.size:
        view = source.peek(8 * 96)
        array = numpy.frombuffer(view, dtype="<f8")
        address, fixed = place(array)
        access, name = mapped_from(address)
        assert fixed and access.startswith("r-") and access[3] == "s", access
        assert name.startswith("/memfd:"), name
        again = numpy.frombuffer(view, dtype="u1")
        assert place(again) == (address, True) and again.size == view.nbytes
        fails(ValueError, array.__setitem__, 0, 1.0)
        assert (array == numbers.ravel()[seen : seen + array.size]).all()
        seen += array.size
        passed = view.nbytes
        # The view itself is done with; what was made of it is not.
        view.release()
        for call in (lambda: source.advance(passed), lambda: source.read(1), source.close):
            fails(BufferError, call)
        part = array[3:5]
        del array, again
        fails(BufferError, source.advance, passed)
        assert part[1] == part[0] + 1
        del part
        source.advance(passed)
print("seen")


async def tasks():
    async with await slackline.aio.open("c", "w", rate="8MB/s", size="4MiB", **own) as out:
        big = numbers.astype(">f8")
        assert await out.write(big) == big.nbytes
        assert await out.write(numpy.array(2.5)) == 8
    async with await slackline.aio.open("c", rate="8MB/s", **own) as source:
        assert await source.read() == big.tobytes() + numpy.array(2.5).tobytes()


asyncio.run(tasks())
print("tasks")
