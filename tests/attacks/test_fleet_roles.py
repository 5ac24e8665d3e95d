"""Callers of a fleet who want more than their role, or more often than they should."""

import logging
from collections.abc import Awaitable
from typing import Any

import pytest

from neorion.keel.base import Error, Invalid, Retry
from neorion.keel.clock import SystemClock
from neorion.navarch.app.control_plane import READS
from neorion.navarch.model.gen import navarch_pb as pb
from neorion.navarch.model.gen.navarch_client import AgentServiceClient, FleetServiceClient
from neorion.navarch.serve.agents import EVENTS_AT_ONCE
from neorion.navarch.serve.authentication import NodeTokenAuthenticator, SharedTokens
from neorion.navarch.testing import spec
from tests.navarch.plane import OPERATOR, VIEWER, Running, running

pytestmark = pytest.mark.anyio

FLEET = pb.desc().services[1]
AGENTS = pb.desc().services[0]


def request(method: Any, node: str) -> Any:
    """A request that an operator could make."""
    values: dict[str, Any] = {"pool": "training", "node": node, "subject": node, "nodes": 1}
    kind = getattr(pb, method.input.name)
    return kind(**{field.name: values[field.name] for field in method.input.fields if field.name in values})


@pytest.mark.attack(26)
async def test_a_viewer_reads_everything_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with running(spec(1)) as it:
        (node,) = await it.serving(1)
        before = await it.operator.get_node(pb.GetNodeRequest(node=node.id))
        noted = it.plane.fleet.context.journal.version
        viewer = it.dial(VIEWER)
        refused: set[str] = set()
        caplog.set_level(logging.WARNING)
        for client, service in ((FleetServiceClient, FLEET), (AgentServiceClient, AGENTS)):
            for method in service.methods:
                call = getattr(viewer.client(client), _snake(method.name))
                if await _refusal(call(request(method, node.id))) == "rpc.role":
                    refused.add(method.name)
        assert refused == {one.name for one in (*FLEET.methods, *AGENTS.methods)} - READS
        assert {"ScalePool", "ReplaceNode", "DrainNode", "ReleasePool", "Register"} <= refused
        assert it.plane.fleet.context.journal.version == noted
        assert await it.operator.get_node(pb.GetNodeRequest(node=node.id)) == before
        told = [one for one in caplog.records if one.getMessage() == "call refused"]
        assert len(told) == len(refused)


async def test_an_operator_makes_the_same_calls() -> None:
    """The control: what a viewer is refused is refused for the role alone."""
    async with running(spec(1)) as it:
        (node,) = await it.serving(1)
        for method in FLEET.methods:
            call = getattr(it.operator, _snake(method.name))
            assert await _refusal(call(request(method, node.id))) != "rpc.role", method.name


def test_two_roles_never_have_one_token() -> None:
    with pytest.raises(Invalid) as refused:
        NodeTokenAuthenticator("secret", SystemClock(), SharedTokens(OPERATOR, viewer=OPERATOR))
    assert refused.value.code == "navarch.same_token"


async def _report(it: Running, token: str, first: int, events: int) -> None:
    seen = [pb.HealthEvent(kind="xid", xid=13, gpu=0)] * events
    await it.agent(token).report(pb.ReportRequest(boot="b", first=first, events=seen))


@pytest.mark.attack("event-flood")
async def test_a_node_that_reports_as_fast_as_it_can_is_slowed_down_alone() -> None:
    async with running(spec(2)) as it:
        one, other = await it.serving(2)
        token, others = (await it.register(one)).token, (await it.register(other)).token
        for batch in range(EVENTS_AT_ONCE // 500):
            await _report(it, token, 1 + 500 * batch, 500)
        with pytest.raises(Retry) as refused:
            await _report(it, token, 1 + EVENTS_AT_ONCE, 500)
        assert refused.value.code == "navarch.event_rate"
        assert refused.value.after is not None
        # Its heartbeats and the reports of others are taken as before.
        await it.agent(token).heartbeat(pb.HeartbeatRequest())
        await _report(it, others, 1, 500)


async def _refusal(call: Awaitable[object]) -> str:
    try:
        await call
    except Error as error:
        return error.code
    return ""


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
