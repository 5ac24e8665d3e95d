"""Lists of jobs come page by page: each job once, the newest first."""

from pathlib import Path

import anyio
import pytest

from neorion.iris.model.gen import iris_pb as pb
from tests.iris.serve.office import asking, office

pytestmark = pytest.mark.anyio


async def test_jobs_of_one_millisecond_are_each_on_one_page(tmp_path: Path):
    names = {f"/ada/{number}" for number in range(60)}
    async with office(tmp_path) as there:
        jobs = there.jobs("ada")
        async with anyio.create_task_group() as group:
            for name in names:
                group.start_soon(jobs.submit, asking(name))
        found = list[str]()
        page = await jobs.list(pb.ListRequest(limit=1))
        while page.next:
            found += [job.name for job in page.jobs]
            page = await jobs.list(pb.ListRequest(limit=1, after=page.next))
        found += [job.name for job in page.jobs]
    assert sorted(found) == sorted(names)
