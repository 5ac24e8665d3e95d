"""The contract of a runtime. Another one joins by a rig: how it is opened, and how its commands are written.

A subclass of `RuntimeContract` stands beside a fixture `rig`.
"""

import pickle
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

import anyio
import cloudpickle  # pyright: ignore[reportMissingTypeStubs] -- it has none
import pytest

from neorion.iris.adapters.runtimes.process import result_file
from neorion.iris.model import AttemptId, Command, Digest, FunctionCall, Resources, TaskEnvironment
from neorion.iris.ports import AttemptSpec, ExitKind, Phase, Runtime
from neorion.iris.testing.runtime_waits import ended, logged, reaches
from neorion.keel.base import Conflict, Duration, NotFound
from neorion.keel.clock import SystemIds

IDS = SystemIds()
# As `LEASE` of the runtimes: no test takes so long.
LONG = Duration.of(minutes=10)
MOMENT = Duration.of(ms=50)


@dataclass(frozen=True)
class Words:
    """The same commands, as this runtime understands them."""

    exits: Callable[[int], tuple[str, ...]]
    dies_of: Callable[[int], tuple[str, ...]]
    says: Callable[[str], tuple[str, ...]]
    # Both say "ready" and stay; the first heeds SIGTERM.
    waits: tuple[str, ...]
    is_deaf: tuple[str, ...]


@dataclass(frozen=True)
class Rig:
    """`life` opens the runtime as a new life of the worker would: what runs goes on when it is left."""

    life: Callable[[], AbstractAsyncContextManager[Runtime]]
    words: Words
    root: Path

    def command(self, argv: tuple[str, ...]) -> AttemptSpec:
        return AttemptSpec(IDS.new(AttemptId), Command(argv), TaskEnvironment(), (), Resources())

    def call(self, function: Callable[..., object], *args: object, **kwargs: object) -> AttemptSpec:
        attempt = IDS.new(AttemptId)
        code, given = self.root / f"{attempt}.function", self.root / f"{attempt}.input"
        code.write_bytes(cloudpickle.dumps(function))
        given.write_bytes(pickle.dumps((args, kwargs)))
        return AttemptSpec(
            attempt,
            FunctionCall(Digest("any")),
            TaskEnvironment(),
            (),
            Resources(),
            function=code,
            input=given,
        )


def log_of(runtime: Runtime, order: AttemptSpec) -> str:
    return Path(runtime.log(order.attempt)).read_text(encoding="utf-8")


def there(path: PurePath) -> bool:
    return Path(path).exists()


IN_PROCESSES = Words(
    exits=lambda code: ("sh", "-c", f"exit {code}"),
    dies_of=lambda number: ("sh", "-c", f"kill -{number} $$"),
    says=lambda text: ("printf", "%s", text),
    waits=("sh", "-c", "echo ready; exec sleep 1000"),
    is_deaf=("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1000; done"),
)


async def _stop_when_known(runtime: Runtime, attempt: AttemptId) -> None:
    await reaches(runtime, attempt, Phase.BUILDING)
    await runtime.stop(attempt, Duration(0))


