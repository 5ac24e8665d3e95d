"""What the worker and the fork server say to each other: frames of several messages each.

A frame is its length in four bytes and a msgpack list. Both sides are of one installation, so fields may come and go.
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from neorion.iris.adapters.runtimes.process.cgroups import ResourceLimits
from neorion.iris.ports import ExitKind, Phase

# A frame holds at most what a socket may make us keep in memory; one order's variables and arguments fit by far.
FRAME_BYTES_MAX = 64 << 20
_HEAD = 4

M = TypeVar("M")


class StartRequest(Struct, frozen=True, array_like=True):
    """An order in plain values. Without `argv` it is a call; `run_limit_ns` of 0 means none."""

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
    def asked(self) -> ResourceLimits:
        return ResourceLimits(self.memory, self.cpu_milli)


class ExitInfo(Struct, frozen=True, array_like=True):
    """An end, with the processor time it took and the most memory that one process had; `result` says whether there is a result file."""

    kind: ExitKind
    code: int = 0
    message: str = ""
    result: bool = False
    cpu_ns: int = 0
    memory: int = 0


class AttemptReport(Struct, frozen=True, array_like=True):
    """An attempt as the fork server knows it; `pid` is 0 where no process is its own."""

    attempt: str
    phase: Phase
    pid: int = 0
    ended: ExitInfo | None = None


class Start(Struct, frozen=True, array_like=True, tag="Start"):
    """Run this."""

    id: int
    job: StartRequest


class Stop(Struct, frozen=True, array_like=True, tag="Stop"):
    """End it, with force after the grace."""

    id: int
    attempt: str
    grace_ns: int


class Forget(Struct, frozen=True, array_like=True, tag="Forget"):
    """Their ends are known elsewhere."""

    id: int
    attempts: list[str]


class Renew(Struct, frozen=True, array_like=True, tag="Renew"):
    """Tasks may run until then, by the clock that both sides share: however late this is heard, it promises no more."""

    id: int
    until_ns: int


class Refusal(StrEnum):
    """Why a request was not carried out."""

    NONE = ""
    UNKNOWN = "unknown"
    NOT_ENDED = "not_ended"
    NO_LEASE = "no_lease"
    NO_DISK = "no_disk"


class Reply(Struct, frozen=True, array_like=True, tag="Done"):
    """The answer to a request."""

    id: int
    refusal: Refusal = Refusal.NONE


class StatusUpdate(Struct, frozen=True, array_like=True, tag="Told"):
    """States that changed; right after connecting, all of them."""

    states: list[AttemptReport]


class ConnectionReplaced(Struct, frozen=True, array_like=True, tag="Replaced"):
    """Another worker process has taken over; this connection ends."""


Request = Start | Stop | Forget | Renew
Report = Reply | StatusUpdate | ConnectionReplaced


class FrameTooLong(Exception):
    """The other side speaks another language, or is broken."""


class Codec(Generic[M]):
    """Frames of one direction of one connection."""

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
    """To the process of a pool."""
    return Codec(msgspec.msgpack.Decoder(list[StartRequest]))


def words() -> Codec[int]:
    """From the process of a pool."""
    return Codec(msgspec.msgpack.Decoder(list[int]))
