"""What iris needs from outside: a way to run tasks, and a place to get machines from."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import Protocol

from neorion.iris.model import AttemptId, Call, Command, EndKind, Environment, Resources
from neorion.keel.base import Duration


@dataclass(frozen=True, slots=True)
class Order:
    """One attempt to run, complete: the runtime asks nobody anything more.

    `function` and `input` are files with the pickled function and its arguments; `workdir` is made by the runtime and holds the
    unpacked bundle. `pool` names the warm processes that the attempt may share; "" asks for a process of its own.
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


@dataclass(frozen=True, slots=True)
class End:
    """`code` is the exit code or the signal's number; `result` the file with the pickled value or exception."""

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
    """What an attempt uses, its children counted in."""

    cpu_seconds: float
    memory_bytes: int
    processes: int


class Runtime(Protocol):
    """Runs attempts. Every verb is idempotent by attempt id, and what an earlier life of the worker began is still known."""

    async def start(self, order: Order) -> None:
        """Accepts the attempt; building and running follow by themselves and are told by `changes`."""
        ...

    async def stop(self, attempt: AttemptId, grace: Duration) -> None:
        """Asks the whole process tree to end, and ends it after `grace`. The end is told by `changes`."""
        ...

    async def forget(self, attempt: AttemptId) -> None:
        """Removes everything of an ended attempt but its log."""
        ...

    async def seen(self) -> Sequence[Seen]:
        """Every attempt that was started and not forgotten."""
        ...

    def changes(self) -> AsyncIterator[Sequence[Seen]]:
        """Each change as it happens, several at once where they happened together."""
        ...

    async def renew(self, life: Duration) -> None:
        """The worker is in touch with its controller: tasks may run for `life` more, and not a moment longer without it."""
        ...

    async def stats(self, attempt: AttemptId) -> Stats: ...

    def log(self, attempt: AttemptId) -> PurePath:
        """The file that holds what the attempt writes to its standard output and error."""
        ...
