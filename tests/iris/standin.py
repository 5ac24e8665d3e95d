"""Plays the worker in tests of the local platform: `standin.py PLAY FIFO`. Says in the FIFO what it does."""

import os
import signal
import subprocess
import sys

play, fifo = sys.argv[1:]
host = "-".join(os.environ["IRIS_MACHINE"].split("/")[-2:])
out = os.open(fifo, os.O_WRONLY)


def say(*words: object) -> None:
    os.write(out, (" ".join(map(str, words)) + "\n").encode())


def wait_for_ever() -> None:
    while True:
        signal.pause()


def ignore(number: int, frame: object) -> None:
    del number, frame
    say("term", host)


if play == "stubborn":
    signal.signal(signal.SIGTERM, ignore)
token = sys.stdin.read()
if not token:
    say("untold", host)
    sys.exit(3)
if play == "fails":
    print("nothing to see\nout of luck\n", file=sys.stderr)  # noqa: T201 -- the words to be found in its log
    sys.exit(7)
if play == "family":
    # One that went its own way, one that forgot its name, and one whose parent is gone.
    for script, variables in (
        ("exec sleep 1000", None),
        ("exec sleep 1000", {"PATH": os.environ["PATH"]}),
        ("sleep 1000 & echo $!", None),
    ):
        child = subprocess.Popen(
            ["sh", "-c", script], start_new_session=True, env=variables, stdout=subprocess.PIPE, text=True
        )
        if "echo" in script and child.stdout is not None:
            say("child", child.stdout.readline().strip())
            child.wait()
        else:
            say("child", child.pid)
say("joined", host, os.getpid(), token)
wait_for_ever()
