"""Records a video to a volume under contract and plays it back, without a copy of its
own. usage: record_and_play.py VIDEO VOLUME PLAYED"""

import sys

import slackline

video, volume, played = sys.argv[1:]
try:
    with open(video, "rb") as source:
        with slackline.open(volume, "wb", rate="2MB/s", size="64MiB") as out:
            while data := source.read(1 << 16):
                out.write_all(data)
    # Now it is on the medium.
    with slackline.open(volume, rate="2MB/s") as source, open(played, "wb") as out:
        length = 1
        while length:
            with source.peek() as view:
                length = out.write(view)
            source.advance(length)
except slackline.Error as error:
    sys.exit(f"{error.strerror}; next: {error.next_step}")
