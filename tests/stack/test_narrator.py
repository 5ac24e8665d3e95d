"""The story is told from what is seen: nothing twice, nothing that did not happen."""

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest

from neorion.iris.client import AsyncIrisClient, AsyncJob
from neorion.iris.model import SliceId
from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.cli.kit import Output
from neorion.keel.cli.shared_options import SharedOptions
from neorion.keel.clock import SystemClock
from neorion.stack.narrator import DemoNarrator

pytestmark = pytest.mark.anyio


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@dataclass
class Seen:
    """A cluster and a job that go on by one step with each look."""

    machines: list[dict[str, str]]
    done: list[int]
    lost: list[str] = field(default_factory=list[str])

    async def slices(self) -> list[pb.Slice]:
        return [pb.Slice(id=name, state=state) for name, state in self.machines.pop(0).items()]

    async def status(self) -> pb.Job:
        return pb.Job(tasks={"succeeded": self.done.pop(0)}, ended_ms=0 if self.done else 1)

    async def lose(self, piece: SliceId) -> None:
        self.lost.append(piece)


async def follow(
    seen: Seen, stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> tuple[DemoNarrator, list[str]]:
    monkeypatch.setattr("sys.stdout", stream)
    out = Output.of(SharedOptions(), {"TERM": "xterm"})
    story = DemoNarrator(out, cast("AsyncIrisClient", seen), SystemClock(), seen.lose)
    await story.follow(cast("AsyncJob", seen), 4)
    return story, [line.partition("s  ")[2] for line in stream.getvalue().splitlines()]


async def test_a_machine_that_vanishes_between_two_looks_is_told_as_lost(monkeypatch: pytest.MonkeyPatch):
    seen = Seen([{"a": "CREATING"}, {"a": "READY"}, {"b": "BOOTSTRAPPING"}, {"b": "READY"}], [0, 2, 2, 4])
    _, lines = await follow(seen, io.StringIO(), monkeypatch)
    assert seen.lost == ["a"]
    assert lines == [
        "the autoscaler asks for 1 machine",
        "machine 1 is ready",
        "2 of 4 shards are done",
        "FAULT: the power of machine 1 is cut while it works",
        "the controller has noticed; what ran there is tried elsewhere",
        "the autoscaler asks for 1 machine more",
        "machine 2 is ready in its place: healed",
    ]


async def test_on_a_terminal_a_line_below_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch):
    seen = Seen([{"a": "READY"}, {"a": "READY"}], [0, 4])
    screen = Terminal()
    await follow(seen, screen, monkeypatch)
    assert "░ 0/4 shards, machines ready: 1" in screen.getvalue()
    assert "█ 4/4 shards, machines ready: 1" in screen.getvalue()


@pytest.mark.parametrize(
    ("tries", "told"),
    [
        ([1, 1], "2 results from 2 attempts: the machine had none of them when it went down."),
        # One that was lost before it began is charged to no budget, and was an attempt all the same.
        ([2, 1], "2 results from 3 attempts: 1 went down with the machine and ran again elsewhere."),
    ],
)
async def test_the_summary_counts_attempts_as_they_were(
    monkeypatch: pytest.MonkeyPatch, tries: Sequence[int], told: str
):
    story, _ = await follow(Seen([{}], [0]), io.StringIO(), monkeypatch)
    text = story.summary(2, [pb.Task(tries=count) for count in tries])
    assert told in text
    assert "new machine in its place  not before the job had ended" in text
