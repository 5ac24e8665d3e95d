"""The end of an attempt's container, as Docker tells it. Pure."""

from typing import Final

from neorion.iris.adapters.runtimes.container.engine import ContainerState, ContainerStatus
from neorion.iris.adapters.runtimes.docker.docker_api import ContainerEnd
from neorion.iris.model import AttemptId, ExitKind

# Exit codes of programs that cannot be run or are not there.
_CANNOT_START: Final = (126, 127)


def end_status(attempt: AttemptId, seen: ContainerEnd, record: bytes, log: str) -> ContainerStatus:
    """`record` and `log` are what the runner left: its end, and the last lines it wrote."""
    code = seen.exit_code
    # The mark stays where the kernel killed a child and the container went on to a good end.
    if seen.out_of_memory and code:
        why = "It used more memory than it asked for."
        return ContainerStatus(attempt, ContainerState.EXITED, ExitKind.OUT_OF_MEMORY, code, why)
    if code in _CANNOT_START and seen.error:
        why = f"Its image does not start: {seen.error}"
        return ContainerStatus(attempt, ContainerState.EXITED, ExitKind.NOT_STARTED, code, why)
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    message = (lines or [""])[-1][:300] if code else ""
    return ContainerStatus(attempt, ContainerState.EXITED, None, code, message, record=record)
