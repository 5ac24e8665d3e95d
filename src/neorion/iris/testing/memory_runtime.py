"""Runtime in memory: attempts run for as long as a script sets, on any clock."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio

from neorion.iris.model import AttemptId, ExitKind
from neorion.iris.ports import AttemptExit, AttemptSpec, AttemptStatus, AttemptUsage, Phase
from neorion.keel.base import Conflict, Duration, NotFound
from neorion.keel.clock import Clock

_TERM = 15
_CLEANUP_MAX_S = 1.0


@dataclass(frozen=True, slots=True)
class ScriptedOutcome:
    """Script of an attempt that is not stopped: durations of build and run, output, and end.

    An attempt that cannot start does not run. A `deaf` one uses its whole grace period.
    """

    build_s: float = 0.0
    run_s: float = 0.0
    end: AttemptExit = field(default=AttemptExit(ExitKind.EXIT))
    value: bytes = b""
    greeting: bytes = b""
    farewell: bytes = b""
    deaf: bool = False


@dataclass(slots=True)
class _Run:
    order: AttemptSpec
    fate: ScriptedOutcome
    seen: AttemptStatus
    due: float
    stopping: bool = False
    # Its script is longer than its run limit.
    late: bool = False


class MemoryRuntime:
    """Attempts as entries of a table. `run` is the engine: attempts begin and end only while it runs.

    It outlives its users, as a fork server outlives a worker. `began` is called for every attempt that starts to run.
    """

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        script: Callable[[AttemptSpec], ScriptedOutcome],
        began: Callable[[AttemptSpec], None] = lambda _order: None,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._script = script
        self._began = began
        self._runs: dict[AttemptId, _Run] = {}
        self._until = 0.0
        self._boots = 0
        self._woken = asyncio.Event()
        self._unsent: dict[AttemptId, AttemptStatus] = {}
        self._changed = asyncio.Event()
        folder.mkdir(parents=True, exist_ok=True)

    # The port.

    @property
    def boot(self) -> str:
        return f"boot {self._boots}"

    async def start(self, order: AttemptSpec) -> None:
        if order.attempt in self._runs:
            return
        if not self._leased():
            raise Conflict(
                "runtime.no_lease", "An attempt cannot start without a lease.", hint="Renew the lease first."
            )
        fate = self._script(order)
        run = _Run(
            order, fate, AttemptStatus(order.attempt, Phase.BUILDING), self._clock.monotonic() + fate.build_s
        )
        self._runs[order.attempt] = run
        self._publish(run, run.seen)
        self._woken.set()

    async def stop(self, attempt: AttemptId, grace: Duration) -> None:
        run = self._runs.get(attempt)
        if run is None:
            raise NotFound("runtime.attempt", f"The attempt {attempt} does not exist.")
        if run.seen.phase is not Phase.ENDED:
            # It uses a part of the grace period, like a program that cleans up.
            takes_s = grace.seconds if run.fate.deaf else min(grace.seconds / 10, _CLEANUP_MAX_S)
            run.stopping = True
            run.due = min(run.due, self._clock.monotonic() + takes_s)
            self._woken.set()

    async def forget(self, *attempts: AttemptId) -> None:
        known = [run for attempt in attempts if (run := self._runs.get(attempt)) is not None]
        if any(run.seen.phase is not Phase.ENDED for run in known):
            raise Conflict("runtime.running", "The attempt has not ended.", hint="Stop it first.")
        for attempt in attempts:
            self._runs.pop(attempt, None)
            for path in (self._result(attempt), self.log(attempt)):
                path.unlink(missing_ok=True)

    async def seen(self) -> Sequence[AttemptStatus]:
        return [run.seen for run in self._runs.values()]

    async def changes(self) -> AsyncGenerator[Sequence[AttemptStatus], None]:
        self._unsent = {attempt: run.seen for attempt, run in self._runs.items()}
        changed = self._changed = asyncio.Event()
        changed.set()
        while True:
            await changed.wait()
            changed.clear()
            unsent, self._unsent = self._unsent, {}
            yield list(unsent.values())

    async def renew(self, life: Duration) -> None:
        self._until = self._clock.monotonic() + life.seconds
        self._woken.set()

    async def stats(self) -> Mapping[AttemptId, AttemptUsage]:
        now = self._clock.monotonic()
        return {
            # One core and one mebibyte each, so that tests can recognise them.
            attempt: AttemptUsage(now, 2**20, 1)
            for attempt, run in self._runs.items()
            if run.seen.phase is Phase.RUNNING
        }

    def log(self, attempt: AttemptId) -> Path:
        return self._folder / f"{attempt}.log"

    def kept_from(self, attempt: AttemptId) -> int:
        del attempt
        return 0

    # The engine.

    async def run(self) -> None:
        while True:
            self._woken.clear()
            now = self._clock.monotonic()
            for run in list(self._runs.values()):
                self._advance(run, now)
            dues = [run.due for run in self._runs.values() if run.seen.phase is not Phase.ENDED]
            if dues and self._leased():
                dues.append(self._until)
            with anyio.move_on_after(max(0.0, min(dues) - now) if dues else None):
                await self._woken.wait()

    def reboot(self, *, forgetful: bool = False) -> None:
        """Simulates a reboot: nothing runs, and with `forgetful` all attempts are forgotten."""
        self._until = 0.0
        self._boots += 1
        if forgetful:
            self._runs.clear()
        for run in self._runs.values():
            self._end(run, AttemptExit(ExitKind.LOST, message="the machine was rebooted"))

    def running(self) -> list[AttemptSpec]:
        """Attempts with a running process. Without a lease there are none, even before `run` notices."""
        live = [run for run in self._runs.values() if run.seen.phase is Phase.RUNNING]
        return [run.order for run in live] if self._leased() else []

    def known(self) -> list[AttemptId]:
        return list(self._runs)

    def _leased(self) -> bool:
        return self._clock.monotonic() < self._until

    def _advance(self, run: _Run, now: float) -> None:
        if run.seen.phase is Phase.ENDED:
            return
        if not self._leased():
            self._end(run, AttemptExit(ExitKind.LOST, message="the lease is over"))
        elif now < run.due:
            return
        elif run.stopping:
            self._end(run, AttemptExit(ExitKind.STOPPED, _TERM))
        elif run.fate.end.kind is ExitKind.NOT_STARTED:
            self._end(run, run.fate.end)
        elif run.seen.phase is Phase.BUILDING:
            limit = run.order.run_limit
            run.late = limit is not None and limit.seconds < run.fate.run_s
            run.due = now + (limit.seconds if limit is not None and run.late else run.fate.run_s)
            self._write(run, run.fate.greeting)
            self._publish(run, AttemptStatus(run.order.attempt, Phase.RUNNING))
            self._began(run.order)
        else:
            self._end(run, self._outcome(run))

    def _outcome(self, run: _Run) -> AttemptExit:
        if run.late:
            return AttemptExit(ExitKind.TIMED_OUT)
        self._write(run, run.fate.farewell)
        if not run.fate.value:
            return run.fate.end
        path = self._result(run.order.attempt)
        path.write_bytes(run.fate.value)
        return replace(run.fate.end, result=path)

    def _end(self, run: _Run, end: AttemptExit) -> None:
        if run.seen.phase is not Phase.ENDED:
            self._publish(run, AttemptStatus(run.order.attempt, Phase.ENDED, end))

    def _publish(self, run: _Run, seen: AttemptStatus) -> None:
        run.seen = seen
        self._unsent[seen.attempt] = seen
        self._changed.set()

    def _write(self, run: _Run, line: bytes) -> None:
        with self.log(run.order.attempt).open("ab") as file:
            file.write(line)

    def _result(self, attempt: AttemptId) -> Path:
        return self._folder / f"{attempt}.result"
