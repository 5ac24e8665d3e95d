"""The end of an attempt's container, as containerd tells it. Pure."""

from typing import Final

from neorion.iris.adapters.runtimes.container.engine import ContainerState, ContainerStatus
from neorion.iris.adapters.runtimes.containerd.gen.cri_pb import ContainerState as CriState
from neorion.iris.adapters.runtimes.containerd.gen.cri_pb import ContainerStatus as CriStatus
from neorion.iris.model import AttemptId, ExitKind

_OOM: Final = "OOMKilled"
_CANNOT_START: Final = 128


def end_status(attempt: AttemptId, seen: CriStatus, record: bytes, log: str) -> ContainerStatus:
    """`record` and `log` are what the runner left: its end, and the last line it wrote."""
    if seen.state is CriState.CONTAINER_UNKNOWN:
        why = "containerd has lost sight of its container."
        return ContainerStatus(attempt, ContainerState.EXITED, ExitKind.LOST, 0, why)
    code = seen.exit_code
    # The reason stays where the kernel killed a child and the container went on to a good end.
    if seen.reason == _OOM and code:
        why = "It used more memory than it asked for."
        return ContainerStatus(attempt, ContainerState.EXITED, ExitKind.OUT_OF_MEMORY, code, why)
    if code == _CANNOT_START and seen.message:
        why = f"Its image does not start: {seen.message.strip()}"
        return ContainerStatus(attempt, ContainerState.EXITED, ExitKind.NOT_STARTED, code, why)
    return ContainerStatus(
        attempt, ContainerState.EXITED, None, code, log[:300] if code else "", record=record
    )


def last_line(log: bytes) -> str:
    """The text of the last line of a log in the format of CRI: time, stream, tag and text."""
    lines = [line.split(" ", 3)[-1].strip() for line in log.decode(errors="replace").splitlines()]
    return next((line for line in reversed(lines) if line), "")
