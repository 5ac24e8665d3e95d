"""The work queue: each key once, never in two hands, urgent first, nobody starved, failed ones later and later."""

import asyncio

import anyio
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from neorion.keel.base import Duration
from neorion.keel.clock import VirtualClock, seeded_rng
from neorion.keel.kube.control import Priority, WorkQueue
from neorion.keel.run import Backoff
from neorion.keel.sim import World, simulate

pytestmark = pytest.mark.anyio

SECOND = Duration.of(seconds=1)


def queue_of(clock: VirtualClock | None = None, backoff: Backoff | None = None) -> WorkQueue[str]:
    return WorkQueue(clock or VirtualClock(lambda: 0.0), seeded_rng(1), backoff or Backoff())


async def take(queue: WorkQueue[str]) -> str:
    taken = await queue.take()
    assert taken is not None
    return taken.key


async def drained(queue: WorkQueue[str]) -> list[str]:
    keys = list[str]()
    while len(queue):
        keys.append(await take(queue))
        queue.finish(keys[-1])
    return keys


async def test_a_key_added_many_times_is_taken_once():
    queue = queue_of()
    for key in "abcab":
        queue.add(key)
    assert await drained(queue) == ["a", "b", "c"]


async def test_a_key_added_while_in_hand_is_taken_again_and_not_before_it_is_given_back():
    queue = queue_of()
    queue.add("a")
    await queue.take()
    queue.add("a")
    queue.add("a", Priority.PATIENT)
    assert len(queue) == 0
    queue.finish("a", wake_after=SECOND)
    assert await drained(queue) == ["a"]
    assert queue.idle


async def test_urgent_keys_come_before_patient_ones_and_a_patient_one_can_become_urgent():
    queue = queue_of()
    for key in ("relist1", "relist2", "relist3"):
        queue.add(key, Priority.PATIENT)
    queue.add("user")
    queue.add("relist3")
    queue.add("user", Priority.PATIENT)
    assert await drained(queue) == ["user", "relist3", "relist1", "relist2"]


async def test_a_stream_of_urgent_keys_does_not_starve_a_patient_one():
    queue = queue_of()
    queue.add("patient", Priority.PATIENT)
    taken = list[str]()
    while "patient" not in taken:
        queue.add(f"urgent{len(taken)}")
        taken.append(await take(queue))
        queue.finish(taken[-1])
    assert len(taken) == 9


async def test_a_closed_queue_hands_out_nothing_and_sends_those_who_wait_home():
    queue = queue_of()
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(queue.take()) for _ in range(3)]
        await anyio.wait_all_tasks_blocked()
        queue.close()
        queue.add("a")
    assert [task.result() for task in waiting] == [None] * 3
    assert await queue.take() is None


async def test_a_waiting_taker_is_woken_and_a_cancelled_one_passes_its_wake_on():
    queue = queue_of()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(take(queue))
        await anyio.wait_all_tasks_blocked()
        second = group.create_task(take(queue))
        await anyio.wait_all_tasks_blocked()
        queue.add("a")
        first.cancel()
    assert first.cancelled()
    assert second.result() == "a"


def test_a_delayed_key_comes_at_its_time_and_an_earlier_one_before_it():
    async def scenario(world: World) -> None:
        queue = queue_of(world.clock)
        seen = list[tuple[str, float]]()
        async with anyio.create_task_group() as group:
            group.start_soon(queue.run)
            for key, seconds in (("late", 50), ("soon", 5), ("middle", 20)):
                queue.add(key)
                await queue.take()
                queue.finish(key, Duration.of(seconds=seconds))
            for _ in range(3):
                seen.append((await take(queue), world.clock.monotonic()))
                queue.finish(seen[-1][0])
            group.cancel_scope.cancel()
        assert seen == [("soon", 5.0), ("middle", 20.0), ("late", 50.0)]

    simulate(scenario, 1).check()


