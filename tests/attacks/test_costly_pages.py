"""Pages and names that anyone may ask for cost no time for each job."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from neorion.iris.app import endpoints
from neorion.iris.app.endpoints import routes
from neorion.iris.controllers import admission
from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.base import Duration, NotFound, nearest
from neorion.keel.rpc import Principal, RouteRequest
from tests.iris.serve.office import Office, asking, office

pytestmark = [pytest.mark.anyio, pytest.mark.attack("costly-pages")]
JOBS, SCRAPES = 300, 50


async def submit_many(there: Office) -> None:
    await there.join("by-hand")
    for number in range(JOBS):
        await there.jobs("ada").submit(asking(f"/ada/job-{number}", cpu_milli=4000))


@pytest.mark.parametrize("kept", [True, False])
async def test_scrapes_do_not_ask_for_every_job_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, kept: bool
) -> None:
    if not kept:
        monkeypatch.setattr(endpoints, "GAUGES_FOR", Duration(0))
    async with office(tmp_path) as there:
        await submit_many(there)
        looks: list[int] = []
        look = there.parts.context.metrics.refresh

        def counted(cluster: object, reasons: Iterable[object]) -> None:
            del cluster
            looks.append(len(list(reasons)))

        monkeypatch.setattr(there.parts.context.metrics, "refresh", counted)
        page = next(one for one in routes(there.parts.context, there.metrics) if one.path == "/metrics")
        for _ in range(SCRAPES):
            await page.handler(RouteRequest("GET", "/metrics", "", {}, b"", Principal("")))
        # On a machine that is busy the scrapes may take more than a second.
        assert (sum(looks) < JOBS * SCRAPES / 2) is kept
        monkeypatch.setattr(there.parts.context.metrics, "refresh", look)


async def test_an_unknown_name_is_compared_with_few_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[int] = []

    def counted(word: str, known: Iterable[str]) -> str | None:
        known = list(known)
        compared.append(len(known))
        return nearest(word, known)

    monkeypatch.setattr(admission, "nearest", counted)
    async with office(tmp_path) as there:
        await submit_many(there)
        with pytest.raises(NotFound) as found:
            await there.jobs("ada").get(pb.GetRequest(job="/ada/jop-299"))
        assert "/ada/job-2" in found.value.hint or "job-2" in found.value.hint
    assert 0 < max(compared) <= 200
