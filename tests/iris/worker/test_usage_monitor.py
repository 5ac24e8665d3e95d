"""What becomes of a look at the attempts of a worker: whoever asks sees what they use, and of ended ones what they took."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import anyio
import pytest

from neorion.iris.model import AttemptId
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.gen.iris_client import JobServiceClient
from neorion.iris.ports import AttemptExit, AttemptSpec, AttemptUsage, ExitKind, Runtime
from neorion.iris.testing.memory_runtime import ScriptedOutcome
from neorion.iris.worker import usage_monitor
from neorion.iris.worker.usage_monitor import EVERY, UsageMonitor
from neorion.keel.base import Duration
from neorion.keel.clock import SystemIds
from tests.iris.manual_clock import ManualClock
from tests.iris.serve.office import asking, office, working

pytestmark = pytest.mark.anyio
ATTEMPT = SystemIds().new(AttemptId)


class Scripted:
    """A runtime of which only the use of one attempt is known, one look after the other."""

    def __init__(self, *looks: AttemptUsage | None) -> None:
        self._looks = list(looks)

    async def stats(self) -> Mapping[AttemptId, AttemptUsage]:
        look = self._looks.pop(0) if self._looks else None
        return {ATTEMPT: look} if look else {}


async def test_a_look_tells_the_rate_since_the_last_one_and_the_most_memory():
    clock = ManualClock()
    runtime = Scripted(AttemptUsage(1.0, 300, 2), AttemptUsage(11.0, 500, 3), AttemptUsage(11.0, 400, 1))
    here = UsageMonitor(cast("Runtime", runtime), clock)
    seen: list[pb.Look | None] = []
    async with anyio.create_task_group() as group:
        group.start_soon(here.run)
        for _ in range(5):
            await anyio.wait_all_tasks_blocked()
            clock.advance(EVERY)
            await anyio.wait_all_tasks_blocked()
            seen.append(here.take_unsent())
        group.cancel_scope.cancel()
    assert [look and dict(look.usage) for look in seen] == [
        {ATTEMPT: pb.Usage(memory_bytes=300, memory_peak_bytes=300, processes=2)},
        {ATTEMPT: pb.Usage(cpu_milli=2000, memory_bytes=500, memory_peak_bytes=500, processes=3)},
        {ATTEMPT: pb.Usage(memory_bytes=400, memory_peak_bytes=500, processes=1)},
        # That nothing runs any more is told once.
        {},
        None,
    ]
    end = AttemptExit(ExitKind.EXIT, cpu_seconds=11.5, memory_bytes=450)
    assert here.final_usage(ATTEMPT, end) == pb.Usage(cpu_ms=11_500, memory_peak_bytes=500)
    larger = replace(end, memory_bytes=600)
    assert here.final_usage(ATTEMPT, larger) == pb.Usage(cpu_ms=11_500, memory_peak_bytes=600)
    here.forget(ATTEMPT)
    assert here.final_usage(ATTEMPT, AttemptExit(ExitKind.LOST)) is None


async def test_everybody_sees_what_a_task_uses_while_it_runs_and_nobody_when_it_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(usage_monitor, "EVERY", Duration.of(ms=10))

    def fate(_: AttemptSpec) -> ScriptedOutcome:
        return ScriptedOutcome(run_s=3600)

    async with office(tmp_path) as there, working(there, tmp_path, fate):
        jobs, others = there.jobs("ada"), there.jobs("bob")
        job = (await jobs.submit(asking("/ada/busy"))).id
        # It comes with a heartbeat, each second.
        while (usage := await used(others, job)) is None or not usage.cpu_milli:
            pass
        assert (usage.memory_bytes, usage.memory_peak_bytes, usage.processes) == (2**20, 2**20, 1)
        (attempt,) = (await others.attempts(pb.AttemptsRequest(job=job))).attempts
        assert attempt.usage is not None
        assert attempt.usage.memory_bytes == 2**20
        await jobs.cancel(pb.CancelRequest(job=job))
        while await used(others, job) is not None:
            pass
        (attempt,) = (await others.attempts(pb.AttemptsRequest(job=job))).attempts
        assert attempt.usage == pb.Usage(memory_peak_bytes=2**20)


async def used(jobs: JobServiceClient, job: str) -> pb.Usage | None:
    (task,) = (await jobs.tasks(pb.TasksRequest(job=job))).tasks
    return task.usage
