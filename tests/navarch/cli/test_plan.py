"""What `navarch plan` shows."""

import pytest

from neorion.navarch.cli.tables import steps_in
from neorion.navarch.model.gen import navarch_pb as pb
from neorion.navarch.model.spec import HealthRules
from neorion.navarch.testing import spec
from tests.navarch.plane import running

pytestmark = pytest.mark.anyio


async def test_a_node_that_waits_stands_in_its_pools_line_and_is_named_there():
    async with running(spec(1, health=HealthRules(auto_replace=False))) as it:
        (node,) = await it.serving(1)
        sick = pb.ReportRequest(boot="b", first=1, events=[pb.HealthEvent(kind="xid", xid=79, gpu=0)])
        await it.agent((await it.register(node)).token).report(sick)
        await it.turn()
        (waits,) = steps_in(await it.operator.plan(pb.PlanRequest()))
        assert (waits.pool, waits.action) == ("training", "wait: auto_replace_off")
        assert waits.sentence.startswith(f"{node.id}: The pool does not replace by itself")
