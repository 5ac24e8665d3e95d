"""An attempt as the fork server keeps it, and the verdict on its end."""

# ruff: noqa: PTH110, PTH123 -- see `files`: plain names, plain calls

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

# A function's process that ends well without a result did not end well: "internal software error" in sysexits.h.
NO_RESULT = 70
_REFUSAL = msgspec.msgpack.Decoder(tuple[int, str])


@dataclass(slots=True, eq=False)
class AttemptProcess:
    """`pid` is the process that runs it, and `group` its control group, where it has one.

    `warm` says that its process, and what that leaves running, outlives it. `cause` is set when the runtime, not the task,
    brings about the end. `told` is the phase that the worker knows of.
    """

    id: str
    job: StartRequest | None = None
    phase: Phase = Phase.BUILDING
    told: Phase | None = None
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
    """What the kernel, or a pool's process, says about how a task ended."""

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
    """What a process had in memory before its program began was ours: a peak below that says nothing of the program."""
    ours = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return usage.ru_maxrss * 1024 if usage.ru_maxrss > ours else 0


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
        return ExitInfo(ExitKind.OUT_OF_MEMORY, code, "It used more memory than it asked for.", result)
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
        return 0, "It could not be begun, and the disk had no room for the reason."
