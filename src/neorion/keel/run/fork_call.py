"""Work in a process of its own, whose memory goes with it."""

import os
import sys
from collections.abc import Callable
from typing import NoReturn, TypeVar, cast

from neorion.keel.base import Error, Terminal

T = TypeVar("T")


def run_in_fork(work: Callable[[], T]) -> T:
    """What `work` returns or raises, done in a fork of this process.

    For what loads much and leaves little, as strict models do that read a file once in a process that then lives for months.
    Only before the first thread and the first loop: they would be missing in the fork.
    """
    import pickle  # noqa: PLC0415 -- few programs work apart

    ours, theirs = os.pipe()
    # What waits in a buffer now would be written by both.
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(ours)
        _answer(work, theirs)
    os.close(theirs)
    with os.fdopen(ours, "rb") as answers:
        told = answers.read()
    os.waitpid(child, 0)
    if not told:
        raise Terminal(
            "run.apart",
            "A process that was started for a moment ended without an answer.",
            hint="Look for memory that ran out, or for a signal that was sent.",
        )
    # From our own fork, over a pipe that nobody else has.
    done, failed = cast("tuple[T, Error | None]", pickle.loads(told))  # noqa: S301 -- see above
    if failed is not None:
        raise failed
    return done


def _answer(work: Callable[[], T], pipe: int) -> NoReturn:
    """Whatever happens, the fork goes no further: what its parent is doing is not its to do."""
    import pickle  # noqa: PLC0415 -- as above

    try:
        try:
            answer: tuple[T | None, Error | None] = (work(), None)
        except Error as error:
            answer = (None, error)
        with os.fdopen(pipe, "wb") as out:
            out.write(pickle.dumps(answer))
    except BaseException as error:  # noqa: BLE001 -- told to people here, and to the parent by its silence
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(0)
