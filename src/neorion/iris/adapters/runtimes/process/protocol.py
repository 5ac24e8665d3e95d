"""Protocol between the worker and the fork server: frames of several messages each.

A frame is its length in four bytes and a msgpack list. Both sides are of one installation, so fields may change.
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from neorion.iris.adapters.runtimes.process.cgroups import ResourceLimits
from neorion.iris.ports import ExitKind, Phase

# Limit of the memory that a peer can make this process use; the variables and arguments of one order are far smaller.
FRAME_BYTES_MAX = 64 << 20
_HEAD = 4

M = TypeVar("M")


class StartRequest(Struct, frozen=True, array_like=True):
    """Start of an attempt in plain values. Without `argv` it is a function call; `run_limit_ns` of 0 means none."""

    attempt: str
    argv: list[str]
    function: str
    input: str
    bundle: str
    variables: list[tuple[str, str]]
    packages: list[str]
    setup: list[str]
    cpu_milli: int
    memory: int
    pool: str
    run_limit_ns: int

    @property
    def prepares(self) -> bool:
        return bool(self.bundle or self.packages or self.setup)

    @property
    def limited(self) -> bool:
        return self.memory > 0 or self.cpu_milli > 0

    @property
    def limits(self) -> ResourceLimits:
        return ResourceLimits(self.memory, self.cpu_milli)


class ExitInfo(Struct, frozen=True, array_like=True):
    """End of an attempt, with processor time and peak memory of one process. `result` is true if a result file exists."""

    kind: ExitKind
    code: int = 0
    message: str = ""
    result: bool = False
    cpu_ns: int = 0
    memory: int = 0


class AttemptReport(Struct, frozen=True, array_like=True):
    """State of an attempt in the fork server. `pid` is 0 if it has no process."""

    attempt: str
    phase: Phase
    pid: int = 0
    ended: ExitInfo | None = None


class Start(Struct, frozen=True, array_like=True, tag="Start"):
    """Starts an attempt."""

    id: int
    job: StartRequest


class Stop(Struct, frozen=True, array_like=True, tag="Stop"):
    """Stops an attempt, with SIGKILL after the grace period."""

    id: int
    attempt: str
    grace_ns: int


class Forget(Struct, frozen=True, array_like=True, tag="Forget"):
    """Forgets attempts whose ends the controller has recorded."""

    id: int
    attempts: list[str]


class Renew(Struct, frozen=True, array_like=True, tag="Renew"):
    """Renews the lease until a time of the clock of both sides, so that a late message does not extend it."""

    id: int
    until_ns: int


class Refusal(StrEnum):
    """Reason why a request was refused."""

    NONE = ""
    UNKNOWN = "unknown"
    NOT_ENDED = "not_ended"
    NO_LEASE = "no_lease"
    NO_DISK = "no_disk"


class Reply(Struct, frozen=True, array_like=True, tag="Done"):
    """Reply to a request."""

    id: int
    refusal: Refusal = Refusal.NONE


class StatusUpdate(Struct, frozen=True, array_like=True, tag="Told"):
    """Changed states; all states right after the connection."""

    states: list[AttemptReport]


class ConnectionReplaced(Struct, frozen=True, array_like=True, tag="Replaced"):
    """End of this connection, because another worker process has connected."""


Request = Start | Stop | Forget | Renew
Report = Reply | StatusUpdate | ConnectionReplaced


class FrameTooLong(Exception):
    """The peer uses another protocol or is broken."""


class Codec(Generic[M]):
    """Decoder of frames in one direction of a connection."""

    def __init__(self, decoder: msgspec.msgpack.Decoder[list[M]]) -> None:
        self._decoder = decoder
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[M]:
        self._rest += data
        while len(self._rest) >= _HEAD:
            length = int.from_bytes(self._rest[:_HEAD], "big")
            if length > FRAME_BYTES_MAX:
                raise FrameTooLong
            if len(self._rest) < _HEAD + length:
                return
            frame = bytes(self._rest[_HEAD : _HEAD + length])
            del self._rest[: _HEAD + length]
            yield from self._decoder.decode(frame)


_ENCODER = msgspec.msgpack.Encoder()


def frame(messages: Sequence[object]) -> bytes:
    body = _ENCODER.encode(messages)
    return len(body).to_bytes(_HEAD, "big") + body


def requests() -> Codec[Request]:
    return Codec(msgspec.msgpack.Decoder(list[Request]))


def reports() -> Codec[Report]:
    return Codec(msgspec.msgpack.Decoder(list[Report]))


def jobs() -> Codec[StartRequest]:
    """Codec of messages to the process of a pool."""
    return Codec(msgspec.msgpack.Decoder(list[StartRequest]))


def pool_codes() -> Codec[int]:
    """Codec of messages from the process of a pool: exit codes, and -1 for the start of a task."""
    return Codec(msgspec.msgpack.Decoder(list[int]))
