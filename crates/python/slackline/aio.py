"""Slackline for asyncio: each call that may wait does so on the thread of its file.

    async with await slackline.aio.open("video", rate="2MB/s") as video:
        while data := await video.read(1 << 16):
            ...

What does not wait is no coroutine (`tell`, `advance`, `contract`): while a call of the file is under way it
raises `RuntimeError`.

No signal reaches a call on a thread: a task that is cancelled waits for its call to end, and so does the
program.
"""

import asyncio
import concurrent.futures
import functools

import slackline


async def open(target, mode="rb", **options):
    """As `slackline.open`."""
    # Its own: the threads that `asyncio.to_thread` shares are few, and a call may wait for another file's.
    thread = concurrent.futures.ThreadPoolExecutor(1, "slackline")
    try:
        call = functools.partial(slackline.open, target, mode, **options)
        return File(await asyncio.get_running_loop().run_in_executor(thread, call), thread)
    except BaseException:
        thread.shutdown(wait=False)
        raise


class File:
    """An open volume whose calls are awaited. One call at a time: the next one waits."""

    def __init__(self, file, thread):
        self._file = file
        self._thread = thread
        self._turn = asyncio.Lock()

    async def _run(self, call, *arguments):
        async with self._turn:
            if self._file.closed:
                return call(*arguments)  # which says so
            # A task that is cancelled leaves its call to end by itself; the next call
            # must come after it.
            running = asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)
            try:
                return await asyncio.shield(running)
            except asyncio.CancelledError:
                await asyncio.wait([running])
                raise

    def _idle(self):
        """The file, for what does not wait: the loop must not wait for a call that may wait for the loop."""
        if self._turn.locked():
            raise RuntimeError("a call of this file is under way: await it first")
        return self._file

    async def read(self, size=-1):
        """Some of the next bytes, at most `size`; all to the end without it."""
        return await self._run(self._file.read, size)

    async def readinto(self, buffer):
        return await self._run(self._file.readinto, buffer)

    async def write(self, data):
        """Writes all of some bytes."""

        def write_all(view):
            done = 0
            while done < view.nbytes:
                done += self._file._handle.write(view, done)
            return done

        # Held from now on, so that nobody makes it shorter while its turn has not come.
        with memoryview(data) as view:
            return await self._run(write_all, view)

    async def seek(self, offset, whence=0):
        return await self._run(self._file.seek, offset, whence)

    def tell(self):
        return self._idle().tell()

    async def peek(self, size=1 << 20):
        return await self._run(self._file.peek, size)

    def advance(self, size):
        self._idle().advance(size)

    async def read_at(self, place, buffer):
        return await self._run(self._file.read_at, place, buffer)

    async def write_at(self, place, data):
        return await self._run(self._file.write_at, place, data)

    async def read_ranges(self, ranges):
        return await self._run(self._file.read_ranges, ranges)

    async def write_ranges(self, ranges):
        return await self._run(self._file.write_ranges, ranges)

    async def set_playout(self, place):
        await self._run(self._file.set_playout, place)

    async def keep(self, size):
        await self._run(self._file.keep, size)

    async def sync(self):
        await self._run(self._file.sync)

    async def set_contract(self, rate, block=None, burst=None):
        await self._run(self._file.set_contract, rate, block, burst)

    async def drop_contract(self):
        await self._run(setattr, self._file, "contract", None)

    @property
    def contract(self):
        return self._idle().contract

    async def close(self):
        await self._run(self._file.close)
        self._thread.shutdown(wait=False)

    async def __aenter__(self):
        return self

    async def __aexit__(self, kind, value, traceback):
        try:
            await self.close()
        except BufferError:
            if kind is None:
                raise
            # What has gone wrong is told; the file ends with the view that is in use.
