"""The child of a fork can do nothing with its parent's files, and does them no harm."""

import os
import sys

import slackline

path = sys.argv[1]
FIRST, SECOND = b"P" * 100_000, b"Q" * 50_000


def in_a_child(what):
    """Runs it in a child that then ends as a program does; says how."""
    child = os.fork()
    if child == 0:
        sys.exit(what())
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def refused(call):
    try:
        call()
    except slackline.Error as error:
        return 0 if "is a fork of it" in str(error) else 2
    return 1


def ways(file):
    yield lambda: 0
    yield lambda: file.close()
    yield lambda: refused(lambda: file.read(1) if file.readable() else file.write(b"x"))
    yield lambda: refused(file.sync)


def check(name, open, go_on):
    file = open()
    go_on(file, FIRST)
    for number, way in enumerate(ways(file)):
        ended = in_a_child(way)
        assert ended == 0, (name, number, ended)
    go_on(file, SECOND)
    file.close()
    print(name)


def options(**terms):
    return {"socket": path, **terms}


def writes(file, data):
    file.write_all(data)


def reads(file, data):
    got = bytearray()
    file.seek(0 if data is FIRST else len(FIRST))
    while len(got) < len(data):
        got += file.read(len(data) - len(got))
    assert got == data


check("writer", lambda: slackline.open("v", "wb", **options(rate="2MB/s", size="4MiB")), writes)
check("reader", lambda: slackline.open("v", **options(rate="2MB/s")), reads)
check("best effort, read", lambda: slackline.open("v", **options()), reads)
check("best effort", lambda: slackline.open("w", "wb", **options(size="4MiB")), writes)
for name in ["v", "w"]:
    with slackline.open(name, **options()) as file:
        assert file.readall() == FIRST + SECOND, name
