"""Ports of iris: runtimes for tasks, platforms for machines, and storage for blobs, logs and secrets."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import Final, Protocol

from neorion.iris.model import (
    AttemptId,
    Command,
    Digest,
    ExitKind,
    FunctionCall,
    Resources,
    ScaleFailureKind,
    SliceId,
    SliceState,
    TaskEnvironment,
)
from neorion.keel.base import Duration, QuotaExceeded

# A platform that starts workers may give each this variable. A runtime hands it on to whatever of its own outlives the worker,
# so that the platform finds all that belongs to a machine.
MACHINE_ENV: Final = "IRIS_MACHINE"
# The attempt of a gang's first task. It is another one each time the gang starts.
GANG_ENV: Final = "IRIS_GANG_ID"


@dataclass(frozen=True, slots=True)
class AttemptSpec:
    """One attempt to run, complete: the runtime needs no other information.

    `function` and `input` are files with the pickled function and its arguments, a pair of a tuple and a dict; they never change
    once written. `bundle` is a zip archive or a directory; a copy of its files is the working directory. `variables` win over
    the environment's own. `pool` names the warm processes that a call may share; "" asks for a process of its own.
    """

    attempt: AttemptId
    entry: Command | FunctionCall
    environment: TaskEnvironment
    variables: tuple[tuple[str, str], ...]
    resources: Resources
    bundle: PurePath | None = None
    function: PurePath | None = None
    input: PurePath | None = None
    pool: str = ""
    run_limit: Duration | None = None


class Phase(StrEnum):
    """Where an attempt is. One that waits has an order for which its worker's disk has no room yet: no runtime knows of it."""

    WAITING = "waiting"
    BUILDING = "building"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class AttemptExit:
    """The end of an attempt, reported when none of its processes is left.

    `code` is the exit code or the signal's number, for every kind. `result` is the file with a call's value or error.
    `memory_bytes` is the peak of its largest process. It and `cpu_seconds` are 0 where they are unknown.
    """

    kind: ExitKind
    code: int = 0
    message: str = ""
    result: PurePath | None = None
    cpu_seconds: float = 0.0
    memory_bytes: int = 0

    @property
    def well(self) -> bool:
        return self.kind is ExitKind.EXIT and self.code == 0


@dataclass(frozen=True, slots=True)
class AttemptStatus:
    """An attempt as the runtime knows it now."""

    attempt: AttemptId
    phase: Phase
    end: AttemptExit | None = None


@dataclass(frozen=True, slots=True)
class AttemptUsage:
    """Resource usage of an attempt and its children.

    `cpu_seconds` never decreases. A warm process that serves several attempts includes its earlier use.
    """

    cpu_seconds: float
    memory_bytes: int
    processes: int


class Runtime(Protocol):
    """Runs attempts. Every verb is idempotent by attempt id, and what an earlier life of the worker began is still known."""

    @property
    def boot(self) -> str:
        """Names the machine's present life. In the next one nothing of this one runs, and all of it may be forgotten."""
        ...

    async def start(self, order: AttemptSpec) -> None:
        """Accepts the attempt; building and running follow by themselves and are told by `changes`.

        Conflict where the lease is over. An attempt that is already known is left as it is.
        """
        ...

    async def stop(self, attempt: AttemptId, grace: Duration) -> None:
        """Asks the whole process tree to end, and ends it after `grace`. The end is told by `changes`.

        NotFound where the attempt was never started; no change where it has ended.
        """
        ...

    async def forget(self, *attempts: AttemptId) -> None:
        """Removes everything of ended attempts, their logs too. Conflict, and nothing removed, where one has not ended."""
        ...

    async def seen(self) -> Sequence[AttemptStatus]:
        """Every attempt that was started and not forgotten."""
        ...

    def changes(self) -> AsyncGenerator[Sequence[AttemptStatus], None]:
        """First everything that is known, then each change as it happens, several at once where they happened together.

        A reader that falls behind hears of each attempt only how it is by then. Close the iterator (`aclosing`) to leave early.
        """
        ...

    async def renew(self, life: Duration) -> None:
        """The worker is in touch with its controller: tasks may run for `life` more, and not a moment longer without it.

        A runtime begins without a lease; when it is over every task is ended at once, as LOST.
        """
        ...

    async def stats(self) -> Mapping[AttemptId, AttemptUsage]:
        """Current usage of each running attempt."""
        ...

    def log(self, attempt: AttemptId) -> PurePath:
        """The file that holds what the attempt writes to its standard output and error."""
        ...

    def kept_from(self, attempt: AttemptId) -> int:
        """The offset of the first byte in that file that the attempt wrote and that is still there.

        0 unless the log outgrew its room; what came before was dropped, and reads as anything.
        """
        ...


