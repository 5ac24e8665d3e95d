"""Output of the demo: each event once, the progress of the job, and a summary with times."""

import shutil
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from neorion.iris.client import AsyncIrisClient, AsyncJob
from neorion.iris.model import SliceId
from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.base import Duration
from neorion.keel.cli.kit import Output
from neorion.keel.cli.kit.terminal import is_live
from neorion.keel.clock import Clock

_POLL_EVERY: Final = Duration.of(ms=50)
_BAR: Final = 24
# Moves to the start of the line and clears it.
_CLEAR: Final = "\r\x1b[K"


class DemoNarrator:
    """Watches a cluster through its client. Stops one machine with `lose` after a third of the job."""

    def __init__(
        self, out: Output, client: AsyncIrisClient, clock: Clock, lose: Callable[[SliceId], Awaitable[None]]
    ) -> None:
        self._out = out
        self._client = client
        self._clock = clock
        self._lose = lose
        self._live = is_live(out.out.stream, out.env)
        self._began = clock.monotonic()
        self._states: dict[str, str] = {}
        # Machines are numbered in the order of their requests, which is easier to follow than ids.
        self._numbers: dict[str, int] = {}
        self._last_done = 0
        self._victim = ""
        self._moments: dict[str, float] = {}

    def print_line(self, text: str, moment: str = "") -> None:
        """Prints a line. `moment` names the first occurrence of an event, for the summary."""
        if moment:
            self._moments.setdefault(moment, self._now())
        self._out.text(f"{_CLEAR if self._live else ''}{self._now():5.1f}s  {text}\n")

    async def follow(self, job: AsyncJob, shards: int) -> None:
        """Prints events until the job has ended."""
        while True:
            status = await job.status()
            await self._show_machines()
            done = status.tasks.get("succeeded", 0)
            self._show(done, shards)
            if done >= self._last_done + shards // 4 and done < shards:
                self._last_done = done
                self.print_line(f"{done} of {shards} shards are done")
            if not self._victim and done >= shards // 3:
                await self._cut_power()
            if status.ended_ms:
                return
            await self._clock.sleep(_POLL_EVERY)

    async def wait_for_idle(self) -> None:
        while self._states:
            await self._show_machines()
            await self._clock.sleep(_POLL_EVERY)
        self.print_line("all machines are given back; nothing runs any more", "idle")

    def summary(self, results: int, tasks: Sequence[pb.Task]) -> str:
        attempts = sum(task.tries for task in tasks)
        again = attempts - len(tasks)
        lost = (
            f"{again} went down with the machine and ran again elsewhere"
            if again
            else "the machine had none of them when it went down"
        )
        spans = (
            ("first machine ready", "submitted", "ready"),
            ("loss noticed", "cut", "noticed"),
            ("new machine in its place", "cut", "healed"),
            ("every result back", "submitted", "results"),
            ("idle machines given back", "results", "idle"),
        )
        lines = [f"{name:26}{self._span(first, last)}" for name, first, last in spans]
        return "\n".join(
            [
                "",
                f"{results} results from {attempts} attempts: {lost}.",
                "",
                *lines,
                "",
                "Try it, and from Python as in docs/guides/iris.md:",
                *self._commands(),
                "",
            ]
        )

    def _commands(self) -> list[str]:
        known = shutil.which("iris", path=self._out.env.get("PATH", ""))
        # Make runs the demo by its path, so PATH may lack the commands below.
        path = [] if known else [f'  export PATH="{Path(sys.executable).parent}:$PATH"']
        return [
            *path,
            "  iris cluster start --local --detach",
            "  iris run -- echo hello",
            "  iris cluster stop",
        ]

    async def _cut_power(self) -> None:
        self._victim = next(name for name, state in self._states.items() if state == "READY")
        self.print_line(
            f"FAULT: the power of machine {self._numbers[self._victim]} is cut while it works", "cut"
        )
        await self._lose(SliceId(self._victim))

    async def _show_machines(self) -> None:
        was, now = self._states, {piece.id: str(piece.state) for piece in await self._client.slices()}
        self._states = now
        for name, state in was.items():
            if state == "READY" != now.get(name):
                self._print_loss(name)
        fresh = [name for name in now if name not in self._numbers]
        for name in fresh:
            self._numbers[name] = len(self._numbers) + 1
        if fresh:
            self.print_line(
                f"the autoscaler asks for {_machines(len(fresh))}{' more' if self._victim else ''}"
            )
        for name, state in now.items():
            if was.get(name) != "READY" == state:
                self._print_ready(name)

    def _print_ready(self, name: str) -> None:
        if self._victim:
            self.print_line(f"machine {self._numbers[name]} is ready in its place: healed", "healed")
        else:
            self.print_line(f"machine {self._numbers[name]} is ready", "ready")

    def _print_loss(self, name: str) -> None:
        if name == self._victim:
            self.print_line("the controller has noticed; what ran there is tried elsewhere", "noticed")
        else:
            self.print_line(f"machine {self._numbers[name]} is idle and is given back")

    def _show(self, done: int, shards: int) -> None:
        """Shows the progress in the last line, on a terminal only."""
        if self._live:
            full = done * _BAR // shards
            ready = sum(state == "READY" for state in self._states.values())
            bar = f"{'█' * full}{'░' * (_BAR - full)}"
            self._out.text(
                f"{_CLEAR}{self._now():5.1f}s  {bar} {done}/{shards} shards, machines ready: {ready}"
            )

    def _span(self, first: str, last: str) -> str:
        if first not in self._moments or last not in self._moments:
            return "not before the job had ended"
        return f"{self._moments[last] - self._moments[first]:4.1f} s"

    def _now(self) -> float:
        return self._clock.monotonic() - self._began


def _machines(count: int) -> str:
    return "1 machine" if count == 1 else f"{count} machines"
