"""What happens is counted, and what there is, is told at the moment of the question."""

import re
from pathlib import Path

import pytest

from neorion.iris.model.gen import iris_pb as pb
from tests.iris.serve.office import Office, asking, office

pytestmark = pytest.mark.anyio


def told(there: Office) -> dict[str, float]:
    context = there.parts.context
    context.metrics.refresh(context.cluster, context.reasons.codes())
    lines = there.metrics.exposition().decode().splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name.removeprefix("neorion_iris_"): float(value) for name, _, value in pairs}


async def test_a_jobs_life_is_counted(tmp_path: Path):
    async with office(tmp_path) as there:
        waiting = asking("/ada/waits", replicas=3)
        assert waiting.spec is not None
        waiting.spec.band = "batch"
        await there.jobs("ada").submit(waiting)
        async for change in there.jobs("ada").watch(pb.WatchRequest(job="/ada/waits")):
            if change.job is not None and change.job.reason is not None:
                break
        found = told(there)
        assert found['queue_tasks{band="batch"}'] == 3
        assert found['queue_tasks{band="production"}'] == 0
        assert found['waiting_jobs{reason="no_workers"}'] == 1
        assert found["pass_seconds_count"] >= 1
        assert found["commit_seconds_count"] >= 1
        joined = await there.join("by-hand")
        task = await there.started("/ada/waits")
        worker = there.worker(joined.token)
        for seen in (
            pb.Seen(attempt=task.attempt, report_key=there.report_key(task.attempt), phase="running"),
            pb.Seen(
                attempt=task.attempt,
                report_key=there.report_key(task.attempt),
                phase="ended",
                kind="signal",
                code=9,
            ),
        ):
            await worker.report(pb.ReportRequest(worker=joined.worker, seen=[seen]))
        found = told(there)
        assert found['queue_tasks{band="batch"}'] == 0
        assert found["starts_total"] == found["start_seconds_count"] == 1
        assert found['ends_total{reason="signal"}'] == 1
        assert found['workers{state="ready"}'] == 1
        there.slice("slice-1")
        assert told(there)['slices{group="group",state="BOOTSTRAPPING"}'] == 1


@pytest.mark.parametrize(("kind", "starts"), [("exit", 1), ("not_started", 0), ("lost", 0)])
async def test_what_ended_before_it_was_told_to_run_has_run_if_only_that_ends_so(
    tmp_path: Path, kind: str, starts: int
):
    async with office(tmp_path) as there:
        joined = await there.join("by-hand")
        await there.jobs("ada").submit(asking("/ada/short"))
        task = await there.started("/ada/short")
        seen = pb.Seen(
            attempt=task.attempt, report_key=there.report_key(task.attempt), phase="ended", kind=kind, code=3
        )
        await there.worker(joined.token).report(pb.ReportRequest(worker=joined.worker, seen=[seen]))
        (first, *_) = (await there.jobs("ada").attempts(pb.AttemptsRequest(job="/ada/short"))).attempts
        assert first.started_ms == (first.ended_ms if starts else 0)
        assert told(there)["starts_total"] == starts


async def test_the_labels_are_few_whatever_users_do(tmp_path: Path):
    async with office(tmp_path) as there:
        there.slice("slice-1")
        before = len(told(there))
        for number in range(50):
            await there.jobs("ada").submit(asking(f"/ada/job-{number}"))
        assert len(told(there)) == before
        assert before < 150


async def test_the_guide_names_every_metric(tmp_path: Path):
    guide = (Path(__file__).parents[3] / "docs/guides/iris-operations.md").read_text()
    async with office(tmp_path) as there:
        names = set(
            re.findall(r"# TYPE (neorion_iris_\w+?)(?:_created)? ", there.metrics.exposition().decode())
        )
    assert {name for name in names if f"`{name.removesuffix('_total')}" not in guide} == set()
