"""Messages between the runner in a container and its worker.

The runner connects, shows its token and asks; the worker answers. Both are of one installation, so fields may come and go.
A runner that has lost its connection begins a new one and goes on where the worker says.
"""

from typing import Final

import msgspec
from anyio import Lock
from anyio.abc import ByteStream
from msgspec import Struct

from neorion.iris.adapters.runtimes.process.protocol import Codec, ExitInfo, StartRequest, frame
from neorion.iris.ports import Phase

# Files and logs travel in parts of this size.
PART_BYTES: Final = 1 << 18
# Where the engine puts what a runner needs to find its worker. The token begins with the pin of the worker's key.
ADDRESS_ENV: Final = "IRIS_RUNNER_ADDRESS"
ATTEMPT_ENV: Final = "IRIS_RUNNER_ATTEMPT"
TOKEN_ENV: Final = "IRIS_RUNNER_TOKEN"  # noqa: S105 -- a name
# The name of the gang's leader, where the task waits until it is known.
LEADER_ENV: Final = "IRIS_RUNNER_LEADER"
# The runner's own folder in the container, where it is not the one that Pods have.
FOLDER_ENV: Final = "IRIS_RUNNER_FOLDER"
RUNNER_FOLDER: Final = "/iris"
# The command of every container. The image's own working directory is not searched for modules.
RUNNER_COMMAND: Final = ("-P", "-m", "neorion.iris.adapters.runtimes.container.runner")
# The container's own address, where it has one: it takes the place of the worker's.
HOST_ENV: Final = "IRIS_VM_ADDRESS"


class Hello(Struct, frozen=True, array_like=True, tag="Hello"):
    """The first message of each connection. `begun` says that the runner has its order already."""

    attempt: str
    token: str
    python: str
    begun: bool


class LeaseRequest(Struct, frozen=True, array_like=True, tag="LeaseRequest"):
    """Asks how long the task may still run. `asked_ns` is the runner's own clock, and comes back."""

    asked_ns: int


class PhaseReport(Struct, frozen=True, array_like=True, tag="PhaseReport"):
    """The attempt has reached this phase."""

    phase: Phase


class LogPart(Struct, frozen=True, array_like=True, tag="LogPart"):
    """Bytes of the log at this offset."""

    offset: int
    data: bytes


class ResultPart(Struct, frozen=True, array_like=True, tag="ResultPart"):
    """Bytes of the result file at this offset. A part at 0 begins it again."""

    offset: int
    data: bytes


class UsageReport(Struct, frozen=True, array_like=True, tag="UsageReport"):
    """The present use of the attempt."""

    cpu_seconds: float
    memory_bytes: int
    processes: int


class EndReport(Struct, frozen=True, array_like=True, tag="EndReport"):
    """The attempt has ended, and nothing of it runs. Log and result were sent before."""

    end: ExitInfo


class Welcome(Struct, frozen=True, array_like=True, tag="Welcome"):
    """The runner may go on. The worker has this much of the log."""

    log_bytes: int


class Order(Struct, frozen=True, array_like=True, tag="Order"):
    """The order. Its files follow in parts, in the order of this list; their sizes are in bytes."""

    job: StartRequest
    files: list[tuple[str, int]]


class FilePart(Struct, frozen=True, array_like=True, tag="FilePart"):
    """The next bytes of the order's files."""

    data: bytes


class Lease(Struct, frozen=True, array_like=True, tag="Lease"):
    """The task may run until so long after `asked_ns` by the runner's clock, however late this arrives."""

    asked_ns: int
    left_ns: int


class StopOrder(Struct, frozen=True, array_like=True, tag="StopOrder"):
    """End the task, with force after the grace."""

    grace_ns: int


class UsageRequest(Struct, frozen=True, array_like=True, tag="UsageRequest"):
    """Asks what the attempt uses now."""


class EndKept(Struct, frozen=True, array_like=True, tag="EndKept"):
    """The worker has written the end down: the runner may go."""


class Rejected(Struct, frozen=True, array_like=True, tag="Rejected"):
    """The worker does not have such an attempt, or the token is not valid: the runner has nothing to do here."""

    sentence: str


FromRunner = Hello | LeaseRequest | PhaseReport | LogPart | ResultPart | UsageReport | EndReport
ToRunner = Welcome | Order | FilePart | Lease | StopOrder | UsageRequest | EndKept | Rejected


def from_runner() -> Codec[FromRunner]:
    return Codec(msgspec.msgpack.Decoder(list[FromRunner]))


def to_runner() -> Codec[ToRunner]:
    return Codec(msgspec.msgpack.Decoder(list[ToRunner]))


class Sender:
    """One side's way to the other: whole frames, one at a time."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._lock = Lock()

    async def send(self, *messages: FromRunner | ToRunner) -> None:
        data = frame(messages)
        async with self._lock:
            await self._stream.send(data)

    async def close(self) -> None:
        await self._stream.aclose()
