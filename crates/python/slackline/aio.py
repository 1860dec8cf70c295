"""Slackline for asyncio: each call that may wait does so on a thread.

    async with await slackline.aio.open("video", rate="2MB/s") as video:
        while data := await video.read(1 << 16):
            ...

No signal reaches a call on a thread: a task that is cancelled waits for its call to end, and so does the
program.
"""

import asyncio

import slackline


async def open(target, mode="rb", **options):
    """As `slackline.open`."""
    return File(await asyncio.to_thread(slackline.open, target, mode, **options))


class File:
    """An open volume whose calls are awaited. One call at a time: the next one waits."""

    def __init__(self, file):
        self._file = file
        self._turn = asyncio.Lock()

    async def _run(self, call, *arguments):
        async with self._turn:
            # A task that is cancelled leaves its call to end by itself; the next call
            # must come after it.
            running = asyncio.ensure_future(asyncio.to_thread(call, *arguments))
            try:
                return await asyncio.shield(running)
            except asyncio.CancelledError:
                await asyncio.wait([running])
                raise

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
        return self._file.tell()

    async def peek(self, size=1 << 20):
        return await self._run(self._file.peek, size)

    def advance(self, size):
        self._file.advance(size)

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
        return self._file.contract

    async def close(self):
        await self._run(self._file.close)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_error):
        await self.close()