class RuntimeContract:
    @pytest.fixture
    async def runtime(self, rig: Rig) -> AsyncIterator[Runtime]:
        async with rig.life() as runtime:
            await runtime.renew(LONG)
            yield runtime

    async def test_a_call_ends_well_and_its_value_can_be_read(self, rig: Rig, runtime: Runtime):
        def add(a: int, b: int) -> dict[str, int]:
            return {"sum": a + b}

        order = rig.call(add, 40, b=2)
        await runtime.start(order)
        end = await ended(runtime, order.attempt)
        assert end.well
        assert end.result is not None
        assert result_file.read_head(end.result).status is result_file.ResultStatus.VALUE
        assert result_file.load(end.result) == {"sum": 42}

    async def test_an_error_comes_back_as_itself_with_its_traceback(self, rig: Rig, runtime: Runtime):
        def fails() -> None:
            raise KeyError("nowhere")

        order = rig.call(fails)
        await runtime.start(order)
        end = await ended(runtime, order.attempt)
        assert (end.kind, end.code) == (ExitKind.EXIT, 1)
        assert end.result is not None
        assert "in fails" in result_file.read_head(end.result).text
        with pytest.raises(KeyError, match="nowhere") as caught:
            result_file.load(end.result)
        assert "in fails" in caught.value.__notes__[0]

    @pytest.mark.parametrize("code", [0, 1, 3, 255])
    async def test_an_exit_code_is_told(self, rig: Rig, runtime: Runtime, code: int):
        order = rig.command(rig.words.exits(code))
        await runtime.start(order)
        end = await ended(runtime, order.attempt)
        assert (end.kind, end.code, end.well) == (ExitKind.EXIT, code, code == 0)

    async def test_a_signal_is_told_from_an_exit_code(self, rig: Rig, runtime: Runtime):
        order = rig.command(rig.words.dies_of(signal.SIGKILL))
        await runtime.start(order)
        end = await ended(runtime, order.attempt)
        assert (end.kind, end.code) == (ExitKind.SIGNAL, signal.SIGKILL)

    async def test_a_program_that_is_not_there_was_never_started(self, rig: Rig, runtime: Runtime):
        order = rig.command(("no-such-program-anywhere",))
        await runtime.start(order)
        end = await ended(runtime, order.attempt)
        assert (end.kind, end.code) == (ExitKind.NOT_STARTED, 127)
        assert "no-such-program-anywhere" in end.message

    async def test_an_attempt_started_twice_runs_once(self, rig: Rig, runtime: Runtime):
        order = rig.command(rig.words.says("once"))
        await runtime.start(order)
        await runtime.start(order)
        await ended(runtime, order.attempt)
        await runtime.start(order)
        assert log_of(runtime, order) == "once"
        assert [seen.phase for seen in await runtime.seen()] == [Phase.ENDED]

    async def test_a_task_that_heeds_the_signal_ends_before_the_grace_is_over(
        self, rig: Rig, runtime: Runtime
    ):
        order = rig.command(rig.words.waits)
        await runtime.start(order)
        await logged(runtime, order.attempt, "ready")
        await runtime.stop(order.attempt, LONG)
        assert (await ended(runtime, order.attempt)).kind is ExitKind.STOPPED

    async def test_a_task_that_traps_the_signal_ends_after_the_grace(self, rig: Rig, runtime: Runtime):
        order = rig.command(rig.words.is_deaf)
        await runtime.start(order)
        await logged(runtime, order.attempt, "ready")
        with anyio.fail_after(60):
            await runtime.stop(order.attempt, MOMENT)
            assert (await ended(runtime, order.attempt)).kind is ExitKind.STOPPED

    async def test_stopping_what_has_ended_changes_nothing(self, rig: Rig, runtime: Runtime):
        order = rig.command(rig.words.exits(3))
        await runtime.start(order)
        end = await ended(runtime, order.attempt)
        await runtime.stop(order.attempt, MOMENT)
        assert [seen.end for seen in await runtime.seen()] == [end]

    async def test_an_attempt_stopped_at_once_never_ends_otherwise(self, rig: Rig, runtime: Runtime):
        order = rig.command(rig.words.waits)
        async with anyio.create_task_group() as group:
            group.start_soon(runtime.start, order)
            group.start_soon(_stop_when_known, runtime, order.attempt)
        assert (await ended(runtime, order.attempt)).kind is ExitKind.STOPPED

    async def test_a_run_limit_ends_a_task(self, rig: Rig, runtime: Runtime):
        order = replace(rig.command(rig.words.is_deaf), run_limit=Duration.of(ms=300))
        with anyio.fail_after(60):
            await runtime.start(order)
            assert (await ended(runtime, order.attempt)).kind is ExitKind.TIMED_OUT

    async def test_the_next_life_of_the_worker_finds_what_runs_and_what_has_ended(self, rig: Rig):
        over, on = rig.command(rig.words.exits(7)), rig.command(rig.words.waits)
        async with rig.life() as first:
            await first.renew(LONG)
            await first.start(over)
            await first.start(on)
            before = await ended(first, over.attempt)
            await logged(first, on.attempt, "ready")
        async with rig.life() as second:
            found = {seen.attempt: seen for seen in await second.seen()}
            assert found[over.attempt].end == before
            assert found[on.attempt].phase is Phase.RUNNING
            await second.start(on)
            await second.stop(on.attempt, LONG)
            assert (await ended(second, on.attempt)).kind is ExitKind.STOPPED
            assert log_of(second, on) == "ready\n"

    async def test_what_ends_while_no_worker_lives_is_known_to_the_next(self, rig: Rig):
        order = rig.call(lambda: "kept")
        async with rig.life() as first:
            await first.renew(LONG)
            await first.start(order)
        async with rig.life() as second:
            end = await ended(second, order.attempt)
            assert end.result is not None
            assert result_file.load(end.result) == "kept"

    async def test_when_the_lease_is_over_every_task_is_lost(self, rig: Rig, runtime: Runtime):
        orders = [rig.command(rig.words.waits), rig.command(rig.words.is_deaf)]
        for order in orders:
            await runtime.start(order)
            await logged(runtime, order.attempt, "ready")
        with anyio.fail_after(60):
            await runtime.renew(MOMENT)
            assert {(await ended(runtime, order.attempt)).kind for order in orders} == {ExitKind.LOST}

    async def test_without_a_lease_nothing_starts(self, rig: Rig):
        order = rig.command(rig.words.exits(0))
        async with rig.life() as runtime:
            with pytest.raises(Conflict) as caught:
                await runtime.start(order)
            assert caught.value.code == "runtime.no_lease"
            assert await runtime.seen() == []

    async def test_a_lease_renewed_in_time_ends_nothing(self, rig: Rig, runtime: Runtime):
        order = rig.command(rig.words.waits)
        await runtime.start(order)
        await runtime.renew(Duration.of(seconds=2))
        await runtime.renew(LONG)
        with anyio.move_on_after(2.5):
            await ended(runtime, order.attempt)
        assert (await reaches(runtime, order.attempt, Phase.RUNNING)).phase is Phase.RUNNING

    async def test_the_log_holds_what_was_said(self, rig: Rig, runtime: Runtime):
        order = rig.command(rig.words.says("föö\nbar"))
        await runtime.start(order)
        await ended(runtime, order.attempt)
        assert log_of(runtime, order) == "föö\nbar"

    async def test_stats_tell_what_each_attempt_uses_while_it_runs(self, rig: Rig, runtime: Runtime):
        assert await runtime.stats() == {}
        orders = [rig.command(rig.words.waits), rig.command(rig.words.waits)]
        for order in orders:
            await runtime.start(order)
            await logged(runtime, order.attempt, "ready")
        stats = await runtime.stats()
        assert stats.keys() == {order.attempt for order in orders}
        assert all(one.processes >= 1 and one.memory_bytes > 0 for one in stats.values())
        first, second = orders
        await runtime.stop(first.attempt, Duration(0))
        await ended(runtime, first.attempt)
        assert (await runtime.stats()).keys() == {second.attempt}

    async def test_forgetting_leaves_nothing(self, rig: Rig, runtime: Runtime):
        order = rig.call(lambda: 1)
        await runtime.start(order)
        end = await ended(runtime, order.attempt)
        await runtime.forget(order.attempt)
        await runtime.forget(order.attempt)
        assert await runtime.seen() == []
        assert end.result is not None
        assert not there(end.result)
        assert not there(runtime.log(order.attempt))

    async def test_what_runs_is_not_forgotten(self, rig: Rig, runtime: Runtime):
        order = rig.command(rig.words.waits)
        await runtime.start(order)
        with pytest.raises(Conflict, match="not ended"):
            await runtime.forget(order.attempt)
        assert [seen.attempt for seen in await runtime.seen()] == [order.attempt]

    async def test_an_attempt_nobody_started_is_not_found(self, runtime: Runtime):
        nobody = IDS.new(AttemptId)
        with pytest.raises(NotFound):
            await runtime.stop(nobody, MOMENT)
        assert await runtime.seen() == []

    async def test_changes_begin_with_everything_and_come_in_batches(self, rig: Rig, runtime: Runtime):
        first = rig.command(rig.words.exits(0))
        await runtime.start(first)
        await ended(runtime, first.attempt)
        others = [rig.command(rig.words.exits(0)) for _ in range(8)]
        waiting = {order.attempt for order in others}
        async with aclosing(runtime.changes()) as changes:
            assert [seen.attempt for seen in await anext(changes)] == [first.attempt]
            async with anyio.create_task_group() as group:
                for order in others:
                    group.start_soon(runtime.start, order)
            async for batch in changes:
                assert len({seen.attempt for seen in batch}) == len(batch)
                waiting -= {seen.attempt for seen in batch if seen.end is not None}
                if not waiting:
                    break
        assert waiting == set()

    async def test_a_late_reader_of_changes_hears_how_things_are(self, rig: Rig, runtime: Runtime):
        order = rig.command(rig.words.exits(0))
        await runtime.start(order)
        await ended(runtime, order.attempt)
        async with aclosing(runtime.changes()) as changes:
            (seen,) = await anext(changes)
        assert seen.phase is Phase.ENDED
