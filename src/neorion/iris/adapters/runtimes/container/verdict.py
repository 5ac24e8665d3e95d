"""Why an attempt ended, from what its container and its runner say of it. Pure."""

from typing import Final

import msgspec

from neorion.iris.adapters.runtimes.container.engine import ContainerState, ContainerStatus
from neorion.iris.adapters.runtimes.process.protocol import ExitInfo
from neorion.iris.model import ExitKind

_RECORD: Final = msgspec.json.Decoder(ExitInfo)
_STOPPED: Final = "It was stopped."
_UNDELIVERED: Final = "It ended, but its value did not reach the worker."


def record(end: ExitInfo) -> bytes:
    """An end in the few bytes that an engine keeps with a container."""
    short = ExitInfo(end.kind, end.code, end.message[:512], end.result, end.cpu_ns, end.memory)
    return msgspec.json.encode(short)


def reported(end: ExitInfo, status: ContainerStatus | None, *, stop_requested: bool) -> ExitInfo:
    """The end that a runner reports. What disrupted its container explains a bad end better than an exit code."""
    if end.kind is ExitKind.EXIT and end.code == 0:
        return end
    if status is not None and status.cause is ExitKind.LOST:
        return _with(end, ExitKind.LOST, status.message)
    if end.kind is ExitKind.STOPPED and not stop_requested:
        return _with(end, ExitKind.LOST, "Its container was ended from outside.")
    return end


def unreported(status: ContainerStatus, *, stop_requested: bool) -> ExitInfo:
    """The end of a container whose runner has told its worker nothing."""
    if stop_requested:
        return ExitInfo(ExitKind.STOPPED, status.code, _STOPPED)
    if status.cause is not None:
        return ExitInfo(status.cause, status.code, status.message)
    if (kept := _kept(status.record)) is not None:
        lost = kept.result or kept.kind is ExitKind.STOPPED
        return _with(kept, ExitKind.LOST, _UNDELIVERED) if lost else kept
    if status.state is ContainerState.GONE:
        return ExitInfo(ExitKind.LOST, 0, "Its container is gone.")
    code = f"exit code {status.code}"
    return ExitInfo(ExitKind.LOST, status.code, f"Its container ended ({code}). {status.message}".strip())


def _kept(data: bytes) -> ExitInfo | None:
    try:
        return _RECORD.decode(data) if data else None
    except msgspec.DecodeError:
        return None


def _with(end: ExitInfo, kind: ExitKind, message: str) -> ExitInfo:
    return ExitInfo(kind, end.code, message, False, end.cpu_ns, end.memory)
