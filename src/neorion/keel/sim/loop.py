"""A seeded asyncio loop: virtual time, random order of tasks, and a report of waiting tasks at a deadlock.

The order. A round runs once everything that was ready when it began, as in asyncio. Within the round the steps of
tasks run in an order drawn from the seed: asyncio promises none between tasks. Plain callbacks (`call_soon`, timers,
done-callbacks) keep the order in which they were registered among themselves, which asyncio does promise. Before the
draw, steps are sorted by the birth of their task, because libraries wake tasks by walking sets, whose order differs
from process to process.

Computing takes no time: the clock moves only when nothing is ready, and then straight to the next timer.
"""

import asyncio
import gc
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from contextvars import Context
from dataclasses import dataclass
from itertools import count
from operator import attrgetter, itemgetter
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack, cast

from neorion.keel.base import Duration, Terminal
from neorion.keel.clock import Rng
from neorion.keel.sim.deadlock_report import abandon, describe, died_unseen
from neorion.keel.sim.interruption import interruption_in
from neorion.keel.sim.process import PROCESS, Process, Timeline
from neorion.keel.sim.sandbox import sandboxed
from neorion.keel.sim.steps import ReadyStep, Timer, Timers

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

# Finalizers run at fixed steps and not when the collector decides; rarely enough to cost a few percent.
_GC_STEPS: Final = 100_000
# A function in a thread returns within this time, drawn from the seed.
_THREAD_S_MAX: Final = 0.002
# The number of cancellations after which a task that continues counts as unending.
_CANCELS_MAX: Final = 20
_WIND_UP_ROUNDS: Final = 1_000
# Finished tasks are dropped at this number, then whenever it has doubled.
_TASKS_SWEEP: Final = 1_000
# Two days contain every daily event twice.
_TIME_MAX: Final = Duration.of(hours=48)


@dataclass(frozen=True, slots=True)
class SimulationLimits:
    """The limits of a run that does not end by itself."""

    steps: int = 1_000_000
    time: Duration = _TIME_MAX


_serial_of = attrgetter("serial")
_position_of = itemgetter(0)
_owner_of = attrgetter("_callback.__self__")


