"""What iris needs from outside: a way to run tasks, and a place to get machines from."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import Protocol

from neorion.iris.model import AttemptId, Call, Command, Environment, Resources
from neorion.keel.base import Duration


@dataclass(frozen=True, slots=True)
class Order:
    """One attempt to run, complete: the runtime asks nobody anything more.

    `function` and `input` are files with the pickled function and its arguments, a pair of a tuple and a dict; they never change
    once written. `bundle` is a zip archive or a directory; a copy of its files is the working directory. `variables` win over
    the environment's own. `pool` names the warm processes that a call may share; "" asks for a process of its own.
    """

    attempt: AttemptId
    entry: Command | Call
    environment: Environment
    variables: tuple[tuple[str, str], ...]
    resources: Resources
    bundle: PurePath | None = None
    function: PurePath | None = None
    input: PurePath | None = None
    pool: str = ""
    run_limit: Duration | None = None


class Phase(StrEnum):
    """Where an attempt is."""

    BUILDING = "building"
    RUNNING = "running"
    ENDED = "ended"


class EndKind(StrEnum):
    """How an attempt ended. Told apart, because they are charged and explained differently.

    NOT_STARTED: the task's own code never ran, for a reason that lies in the order. LOST: it was ended, or forgotten how, by
    no fault of its own.
    """

    EXIT = "exit"
    SIGNAL = "signal"
    OUT_OF_MEMORY = "out_of_memory"
    TIMED_OUT = "timed_out"
    STOPPED = "stopped"
    NOT_STARTED = "not_started"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class End:
    """Nothing of the attempt is left when this is told.

    `code` is the exit code or the signal's number, whatever the kind; `result` the file with a call's value or error.
    """

    kind: EndKind
    code: int = 0
    message: str = ""
    result: PurePath | None = None

    @property
    def well(self) -> bool:
        return self.kind is EndKind.EXIT and self.code == 0


@dataclass(frozen=True, slots=True)
class Seen:
    """An attempt as the runtime knows it now."""

    attempt: AttemptId
    phase: Phase
    end: End | None = None


@dataclass(frozen=True, slots=True)
class Stats:
    """What an attempt uses, its children counted in; of one that has ended, the processor time it took."""

    cpu_seconds: float
    memory_bytes: int
    processes: int


class Runtime(Protocol):
    """Runs attempts. Every verb is idempotent by attempt id, and what an earlier life of the worker began is still known."""

    async def start(self, order: Order) -> None:
        """Accepts the attempt; building and running follow by themselves and are told by `changes`.

        Conflict where the lease is over. An attempt that is already known is left as it is.
        """
        ...

    async def stop(self, attempt: AttemptId, grace: Duration) -> None:
        """Asks the whole process tree to end, and ends it after `grace`. The end is told by `changes`.

        NotFound where the attempt was never started; no change where it has ended.
        """
        ...

    async def forget(self, attempt: AttemptId) -> None:
        """Removes everything of an ended attempt but its log. Conflict where it has not ended."""
        ...

    async def seen(self) -> Sequence[Seen]:
        """Every attempt that was started and not forgotten."""
        ...

    def changes(self) -> AsyncGenerator[Sequence[Seen], None]:
        """First everything that is known, then each change as it happens, several at once where they happened together.

        A reader that falls behind hears of each attempt only how it is by then. Close the iterator (`aclosing`) to leave early.
        """
        ...

    async def renew(self, life: Duration) -> None:
        """The worker is in touch with its controller: tasks may run for `life` more, and not a moment longer without it.

        A runtime begins without a lease; when it is over every task is ended at once, as LOST.
        """
        ...

    async def stats(self, attempt: AttemptId) -> Stats:
        """NotFound where the attempt is not known."""
        ...

    def log(self, attempt: AttemptId) -> PurePath:
        """The file that holds what the attempt writes to its standard output and error."""
        ...
