"""Why an attempt ended, from what its container and its runner say of it. Pure."""

from typing import Final

import msgspec

from neorion.iris.adapters.runtimes.container.engine import ContainerState, ContainerStatus
from neorion.iris.adapters.runtimes.process.protocol import ExitInfo
from neorion.iris.model import ExitKind

_RECORD: Final = msgspec.json.Decoder(ExitInfo)
# Exit codes from here on tell of a signal.
_KILLED: Final = 128
_IMAGE_HINT: Final = "Build it on the image iris-task, which holds Python with neorion."
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


def unreported(status: ContainerStatus, *, stop_requested: bool, leased: bool = True) -> ExitInfo:
    """The end of a container whose runner has told its worker nothing. Without a lease its task never ran."""
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
    if not leased and 0 < status.code < _KILLED:
        # To try again would not help: its image cannot run the runner.
        why = f"Its image does not run the task ({code}): {status.message} {_IMAGE_HINT}"
        return ExitInfo(ExitKind.NOT_STARTED, status.code, why)
    return ExitInfo(ExitKind.LOST, status.code, f"Its container ended ({code}). {status.message}".strip())


def _kept(data: bytes) -> ExitInfo | None:
    try:
        return _RECORD.decode(data) if data else None
    except msgspec.DecodeError:
        return None


def _with(end: ExitInfo, kind: ExitKind, message: str) -> ExitInfo:
    return ExitInfo(kind, end.code, message, False, end.cpu_ns, end.memory)
