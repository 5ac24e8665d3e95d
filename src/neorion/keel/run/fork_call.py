"""Runs a function in a forked process, whose memory is freed when it exits."""

import os
import sys
from collections.abc import Callable
from typing import NoReturn, TypeVar, cast

from neorion.keel.base import Error, Terminal

T = TypeVar("T")


def run_in_fork(work: Callable[[], T]) -> T:
    """Returns or raises the outcome of `work`, which runs in a fork of this process.

    For work that needs much memory and returns little, such as strict models that read a file at the start of a process
    that runs for months. Call it only before the first thread and the first loop: they would be missing in the fork.
    """
    import pickle  # noqa: PLC0415 -- few programs work apart

    ours, theirs = os.pipe()
    # Otherwise both processes would write what is buffered now.
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(ours)
        _answer(work, theirs)
    os.close(theirs)
    with os.fdopen(ours, "rb") as answers:
        received = answers.read()
    os.waitpid(child, 0)
    if not received:
        raise Terminal(
            "run.apart",
            "A process that was started for a moment ended without an answer.",
            hint="Look for memory that ran out, or for a signal that was sent.",
        )
    # The bytes come from our own fork, over a pipe that no other process has.
    done, failed = cast("tuple[T, Error | None]", pickle.loads(received))  # noqa: S301 -- see above
    if failed is not None:
        raise failed
    return done


def _answer(work: Callable[[], T], pipe: int) -> NoReturn:
    """Sends the outcome of `work` and exits. The fork must never continue the work of its parent."""
    import pickle  # noqa: PLC0415 -- as above

    try:
        try:
            answer: tuple[T | None, Error | None] = (work(), None)
        except Error as error:
            answer = (None, error)
        with os.fdopen(pipe, "wb") as out:
            out.write(pickle.dumps(answer))
    except BaseException as error:  # noqa: BLE001 -- shown to people here; the parent sees an empty pipe
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(0)
