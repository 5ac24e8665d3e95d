"""Whatever agents say: it is taken or refused with a type, and never changes what is another's."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neorion.keel.base import Error, Retry
from neorion.keel.http.client import Request, fetch
from neorion.navarch.model import EventKind, NodeState
from neorion.navarch.model.gen import navarch_pb as pb
from neorion.navarch.testing import spec
from tests.navarch.plane import JOIN, Running, running

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(240)]

# What a stranger might know or guess, so that messages get past the first check.
NAMES = ["fake-000001", "fake-000002", "training", "default", "one", "reset_gpu", *EventKind]
TEXT = st.sampled_from(NAMES) | st.text(max_size=30) | st.just("x" * 2_000)
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "STRING": TEXT,
    "BOOL": st.booleans(),
    "INT32": st.integers(0, 100) | st.integers(-(2**31), 2**31 - 1),
    "INT64": st.integers(0, 100) | st.integers(-(2**63), 2**63 - 1),
    "DOUBLE": st.floats(),
}


def said(desc: Any) -> st.SearchStrategy[Any]:
    """Messages of this shape, with every field there or not."""
    fields = {field.local_name: _value(field.value) for field in desc.fields}
    return st.fixed_dictionaries({}, optional=fields).map(lambda found: getattr(pb, desc.name)(**found))


def _value(value: Any) -> st.SearchStrategy[Any]:
    if hasattr(value, "element"):
        return st.lists(_one(value.element), max_size=4)
    if hasattr(value, "key"):
        return st.dictionaries(_one(value.key), _one(value.value), max_size=4)
    return _one(getattr(value, "scalar", value))


def _one(kind: Any) -> st.SearchStrategy[Any]:
    return SCALARS[kind.name] if kind.name in SCALARS else said(kind)


CALLS = {
    "register": said(pb.RegisterRequest.desc()),
    "heartbeat": said(pb.HeartbeatRequest.desc()),
    "report": said(pb.ReportRequest.desc()),
}
CALL = st.sampled_from(sorted(CALLS)).flatmap(lambda name: st.tuples(st.just(name), CALLS[name]))


async def refusal(it: Running, token: str, call: tuple[str, Any]) -> str:
    """The code with which it was refused, or nothing."""
    name, message = call
    try:
        await getattr(it.agent(token), name)(message)
    except Error as error:
        return error.code
    return ""


@settings(max_examples=60, deadline=None)
@given(calls=st.lists(CALL, min_size=1, max_size=8))
async def test_nothing_that_a_node_says_is_a_defect_or_changes_another_node(
    calls: Sequence[tuple[str, Any]],
):
    async with running(spec(2)) as it:
        mine, other = await it.serving(2)
        token = (await it.register(mine)).token
        state = it.plane.fleet.context.state
        before = state.nodes[other.id], state.heartbeats[other.id], state.events.get(other.id)
        for call in calls:
            assert await refusal(it, token, call) != "rpc.internal", call
        assert (state.nodes[other.id], state.heartbeats[other.id], state.events.get(other.id)) == before


@settings(max_examples=60, deadline=None)
@given(calls=st.lists(CALLS["register"], min_size=1, max_size=4))
async def test_who_has_the_token_for_joining_becomes_no_node_that_lives(
    calls: Sequence[pb.RegisterRequest],
):
    async with running(spec(1)) as it:
        await it.turn()
        (node,) = it.nodes(NodeState.BOOTING)
        request = pb.RegisterRequest(node_id=node.machine, secret="its own")
        await it.agent(JOIN).register(request)
        for call in calls:
            code = await refusal(it, JOIN, ("register", call))
            assert code
            assert code != "rpc.internal"
        with pytest.raises(Retry):
            await it.agent(JOIN).register(pb.RegisterRequest(node_id=node.machine, secret="guessed"))


@settings(max_examples=80, deadline=None)
@given(
    method=st.sampled_from(["Register", "Heartbeat", "Report"]),
    kind=st.sampled_from(["application/proto", "application/json", "text/plain", ""]),
    body=st.binary(max_size=200) | st.sampled_from([b"{}", b'{"gpus": 3}', b'{"evnts": []}', b"\xff" * 40]),
)
async def test_bytes_that_are_no_message_are_refused_as_such(method: str, kind: str, body: bytes):
    async with running(spec(1)) as it:
        (node,) = await it.serving(1)
        headers = {"authorization": f"Bearer {(await it.register(node)).token}", "content-type": kind}
        path = f"/neorion.navarch.v1.AgentService/{method}"
        head, _ = await fetch(it.dial(None)._transports[0], Request("POST", path, [*headers.items()], body))
        assert head.status < 500
