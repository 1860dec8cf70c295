"""Slackline: read and write volumes on time.

    import slackline

    with slackline.open("video", "wb", rate="2MB/s", size="1GiB") as out:
        out.write_all(data)
    with slackline.open("video", rate="2MB/s") as video:
        while len(view := video.peek(1 << 20)):
            use(view)  # bytes where they are, without a copy
            passed = len(view)
            view.release()
            video.advance(passed)

A file is an `io.RawIOBase`: read and write in large pieces, or put an
`io.BufferedReader` or `io.BufferedWriter` around it. What goes wrong is an `Error`,
which is an `OSError` and says what to do next. `slackline.aio` is for asyncio.
"""

import io
import os
import typing

from ._slackline import Error, Handle, __version__

__all__ = ["Contract", "Error", "File", "Sought", "open", "__version__"]

_FLAGS = {
    "r": os.O_RDONLY,
    "w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
}


class Contract(typing.NamedTuple):
    """What a file was promised: bytes a second, in blocks, with a burst."""

    rate: int
    block: int
    burst: int


class Sought(typing.NamedTuple):
    """Where a reader is after a jump, in nanoseconds from the daemon's answer."""

    ready_ns: int
    steady_ns: int


class File(io.RawIOBase):
    """An open volume with a place in it; made by `open`."""

    def __init__(self, handle, flags, name):
        self._handle = handle
        self._access = flags & os.O_ACCMODE
        self._ended = False
        self.name = name

    def readable(self):
        return self._access != os.O_WRONLY

    def writable(self):
        return self._access != os.O_RDONLY

    def seekable(self):
        return True

    def readinto(self, buffer, /):
        """Fills the front of a buffer, an array for one; gives how many bytes of it, 0
        at the end."""
        return self._handle.readinto(buffer)

    def write(self, data, /):
        """Writes the front of some bytes, those of an array for one; gives how many."""
        return self._handle.write(data)

    def write_all(self, data, /):
        """Writes all of some bytes."""
        with memoryview(data) as view:
            done = 0
            while done < view.nbytes:
                done += self._handle.write(view, done)

    def seek(self, offset, whence=os.SEEK_SET, /):
        """Goes to another place. The end is that of the recorded data."""
        return self._handle.seek(offset, whence)

    def tell(self):
        """The place of the next byte."""
        return self._handle.tell()

    def truncate(self, size=None, /):
        """Cuts what is recorded; the space stays reserved."""
        size = self.tell() if size is None else size
        self._handle.truncate(size)
        return size

    def peek(self, size=1 << 20, /, *, whole=False):
        """The next bytes where they are, as a memoryview: at most `size`, at least one,
        none at the end; with `whole`, all of `size` where neither a gap nor the end is
        before that. While the view is in use the file cannot move on: release it."""
        return self._handle.peek(size, whole)

    def read_at(self, place, buffer, /):
        """Fills the front of a buffer with what lies at a place, and leaves the file where
        it is; gives how many bytes, 0 at the end. Under a contract for reading it is a
        place of the window."""
        return self._handle.read_at(place, buffer)

    def write_at(self, place, data, /):
        """Changes what lies at a place to the front of some bytes, and leaves the file where
        it is; gives how many. Where the contract is for reading and writing (`update`), it is
        a place of the window."""
        return self._handle.write_at(place, data)

    def read_ranges(self, ranges, /):
        """Fills several buffers, given as pairs of a place and a buffer, each with what lies at
        its place, and leaves the file where it is; gives how many bytes of each. All are asked
        for at once, as best effort, so that the disk serves them in the order that is best for
        it. Beyond the end of what is recorded there are fewer."""
        return self._handle.read_ranges(ranges)

    def write_ranges(self, ranges, /):
        """Writes several ranges, given as pairs of a place and bytes, at once, as best effort,
        and leaves the file where it is; gives how many bytes in all. They do not overlap; in
        which order they are written is not said."""
        return self._handle.write_ranges(ranges)

    def set_playout(self, place, /):
        """Goes to a place of the window, forwards or backwards, at no cost."""
        self._handle.set_playout(place)

    def keep(self, size, /):
        """From now on holds so many bytes of the window behind the place of the file."""
        self._handle.keep(size)

    def advance(self, size, /):
        """Passes bytes that a peek has shown."""
        self._handle.advance(size)

    def flush(self):
        """Waits until the daemon has what was written."""
        if not self._ended:
            self._handle.flush()

    def sync(self):
        """Puts what was written on the medium."""
        self._handle.sync()

    def close(self):
        """Ends the file; what was written is on the medium."""
        if self.closed:
            return
        try:
            self._handle.close()
        except BufferError:
            raise  # a view is in use; the file stays open
        except Error:
            self._end()
            raise
        self._end()

    def __exit__(self, kind, value, traceback):
        try:
            self.close()
        except BufferError:
            if kind is None:
                raise
            # What has gone wrong is told; the file ends with the view that is in use.

    def _end(self):
        self._ended = True
        super().close()

    @property
    def contract(self):
        """The contract, or None. Set it to None to drop it."""
        terms = self._handle.contract()
        return None if terms is None else Contract(*terms)

    @contract.setter
    def contract(self, terms):
        if terms is None:
            self._handle.drop_contract()
        else:
            self._handle.set_contract(*terms)

    def set_contract(self, rate, block=None, burst=None):
        """Takes a contract, or another one. Refused, nothing changes, and the error's
        `refusal` has the figures."""
        self._handle.set_contract(rate, block, burst)

    @property
    def priority(self):
        """Which best effort goes first: "interactive", "normal" or "background"; with
        None, as the volume's service says. Set it for what comes next."""
        return self._handle.priority()

    @priority.setter
    def priority(self, name):
        self._handle.set_priority(name)

    @property
    def within(self):
        """The contract of this handle for answers in time, as (bytes, nanoseconds within,
        nanoseconds between), or None. Set it to a text such as "4KiB within 150ms" or "150ms
        every 500ms", or to None; refused, nothing changes."""
        return self._handle.in_time()

    @within.setter
    def within(self, contract):
        self._handle.set_in_time(contract)

    @property
    def length(self):
        """The end of the recorded data."""
        return self._handle.length()

    @property
    def size(self):
        """The space reserved."""
        return self._handle.size()

    @property
    def durable(self):
        """Under a contract for writing: everything before this is on the medium."""
        return self._handle.durable()

    def pause(self, seconds, /):
        """Under a contract: says that the program does nothing with this file for at most so
        long (a day counts at the most). Without that the daemon ends the contract of a program
        that is silent for too long, and the next call fails with ETIMEDOUT. The pause
        ends when the program has moved on by about a block, or asks the daemon for
        something."""
        self._handle.pause(round(seconds * 1_000_000_000))

    @property
    def sought(self):
        """Under a contract for reading on a volume, what the daemon said when it took it, or of
        the last jump since, which is made when the first byte behind a seek is read: nanoseconds
        until the first bytes are there, and until the contract holds in full. Else None."""
        times = self._handle.sought()
        return None if times is None else Sought(*times)

    @property
    def stream(self):
        """The number of the stream that carries the bytes, or None."""
        return self._handle.stream()