def test_the_last_word_on_when_to_wake_stands():
    async def scenario(world: World) -> None:
        queue = queue_of(world.clock)
        async with anyio.create_task_group() as group:
            group.start_soon(queue.run)
            queue.add("a")
            await queue.take()
            queue.finish("a", SECOND)
            queue.add("a")
            await queue.take()
            queue.finish("a", SECOND * 10)
            await queue.take()
            assert world.clock.monotonic() == 10.0
            queue.finish("a")
            with anyio.move_on_after(3600) as idle:
                await queue.take()
            assert idle.cancelled_caught
            group.cancel_scope.cancel()

    simulate(scenario, 1).check()


def test_failures_wait_longer_and_longer_an_urgent_add_ends_the_wait_and_success_forgets_them():
    async def scenario(world: World) -> None:
        backoff = Backoff(first=SECOND, most=SECOND * 60)
        queue = queue_of(world.clock, backoff)
        async with anyio.create_task_group() as group:
            group.start_soon(queue.run)
            queue.add("a")
            for failures in range(1, 10, 2):
                await queue.take()
                queue.add("a", Priority.PATIENT)
                wait = queue.fail("a")
                assert wait <= backoff.ceiling(failures)
                assert len(queue) == 0
                began = world.clock.monotonic()
                await queue.take()
                assert world.clock.monotonic() - began == pytest.approx(wait.seconds)
                queue.fail("a", after=SECOND * 3600)
                queue.add("a", Priority.PATIENT)
                assert len(queue) == 0
                queue.add("a")
            await queue.take()
            assert queue.failing == 1
            queue.finish("a")
            assert queue.failing == 0
            group.cancel_scope.cancel()

    simulate(scenario, 1).check()


async def test_a_failed_key_that_was_changed_meanwhile_does_not_wait_for_its_long_record_of_failures():
    backoff = Backoff(first=Duration.of(ms=10), most=SECOND * 300)
    queue = queue_of(backoff=backoff)
    for _ in range(40):
        queue.add("a")
        await queue.take()
        queue.add("a")
        assert queue.fail("a") <= backoff.first
    for _ in range(40):
        queue.add("a")
        await queue.take()
        assert queue.fail("a", at_most=SECOND) <= SECOND


async def test_a_server_that_names_the_wait_is_asked_again_then_however_often_it_refused():
    queue = queue_of(backoff=Backoff(first=Duration.of(ms=10), most=SECOND * 300))
    for _ in range(40):
        queue.add("a")
        await queue.take()
        assert SECOND <= queue.fail("a", after=SECOND) <= SECOND * 1.1


async def test_delays_that_are_replaced_again_and_again_do_not_pile_up():
    queue = queue_of()
    for _ in range(10_000):
        queue.add("a")
        await queue.take()
        queue.finish("a", SECOND)
    assert len(queue._delays._heap) <= 130


class QueueLaws(RuleBasedStateMachine):
    """Whatever is added is handed out, one hand at a time, until nothing is left."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.queue = queue_of(VirtualClock(lambda: self.now))
        self.owed = set[str]()
        self.hands = set[str]()

    @rule(key=st.sampled_from("abcde"), lane=st.sampled_from(Priority))
    def add(self, key: str, lane: Priority) -> None:
        self.queue.add(key, lane)
        self.owed.add(key)

    @precondition(lambda self: len(self.queue) > 0)
    @rule()
    def take(self) -> None:
        taking = self.queue.take()
        with pytest.raises(StopIteration) as stopped:
            taking.send(None)
        key = stopped.value.value.key
        assert key not in self.hands
        self.hands.add(key)
        self.owed.discard(key)

    @precondition(lambda self: self.hands)
    @rule(data=st.data(), ending=st.sampled_from(["finish", "wake", "fail"]))
    def give_back(self, data: st.DataObject, ending: str) -> None:
        key = data.draw(st.sampled_from(sorted(self.hands)))
        self.hands.remove(key)
        if ending == "fail":
            self.queue.fail(key)
            self.owed.add(key)
        else:
            self.queue.finish(key, SECOND if ending == "wake" else None)
            if ending == "wake":
                self.owed.add(key)

    @invariant()
    def nothing_is_lost(self) -> None:
        held = {*self.queue._urgent, *self.queue._patient, *self.queue._delays._due}
        again = {key for key, lane in self.queue._active.items() if lane}
        assert self.owed == held | again


QueueLaws.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestQueueLaws = QueueLaws.TestCase
