"""Writes frames under contract, goes back and writes one of them anew by the same stream,
and plays them out of order: what lies within the burst is in memory.
usage: out_of_order.py VOLUME"""

import sys

import slackline

FRAME = 16 << 10
TERMS = {"rate": "1MB/s", "burst": 4 * FRAME}


def put(out, number):
    data = memoryview(bytes([number]) * FRAME)
    while data:
        data = data[out.write(data) :]


with slackline.open(sys.argv[1], "wb", size="4MiB", **TERMS) as out:
    for number in range(32):
        put(out, number)
    out.set_playout(8 * FRAME)  # from here on all of them are on the medium
    put(out, 88)
frame = bytearray(FRAME)
with slackline.open(sys.argv[1], **TERMS) as film:
    for group in range(0, 32, 4):
        for following in (3, 0, 1, 2):
            film.read_at((group + following) * FRAME, frame)
            print(frame[0])
        film.set_playout((group + 4) * FRAME)