@sandboxed
class SeededLoop(asyncio.BaseEventLoop):
    """The event loop of one simulation. Times are those of the host whose code runs."""

    def __init__(self, rng: Rng, limits: SimulationLimits) -> None:
        super().__init__()
        self._random = rng.random
        self._uniform = rng.uniform
        self._limits = limits
        self._time_max = limits.time.seconds
        self.now = 0.0
        self.steps = 0
        self.pulse = 0
        self.after_step: Callable[[], None] | None = None
        self._round: list[ReadyStep | Timer] = []
        self._timers = Timers()
        self._tasks: dict[asyncio.Task[Any], tuple[int, Process | None]] = {}
        self._births = count(1)
        self._tasks_sweep = _TASKS_SWEEP
        self._next_gc = _GC_STEPS
        self._failure: BaseException | None = None
        self._ending = False
        self._rounds_left = 0

    # Methods for asyncio and anyio.

    def time(self) -> float:
        process = PROCESS.get()
        return self.now if process is None else process.timeline.local(self.now)

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        step = ReadyStep(callback, args, self, context)
        step.process = PROCESS.get() if context is None else context.get(PROCESS)
        owner = getattr(callback, "__self__", None)
        step.serial = (
            self._serial(cast("asyncio.Task[Any]", owner), step.process)
            if isinstance(owner, asyncio.Task)
            else 0
        )
        self._round.append(step)
        return step

    call_soon_threadsafe = call_soon

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        process = PROCESS.get() if context is None else context.get(PROCESS)
        now = self.now if process is None else process.timeline.local(self.now)
        return self.call_at(now + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Runs the callback at `when`, a time of the callback's host."""
        timer = Timer(when, callback, args, self, context)
        timer.process = PROCESS.get() if context is None else context.get(PROCESS)
        self._timers.set(timer)
        return timer

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: object = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        # asyncio numbers nameless tasks per process, but a trace needs names that repeat.
        return super().create_task(coro, name=name or f"task-{next(self._births)}", context=context)

    def run_in_executor(
        self,
        executor: object,  # noqa: ARG002 -- any will do: the loop runs the function itself
        func: Callable[[Unpack[Ts]], T],
        *args: *Ts,
    ) -> asyncio.Future[T]:
        """Simulates a thread: the function runs in this thread at a moment drawn from the seed."""
        future: asyncio.Future[T] = self.create_future()

        def work() -> None:
            if future.cancelled():
                return
            try:
                future.set_result(func(*args))
            except Exception as error:  # noqa: BLE001 -- whatever it is, it belongs to the caller who waits
                future.set_exception(error)

        self.call_later(self._uniform(0, _THREAD_S_MAX), work)
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Ends the run for an error that asyncio would only log."""
        if not self._ending:
            self.fail(context.get("exception") or Terminal("sim.callback", str(context.get("message"))))

    def _timer_handle_cancelled(self, handle: Timer) -> None:
        self._timers.count_cancelled(handle)

    def _run_once(self) -> None:
        if self._ending:
            self._rounds_left -= 1
            if not self._round or self._rounds_left < 0:
                self.stop()
                return
        elif not self._round:
            self._leap()
        self._timers.move_due(self.now, self._round)
        if self.steps >= self._next_gc:
            self._next_gc += _GC_STEPS
            gc.collect()
        batch, self._round = self._round, []
        self._play(self._drawn(batch) if len(batch) > 1 else batch)
        if self.steps >= self._limits.steps and not self._ending:
            raise Terminal(
                "sim.steps",
                f"The run was not over after {self.steps:,} steps, {self.now:.3f} s of virtual time.\n"
                f"{describe(self._tasks)}",
                hint="Look for a task that spins without waiting, or raise Limits.steps.",
            )

    # Methods for the simulator.

    def run_main(self, main: Coroutine[Any, Any, T], context: Context) -> T:
        """Runs until `main` is done and returns its value; raises any failure of the run."""
        task = self.create_task(main, name="scenario", context=context)
        task.add_done_callback(lambda _: self.stop())
        self.run_forever()
        value = task.result()
        for other in self._tasks:
            if died_unseen(other):
                raise cast("BaseException", other.exception())
        return value

    def fail(self, error: BaseException) -> None:
        """Ends the run after the current step; the first error is the one reported."""
        if self._failure is None:
            self._failure = error

    def release(self, process: Process) -> None:
        process.stopped = False
        self._round += cast("list[ReadyStep | Timer]", process.paused_steps)
        process.paused_steps.clear()

    def retime(self, timeline: Timeline) -> None:
        self._timers.retime(timeline)

    def wind_up(self, processes: Iterable[Process]) -> None:
        """Unwinds all remaining tasks, crashed ones included. The simulation is over, so nothing has an effect."""
        self._ending = True
        self.after_step = None
        self._timers.clear()
        for process in processes:
            self.release(process)
        left = self._unfinished()
        for task in left:
            abandon(task)
        for _ in range(_CANCELS_MAX):
            for task in left:
                task.cancel()
            self._settle()
            left = self._unfinished()
            if not left:
                break
        self.create_task(self.shutdown_asyncgens(), name="close generators")
        self._settle()
        for task in self._tasks:
            if task.done() and not task.cancelled():
                task.exception()  # marks it as retrieved: errors of unwinding are ignored
        self.close()
        if left:
            names = ", ".join(task.get_name() for task in left)
            raise Terminal(
                "sim.unending",
                f"Cancelled {_CANCELS_MAX} times, these tasks went on: {names}.",
                hint="Let CancelledError pass.",
            )

    # Implementation.

    def _settle(self) -> None:
        self._rounds_left = _WIND_UP_ROUNDS
        self.run_forever()

    def _unfinished(self) -> list[asyncio.Task[Any]]:
        return [task for task in self._tasks if not task.done()]

    def _play(self, batch: list[ReadyStep | Timer]) -> None:
        done = 0
        try:
            for step in batch:
                done += 1
                process = step.process
                if step.cancelled():
                    continue
                if process is not None and process.stopped:
                    process.paused_steps.append(step)
                    continue
                self.steps += 1
                self.pulse = hash((self.pulse, step.serial))
                step.run()
                if self._ending:
                    continue
                if step.serial and (interruption := interruption_in(_owner_of(step))) is not None:
                    raise interruption
                if self._failure is not None:
                    raise self._failure
                if self.after_step is not None:
                    self.after_step()
        finally:
            # Steps left when the run fails are run when it is unwound: a task without them could not end.
            self._round[:0] = batch[done:]

    def _drawn(self, batch: Sequence[ReadyStep | Timer]) -> list[ReadyStep | Timer]:
        random = self._random
        tasks = sorted([step for step in batch if step.serial], key=_serial_of)
        plain = [step for step in batch if not step.serial]
        positions = sorted([random() for _ in plain])
        drawn = [(random(), step) for step in tasks] + list(zip(positions, plain, strict=True))
        drawn.sort(key=_position_of)
        return [step for _, step in drawn]

    def _leap(self) -> None:
        due = self._timers.next_due()
        if due is None:
            raise Terminal(
                "sim.deadlock",
                f"At {self.now:.3f} s every task waits for another and no timer is set.\n{describe(self._tasks)}",
                hint="Look for the task that should wake those above.",
            )
        if due > self._time_max:
            raise Terminal(
                "sim.time",
                f"The run was not over after {self._limits.time} of virtual time.\n{describe(self._tasks)}",
                hint="Look for what the scenario waits for, or raise Limits.time.",
            )
        self.now = max(self.now, due)

    def _serial(self, task: asyncio.Task[Any], process: Process | None) -> int:
        known = self._tasks.get(task)
        if known is None:
            known = self._tasks[task] = (next(self._births), process)
            if len(self._tasks) > self._tasks_sweep:
                # Keeps running tasks, and failed ones whose error was not retrieved.
                self._tasks = {
                    old: birth for old, birth in self._tasks.items() if not old.done() or died_unseen(old)
                }
                self._tasks_sweep = max(_TASKS_SWEEP, 2 * len(self._tasks))
        return known[0]