class RotatableSecret(Protocol):
    """A secret that people hand on, where they find it."""

    @property
    def value(self) -> str: ...

    def renew(self) -> None:
        """Another one in its place, durable when it returns."""
        ...


class BlobBackend(Protocol):
    """Blobs too large for a row, by the hash of their content: a folder, or a bucket of an object store."""

    async def put(self, digest: Digest, body: bytes | PurePath) -> None:
        """The bytes, or those of a file. Durable when it returns; the same again is no error."""
        ...

    async def get(self, digest: Digest) -> bytes | None:
        """All of it, and nothing else than what was put: Terminal where it was damaged since."""
        ...

    async def part(self, digest: Digest, start: int, most: int) -> tuple[bytes, int] | None:
        """At most so many bytes from `start`, unchecked, and the size of the whole."""
        ...

    async def delete(self, digest: Digest) -> None: ...


@dataclass(frozen=True, slots=True)
class SliceRequest:
    """A slice to be made. Its id is the intent: asked for twice, it is made once.

    `machines` workers of one shape come up together, join the controller at `controller` with `token`, and carry
    `attributes` besides those the platform knows of itself.
    """

    id: SliceId
    group: str
    machines: int
    shape: Resources
    attributes: tuple[tuple[str, str], ...]
    controller: str
    token: str


@dataclass(frozen=True, slots=True)
class SliceStatus:
    """A slice as the platform knows it now. `hosts` are the machines that exist; `trouble` says why it failed."""

    id: SliceId
    group: str
    state: SliceState
    hosts: tuple[str, ...] = ()
    message: str = ""
    trouble: ScaleFailureKind | None = None


class QuotaNotSet(QuotaExceeded):
    """There is no quota at all for these machines. Nothing that ends makes room; a person has to ask for quota."""


class Platform(Protocol):
    """Where slices come from. No verb waits for machines: what becomes of a slice is told by `changes` and `list_slices`.

    Refusals are typed: `QuotaNotSet`, `QuotaExceeded` and `NoCapacity` carry the scope that is full, `Retry` says when to ask again.
    """

    async def create_slice(self, order: SliceRequest) -> None: ...

    async def list_slices(self, group: str) -> Sequence[SliceStatus]: ...

    async def list_all_slices(self) -> Sequence[SliceStatus]:
        """Every slice that this installation made, in any group, and no other."""
        ...

    async def describe(self, piece: SliceId) -> SliceStatus: ...

    async def terminate(self, piece: SliceId) -> None:
        """Repeated until the slice is gone; of one that is gone already it is no error."""
        ...

    def changes(self) -> AsyncIterator[SliceStatus]:
        """Each change as the platform learns of it, a lost machine among them."""
        ...

    def discover_controller(self) -> str:
        """The address at which workers of this platform reach the controller."""
        ...

    def tunnel(self, address: str) -> AbstractAsyncContextManager[str]:
        """A way from here to an address inside of the platform."""
        ...

    async def shutdown(self) -> None:
        """Ends everything this installation made."""
        ...
