"""A machine of the simulated world: it starts, crashes, pauses, restarts, and its clock may be wrong."""

from collections.abc import Awaitable, Callable
from contextvars import Context
from functools import cached_property
from typing import TYPE_CHECKING

from neorion.keel.base import Conflict, Invalid, is_name
from neorion.keel.clock import Rng, SeededIds, VirtualClock
from neorion.keel.sim.disk import Disk
from neorion.keel.sim.process import PROCESS, SCENARIO, Process, Timeline

if TYPE_CHECKING:
    from neorion.keel.sim.world import World

Main = Callable[["Host"], Awaitable[None]]


class Host:
    """Runs one program, `main(host)`, repeatedly. Its disk and its clock outlive the program's crashes."""

    def __init__(self, world: "World", name: str) -> None:
        if not is_name(name) or name == SCENARIO:
            raise Invalid(
                "sim.host",
                f'"{name}" is not a valid name of a host.',
                hint="Lower-case letters, digits and dashes.",
            )
        self.name = name
        self._world = world
        self._loop = world.loop
        self._timeline = Timeline()
        self._main: Main | None = None
        self._process: Process | None = None
        self.clock = VirtualClock(self._elapsed)

    @cached_property
    def rng(self) -> Rng:
        return self._world.chance(f"rng of {self.name}")

    @cached_property
    def ids(self) -> SeededIds:
        return SeededIds(self._world.chance(f"ids of {self.name}"), self.clock)

    @cached_property
    def disk(self) -> Disk:
        return Disk(self.clock, self._world.chance(f"disk of {self.name}"), self._world.trace)

    @property
    def up(self) -> bool:
        """True while the program runs. A paused host is up."""
        return self._process is not None and self._process.alive

    def start(self, main: Main) -> None:
        """Starts the program. When `main` returns, the host is down; when it raises, the run has failed."""
        if self.up:
            raise Conflict("sim.host_up", f"{self.name} runs already.", hint="Crash it first, or restart it.")
        self._main = main
        process = self._process = Process(self.name, self._timeline)
        self._world.processes.append(process)
        self._world.trace.add(f"start {self.name}")
        context: Context = self._world.context.copy()
        context.run(PROCESS.set, process)
        self._loop.create_task(self._run(process, main), name=f"{self.name} main", context=context)

    def crash(self) -> None:
        """Kills the program like kill -9: no `finally` or `except` runs, and unsynced writes may be lost.

        Its connections are reset. The tasks are unwound after the end of the simulation, when nothing has an effect.
        """
        process = self._running()
        if PROCESS.get() is process:
            raise Invalid(
                "sim.self_crash",
                f"Code of {self.name} cannot crash its own host and go on.",
                hint="Crash it from the scenario, or at a fault point.",
            )
        self.kill()

    def restart(self) -> None:
        """Crashes the program if it runs, and starts it again with empty memory."""
        if self._main is None:
            raise Conflict("sim.host_new", f"{self.name} was never started.", hint="Call start(main) first.")
        if self.up:
            self.crash()
        self.start(self._main)

    def pause(self) -> None:
        """Stops the program like SIGSTOP: nothing runs, timers fire late, and arriving data is queued."""
        self._world.trace.add(f"pause {self.name}")
        self._running().stopped = True

    def resume(self) -> None:
        self._world.trace.add(f"resume {self.name}")
        self._loop.release(self._running())

    def drift(self, rate: float) -> None:
        """Lets the clock run `rate` times as fast as the world; `clock.jump` moves its wall time."""
        if rate <= 0:
            raise Invalid(
                "sim.drift", f"A clock cannot run {rate} times as fast.", hint="Use a rate above 0."
            )
        self._world.trace.add(f"drift {self.name} x{rate}")
        self._timeline.drift(rate, self._loop.now)
        self._loop.retime(self._timeline)

    def kill(self) -> None:
        """Crashes the program. Only for callers that end the running step themselves."""
        process = self._running()
        self._world.trace.add(f"crash {self.name}")
        process.alive = False
        process.stopped = True
        self._world.network.disconnect(process)
        self.disk.crash()

    def _running(self) -> Process:
        if self._process is None or not self._process.alive:
            raise Conflict("sim.host_down", f"{self.name} does not run.", hint="Start it first.")
        return self._process

    def _elapsed(self) -> float:
        return self._timeline.local(self._loop.now)

    async def _run(self, process: Process, main: Main) -> None:
        try:
            await main(self)
        except Exception as error:  # noqa: BLE001 -- a program that dies of an error is a failed run, whatever the error
            self._loop.fail(error)
            return
        self._world.trace.add(f"exit {self.name}")
        process.alive = False
        process.stopped = True
        self._world.network.disconnect(process)