def open(
    target,
    mode="rb",
    *,
    rate=None,
    block=None,
    burst=None,
    size=None,
    socket=None,
    priority=None,
    within=None,
    update=False,
    grow_to=None,
):
    """Opens a volume, under contract where a rate is given, else as best effort.

    `mode` is one of r, w and a, with + or without, or flags as for `os.open`, of which those
    that a volume does not know, `O_EXCL` for one, are a `ValueError`. `size` is
    the space of a volume that is made; `priority` that of `File.priority`, and
    `within` a contract of this handle alone as for `File.within`. With `update`, which takes
    a mode with +, the contract is for reading and writing at once: `File.read_at` and
    `File.write_at` go anywhere within the burst. Up to `grow_to` a contract that writes makes
    the volume larger as it fills. Where no
    `block` is named, the daemon chooses one, and `File.contract` tells it. Quantities
    are numbers of bytes, or text such as "2MB/s" and "1GiB"."""
    if isinstance(mode, str):
        kind = mode.replace("b", "").replace("+", "")
        if kind not in _FLAGS:
            raise ValueError(f"the mode {mode!r} is none of r, w, a, r+, w+ and a+")
        flags = _FLAGS[kind]
        if "+" in mode:
            flags = flags & ~os.O_ACCMODE | os.O_RDWR
    else:
        flags = mode
    name = os.fspath(target)
    handle = Handle(
        name, flags, rate, block, burst, size, socket, priority, within, update, grow_to
    )
    return File(handle, flags, name)
