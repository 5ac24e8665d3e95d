"""State of an attempt in the fork server, and the classification of its end."""

# ruff: noqa: PTH110, PTH123 -- see `layout`: plain names, plain calls

import os
import resource
import signal
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from neorion.iris.adapters.runtimes.process.environ import NO_ROOM
from neorion.iris.adapters.runtimes.process.forkserver.event_loop import Timer
from neorion.iris.adapters.runtimes.process.layout import AttemptDir
from neorion.iris.adapters.runtimes.process.protocol import AttemptReport, ExitInfo, StartRequest
from neorion.iris.adapters.runtimes.process.result_file import worth_flushing
from neorion.iris.adapters.runtimes.process.syscalls import boottime_ns
from neorion.iris.ports import ExitKind, Phase

# Exit code for a function's process that exits with 0 but without a result: "internal software error" in sysexits.h.
NO_RESULT = 70
_REFUSAL = msgspec.msgpack.Decoder(tuple[int, str])


@dataclass(slots=True, eq=False)
class AttemptProcess:
    """An attempt. `pid` is the process that runs it, and `group` its control group if it has one.

    With `warm` its process and that process's children outlive it. `cause` is set when the runtime, not the task,
    ends it. `reported` is the phase that the worker was sent.
    """

    id: str
    job: StartRequest | None = None
    phase: Phase = Phase.BUILDING
    reported: Phase | None = None
    pid: int = 0
    group: str = ""
    warm: bool = False
    cause: ExitInfo | None = None
    ended: ExitInfo | None = None
    began_ns: int = field(default_factory=boottime_ns)
    timers: list[Timer] = field(default_factory=list[Timer])

    @property
    def state(self) -> AttemptReport:
        return AttemptReport(self.id, self.phase, self.pid, self.ended)

    @property
    def precious(self) -> bool:
        return worth_flushing(self.began_ns)

    def end(self, ended: ExitInfo) -> None:
        self.ended, self.phase, self.pid, self.job = ended, Phase.ENDED, 0, None
        self.cancel_timers()

    def cancel_timers(self) -> None:
        for timer in self.timers:
            timer.cancel()
        self.timers.clear()


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """Exit status of a task, from the kernel or from a pool's process."""

    code: int
    signal: int = 0
    cpu_ns: int = 0
    memory: int = 0
    out_of_memory: bool = False


def read_status(status: int, usage: resource.struct_rusage) -> ExitStatus:
    killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    code = 0 if killed else os.WEXITSTATUS(status)
    return ExitStatus(code, killed, round((usage.ru_utime + usage.ru_stime) * 1e9), _own_memory(usage))


def _own_memory(usage: resource.struct_rusage) -> int:
    """Peak memory of the program. A peak below the fork server's own was inherited and counts as 0."""
    inherited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return usage.ru_maxrss * 1024 if usage.ru_maxrss > inherited else 0


def verdict(attempt: AttemptProcess, place: AttemptDir, ending: ExitStatus) -> ExitInfo:
    return replace(_verdict(attempt, place, ending), cpu_ns=ending.cpu_ns, memory=ending.memory)


def _verdict(attempt: AttemptProcess, place: AttemptDir, ending: ExitStatus) -> ExitInfo:
    result = os.path.exists(place.result)
    code = ending.signal or ending.code
    if attempt.cause is not None:
        return ExitInfo(attempt.cause.kind, code, attempt.cause.message, result)
    if not result and os.path.exists(place.refusal):
        code, sentence = _read_refusal(place.refusal)
        return ExitInfo(ExitKind.NOT_STARTED, code, sentence)
    if ending.out_of_memory and code:
        return ExitInfo(ExitKind.OUT_OF_MEMORY, code, "It used more memory than it requested.", result)
    if ending.signal:
        name = signal.strsignal(ending.signal) or "unknown"
        return ExitInfo(ExitKind.SIGNAL, ending.signal, f"Signal {ending.signal}: {name}.", result)
    if attempt.job is not None and not attempt.job.argv and not result:
        return _call_without_result(ending.code)
    return ExitInfo(ExitKind.EXIT, ending.code, "", result)


def _call_without_result(code: int) -> ExitInfo:
    if code == NO_ROOM:
        return ExitInfo(ExitKind.NO_ROOM, code, "There was no room for its value on the disk of its worker.")
    if not code:
        return ExitInfo(ExitKind.EXIT, NO_RESULT, "The process ended before its function returned.")
    return ExitInfo(ExitKind.EXIT, code)


def _read_refusal(path: str) -> tuple[int, str]:
    with open(path, "rb") as file:
        data = file.read()
    try:
        return _REFUSAL.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return 0, "It could not start, and the disk had no room for the reason."
