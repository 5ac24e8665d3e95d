"""How changes of containers are found by asking."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import anyio
import anyio.lowlevel
import pytest

from neorion.iris.adapters.runtimes.container.container_poll import EVERY, ContainerPoll
from neorion.iris.adapters.runtimes.container.engine import ContainerState, ContainerStatus
from neorion.iris.model import AttemptId
from neorion.keel.base import Retry
from tests.iris.manual_clock import ManualClock

pytestmark = pytest.mark.anyio

A = ContainerStatus(AttemptId("a"), ContainerState.RUNNING)
A_GONE = ContainerStatus(AttemptId("a"), ContainerState.GONE)
B = ContainerStatus(AttemptId("b"), ContainerState.RUNNING)
B_OVER = ContainerStatus(AttemptId("b"), ContainerState.EXITED, code=3)


class Engine:
    """Answers each question with the next of these; the last answer stays."""

    def __init__(self, *answers: Sequence[ContainerStatus] | Retry) -> None:
        self.answers = list(answers)
        self.questions = 0

    async def find(self) -> Sequence[ContainerStatus]:
        self.questions += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Retry):
            raise answer
        return answer


async def batches(poll: ContainerPoll, clock: ManualClock, count: int) -> list[Sequence[ContainerStatus]]:
    found: list[Sequence[ContainerStatus]] = []
    async with anyio.create_task_group() as group, aclosing(poll.changes()) as changes:
        group.start_soon(_tick, clock)
        with anyio.fail_after(10):
            found += [await anext(changes) for _ in range(count)]
        group.cancel_scope.cancel()
    return found


async def _tick(clock: ManualClock) -> None:
    while True:
        clock.advance(EVERY)
        await anyio.lowlevel.checkpoint()


async def test_everything_comes_first_and_then_what_changed():
    engine = Engine([A, B], [A, B], [A, B_OVER], [B_OVER], [B_OVER])
    found = await batches(ContainerPoll(engine.find, clock := ManualClock()), clock, 3)
    assert found == [[A, B], [B_OVER], [A_GONE]]


async def test_an_engine_that_does_not_answer_is_asked_again():
    engine = Engine([A], Retry("test.away", "It is away."), [A, B])
    assert await batches(ContainerPoll(engine.find, clock := ManualClock()), clock, 2) == [[A], [B]]


async def test_without_containers_nothing_is_asked_until_one_is_made():
    engine, clock = Engine([], [A]), ManualClock()
    poll = ContainerPoll(engine.find, clock)
    found: list[Sequence[ContainerStatus]] = []
    read_both = anyio.Event()

    async def read(changes: AsyncGenerator[Sequence[ContainerStatus], None]) -> None:
        found.append(await anext(changes))
        found.append(await anext(changes))
        read_both.set()

    async with aclosing(poll.changes()) as changes, anyio.create_task_group() as group:
        group.start_soon(read, changes)
        group.start_soon(_tick, clock)
        await _turns(100)
        assert (engine.questions, found) == (1, [[]])
        poll.expect(A.attempt)
        with anyio.fail_after(10):
            await read_both.wait()
        group.cancel_scope.cancel()
    assert found == [[], [A]]


async def test_a_container_that_no_poll_has_found_is_gone():
    engine, clock = Engine([]), ManualClock()
    poll = ContainerPoll(engine.find, clock)
    poll.expect(A.attempt)
    assert await batches(poll, clock, 2) == [[], [A_GONE]]


async def _turns(count: int) -> None:
    for _ in range(count):
        await anyio.lowlevel.checkpoint()
