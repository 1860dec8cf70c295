"""Writes frames under contract, and goes back to write one of them anew by the same stream. Then
plays them out of order and overwrites each, within the burst: what lies there is in memory.
usage: out_of_order.py VOLUME"""

import sys

import slackline

FRAME = 16 << 10
TERMS = {"rate": "1MB/s", "burst": 4 * FRAME}

with slackline.open(sys.argv[1], "wb", size="4MiB", **TERMS) as out:
    for number in range(32):
        out.write_all(bytes([number]) * FRAME)
    out.set_playout(8 * FRAME)  # from here on all of them are on the medium
    out.write_all(bytes([88]) * FRAME)
frame = bytearray(FRAME)
with slackline.open(sys.argv[1], "r+b", update=True, **TERMS) as film:
    for number in range(32):
        film.set_playout(number // 4 * 4 * FRAME)
        place = (number // 4 * 4 + (number + 3) % 4) * FRAME
        film.read_at(place, frame)
        print(frame[0])
        film.write_at(place, bytes([frame[0] + 100]) * FRAME)
