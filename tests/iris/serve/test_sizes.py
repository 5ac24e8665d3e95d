"""Workers that come back as another size than they went."""

from pathlib import Path

import pytest

from neorion.iris.model.gen import iris_pb as pb
from tests.iris.serve.office import asking, joining, office

pytestmark = pytest.mark.anyio


async def test_a_worker_that_came_back_smaller_than_what_runs_there_has_nothing_free(tmp_path: Path):
    async with office(tmp_path) as there:
        joined = await there.join("by-hand")
        await there.jobs("ada").submit(asking("/ada/large", cpu_milli=3000))
        await there.started("/ada/large")
        smaller = joining("by-hand-1")
        assert smaller.total is not None
        smaller.total.cpu_milli = 2000
        await there.worker(joined.token).join(smaller)
        (shown,) = (await there.cluster("ada").workers(pb.WorkersRequest())).workers
        assert shown.id == joined.worker
        assert shown.free is not None
        assert (shown.free.cpu_milli, shown.free.memory_bytes, shown.tasks) == (0, 2**32, 1)
