"""Whoever waits for a call of a file holds up nobody who does not."""

import asyncio
import os
import signal
import sys
import threading

import slackline
import slackline.aio

path = sys.argv[1]


def options(**terms):
    return {"socket": path, "rate": "1MB/s", **terms}


async def many(count):
    """More readers that wait for a writer than a shared pool of threads has."""
    names = [f"cam{number}" for number in range(count)]
    writers = [await slackline.aio.open(name, "wb", **options(size="2MiB")) for name in names]
    for writer in writers:
        await writer.write(b"a" * 1000)
        await writer.sync()
    readers = [await slackline.aio.open(name, **options()) for name in names]

    async def follow(reader):
        total = 0
        while data := await reader.read(1 << 16):
            total += len(data)
        return total

    following = [asyncio.create_task(follow(reader)) for reader in readers]
    while not all(reader._turn.locked() for reader in readers):
        await asyncio.sleep(0.01)
    for look in [lambda it: it.tell(), lambda it: it.contract, lambda it: it.advance(1)]:
        try:
            look(readers[0])
            raise SystemExit("it waits for a call that is under way")
        except RuntimeError as error:
            assert "under way" in str(error)
    for writer in writers:
        await writer.write(b"b" * 1000)
        await writer.close()
    # The end of what is recorded is that of a reader who has come so far by then.
    assert all(total <= 2000 for total in await asyncio.gather(*following))
    for reader in readers:
        reader.tell()
        await reader.close()
        try:
            await reader.read(1)
            raise SystemExit("it was read when closed")
        except ValueError:
            pass


asyncio.run(asyncio.wait_for(many(8), 60))
print("tasks")

writer = slackline.open("live", "wb", **options(size="2MiB"))
writer.write_all(b"a" * 1000)
writer.sync()
reader = slackline.open("live", **options())
# One that waits for bytes that do not come.
threading.Thread(target=reader.read, args=(1 << 20,), daemon=True).start()
main = threading.get_ident()
# Whoever runs this in the background may have had it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)


def interrupt():
    while True:
        signal.pthread_kill(main, signal.SIGINT)
        if over.wait(0.1):
            return


over = threading.Event()
signals = threading.Thread(target=interrupt)
try:
    signals.start()
    while True:
        reader.tell()
except KeyboardInterrupt:
    over.set()
    print("signals")
# A thread still waits in a call.
sys.stdout.flush()
os._exit(0)
