"""The services as agents and operators meet them: who may say what, and what comes of it."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neorion.keel.base import Conflict, Denied, Error, Invalid, NotFound
from neorion.keel.clock import SystemClock
from neorion.keel.http.client import Request, fetch
from neorion.navarch.model import Health, NodeId, NodeState, RepairId, RepairStep
from neorion.navarch.model.gen import navarch_pb as pb
from neorion.navarch.model.gen.navarch_client import FleetServiceClient
from neorion.navarch.model.spec import Scaling
from neorion.navarch.serve.authentication import NodeTokenAuthenticator, SharedTokens
from neorion.navarch.testing import spec
from tests.navarch.plane import JOIN, OPERATOR, Running, running

pytestmark = pytest.mark.anyio

XID_79 = pb.ReportRequest(boot="b", first=1, events=[pb.HealthEvent(kind="xid", xid=79, gpu=0)])


async def test_an_agent_registers_beats_and_reports_with_the_token_of_its_node():
    async with running(spec(1)) as it:
        (node,) = await it.serving(1)
        answer = await it.register(node)
        assert answer.node == node.id
        assert answer.expected_gpus == 8
        agent = it.agent(answer.token)
        await agent.heartbeat(pb.HeartbeatRequest(gpus=[pb.Gpu(utilisation_percent=40)]))
        await agent.report(XID_79)
        assert it.plane.fleet.context.state.nodes[node.id].health is Health.UNHEALTHY


async def test_a_nodes_token_cannot_speak_for_another_node():
    async with running(spec(2)) as it:
        mine, other = await it.serving(2)
        token = (await it.register(mine)).token
        with pytest.raises(Denied) as refused:
            await it.register(other, token)
        assert refused.value.code == "navarch.other_node"
        await it.agent(token).report(XID_79)
        assert it.plane.fleet.context.state.nodes[other.id].ailment is None


async def test_an_agent_that_goes_by_its_kubernetes_node_is_known_by_the_machine_that_the_cluster_names():
    async with running(spec(1)) as it:
        await it.turn()
        (node,) = it.nodes()
        said, context = pb.RegisterRequest(node_id="ip-10-0-0-1"), it.plane.fleet.context
        with pytest.raises(Denied):
            await it.agent(JOIN).register(said)

        def cluster(name: str) -> set[str]:
            return {name, str(node.machine)} if name == "ip-10-0-0-1" else set()

        context.backends = replace(context.backends, aliases=cluster)
        assert (await it.agent(JOIN).register(said)).node == node.id
        found = await it.operator.get_node(pb.GetNodeRequest(node="ip-10-0-0-1"))
        assert (found.id, found.kube_name) == (node.id, "ip-10-0-0-1")
        with pytest.raises(Denied):
            await it.agent(JOIN).register(pb.RegisterRequest(node_id="ip-10-0-0-2"))


async def test_a_nodes_token_brings_no_machine_into_the_fleet():
    async with running(spec(1, adopt=True)) as it:
        (mine,) = await it.serving(1)
        ghost = pb.RegisterRequest(node_id="a-ghost", pool="training")
        with pytest.raises(Denied) as refused:
            await it.agent((await it.register(mine)).token).register(ghost)
        assert refused.value.code == "navarch.other_node"
        assert [node.id for node in it.nodes()] == [mine.id]
        await it.agent(JOIN).register(ghost)
        assert len(it.nodes()) == 2


@pytest.mark.parametrize("token", [OPERATOR, JOIN])
async def test_no_other_token_speaks_for_a_node_at_all(token: str):
    async with running(spec(1)) as it:
        await it.serving(1)
        for call in (it.agent(token).heartbeat(pb.HeartbeatRequest()), it.agent(token).report(XID_79)):
            with pytest.raises(Denied):
                await call


async def test_a_forged_token_is_nobodys():
    keys = NodeTokenAuthenticator("secret", SystemClock(), SharedTokens(OPERATOR))
    token = keys.token_of(NodeId("node-a"))
    assert await keys.authenticate(token) is not None
    last = "0" if token[-1] != "0" else "1"
    for forged in (token[:-1] + last, token.replace("node-a", "node-b"), token.upper(), "nv1..", "nv1"):
        assert await keys.authenticate(forged) is None
    assert (
        await NodeTokenAuthenticator("another", SystemClock(), SharedTokens(OPERATOR)).authenticate(token)
        is None
    )


async def test_nodes_and_joiners_may_not_steer_the_fleet():
    async with running(spec(1)) as it:
        (node,) = await it.serving(1)
        for token in (JOIN, (await it.register(node)).token):
            with pytest.raises(Denied):
                await it.dial(token).client(FleetServiceClient).list_nodes(pb.ListNodesRequest())


async def test_a_stranger_may_not_join():
    async with running(spec(1)) as it:
        with pytest.raises(Denied) as refused:
            await it.agent(JOIN).register(pb.RegisterRequest(node_id="a-stranger", pool="training"))
        assert refused.value.code == "navarch.stranger"


@pytest.mark.parametrize("fit", [True, False, None])
async def test_a_pool_that_adopts_watches_machines_of_others_and_never_gives_them_back_by_itself(
    *, fit: bool | None
):
    async with running(spec(0, adopt=True, scaling=Scaling(0, 5))) as it:
        answer = await it.agent(JOIN).register(pb.RegisterRequest(node_id="theirs", pool="training"))
        agent = it.agent(answer.token)
        await it.turn()
        if fit is not None:
            await agent.heartbeat(pb.HeartbeatRequest(tested=fit))
            await it.turn()
        await agent.report(XID_79)
        await it.turn()
        (hold,) = (await it.operator.get_pool(pb.GetPoolRequest(pool="training"))).holds
        assert hold.code == "approval"
        assert len(it.nodes()) == 1


async def test_a_batch_that_is_sent_twice_counts_once():
    async with running(spec(1)) as it:
        (node,) = await it.serving(1)
        agent = it.agent((await it.register(node)).token)
        once = pb.ReportRequest(boot="b", first=1, events=[pb.HealthEvent(kind="xid", xid=74, gpu=0)])
        await agent.report(once)
        await agent.report(once)
        assert len(it.plane.fleet.context.state.events[node.id]) == 1


async def test_registering_again_does_not_undo_a_cordon():
    async with running(spec(1)) as it:
        (node,) = await it.serving(1)
        await it.operator.cordon_node(pb.NodeOrder(node=node.id, why="look at the fans"))
        await it.register(node)
        await it.turn()
        assert it.plane.fleet.context.state.nodes[node.id].state is NodeState.CORDONED


@pytest.mark.parametrize(
    "event",
    [
        pb.HealthEvent(kind="xidd", xid=79),
        pb.HealthEvent(kind="silence"),
        pb.HealthEvent(kind="xid", xid=-1),
        pb.HealthEvent(kind="xid", gpu=1_000),
        pb.HealthEvent(kind="thermal", metrics={"margin": float("nan")}),
        pb.HealthEvent(kind="thermal", metrics={str(n): 1.0 for n in range(100)}),
        pb.HealthEvent(kind="xid", message="x" * 2_000),
    ],
)
async def test_an_event_that_makes_no_sense_is_refused_whole(event: pb.HealthEvent):
    async with running(spec(1)) as it:
        (node,) = await it.serving(1)
        agent = it.agent((await it.register(node)).token)
        good = pb.HealthEvent(kind="xid", xid=79, gpu=0)
        with pytest.raises(Invalid):
            await agent.report(pb.ReportRequest(boot="b", first=1, events=[good, event]))
        assert node.id not in it.plane.fleet.context.state.events


async def test_operators_cordon_drain_uncordon():
    async with running(spec(2)) as it:
        node, _ = await it.serving(2)
        await it.operator.drain_node(pb.NodeOrder(node=node.id, why="firmware"))
        await it.turn()
        drained = await it.operator.get_node(pb.GetNodeRequest(node=node.machine))
        assert (drained.state, drained.held, drained.why) == ("drained", True, "there is no scheduler")
        await it.operator.uncordon_node(pb.NodeOrder(node=node.id))
        await it.turn()
        assert it.plane.fleet.context.state.nodes[node.id].state is NodeState.ACTIVE


async def test_an_operator_replaces_a_healthy_node_in_the_safe_order():
    async with running(spec(1)) as it:
        (node,) = await it.serving(1)
        repair = await it.operator.replace_node(pb.NodeOrder(node=node.id, why="old firmware"))
        await it.turn()
        assert it.plane.fleet.context.state.repairs[RepairId(repair.id)].step is RepairStep.BUYING
        await it.serving(1)
        await it.turn()
        assert it.plane.fleet.context.state.repairs[RepairId(repair.id)].step is RepairStep.DONE
        assert node.id not in it.plane.fleet.context.state.nodes
        story = await it.operator.history(pb.HistoryRequest(subject=node.id))
        assert story.lines[-1].event in ("node.terminated", "repair.done")


async def test_a_veto_stops_a_repair_and_leaves_the_node_alone():
    async with running(spec(1)) as it:
        (node,) = await it.serving(1)
        await it.operator.replace_node(pb.NodeOrder(node=node.id))
        await it.turn()
        await it.operator.veto_repair(pb.NodeOrder(node=node.id, why="a demo runs on it"))
        await it.turn()
        kept = it.plane.fleet.context.state.nodes[node.id]
        assert (kept.state, kept.held) == (NodeState.CORDONED, True)
        assert it.plane.fleet.context.state.open_repairs == {}


async def test_a_pool_is_scaled_paused_and_resumed():
    async with running(spec(1, scaling=Scaling(1, 5))) as it:
        await it.serving(1)
        await it.operator.pause_pool(pb.PausePoolRequest(pool="training", why="audit"))
        pool = await it.operator.scale_pool(pb.ScalePoolRequest(pool="training", nodes=3))
        await it.turn()
        assert (pool.wanted, len(it.nodes())) == (3, 1)
        await it.operator.resume_pool(pb.ResumePoolRequest(pool="training"))
        await it.turn()
        assert len(it.nodes()) == 3
        with pytest.raises(Invalid) as refused:
            await it.operator.scale_pool(pb.ScalePoolRequest(pool="training", nodes=6))
        assert "between 1 and 5" in refused.value.sentence


async def test_what_does_not_exist_is_told_with_a_suggestion():
    async with running(spec(1)) as it:
        with pytest.raises(NotFound) as pool:
            await it.operator.get_pool(pb.GetPoolRequest(pool="trainin"))
        assert "training" in pool.value.hint
        with pytest.raises(NotFound):
            await it.operator.explain(pb.ExplainRequest(subject="nothing"))
        (node,) = await it.serving(1)
        with pytest.raises(Conflict):
            await it.operator.uncordon_node(pb.NodeOrder(node=node.id))


async def test_explain_and_plan_say_the_same_as_is_done():
    async with running(spec(1)) as it:
        (node,) = await it.serving(1)
        agent = it.agent((await it.register(node)).token)
        await agent.report(XID_79)
        told = (await it.operator.explain(pb.ExplainRequest(subject=node.id))).sentences
        assert any("XID 79 (GPU has fallen off the bus)" in sentence for sentence in told)
        assert (await it.operator.explain(pb.ExplainRequest(subject="training"))).sentences
        await it.turn()
        assert (await it.operator.doctor(pb.DoctorRequest())).findings == []


async def test_the_six_metrics_have_their_names_and_pools():
    async with running(spec(1)) as it:
        (node,) = await it.serving(1)
        agent = it.agent((await it.register(node)).token)
        await agent.heartbeat(
            pb.HeartbeatRequest(gpus=[pb.Gpu(temperature_celsius=61, utilisation_percent=40)])
        )
        await agent.report(XID_79)
        text = await _get(it, "/metrics")
        for line in (
            'navarch_nodes_total{pool="training"} 1.0',
            'navarch_nodes_healthy{pool="training"} 0.0',
            'navarch_nodes_unhealthy{pool="training"} 1.0',
            'navarch_xid_errors_total{pool="training",xid="79"} 1.0',
            f'navarch_node_gpu_temperature_celsius{{gpu="0",node="{node.id}",pool="training"}} 61.0',
            f'navarch_node_gpu_utilization_percent{{gpu="0",node="{node.id}",pool="training"}} 40.0',
        ):
            assert line in text
        assert await _get(it, "/healthz") == "ok\n"
        assert await _get(it, "/readyz") == "ok\n"


async def test_machines_that_joined_are_in_the_metrics_that_alerts_divide_by():
    async with running(spec(0, adopt=True, scaling=Scaling(0, 5))) as it:
        answer = await it.agent(JOIN).register(pb.RegisterRequest(node_id="theirs", pool="training"))
        await it.agent(answer.token).report(XID_79)
        text = await _get(it, "/metrics")
        assert 'navarch_nodes_total{pool="training"} 1.0' in text
        assert 'navarch_nodes_unhealthy{pool="training"} 1.0' in text


async def _get(it: Running, path: str) -> str:
    _, body = await fetch(it.dial(None)._transports[0], Request("GET", path))
    return body.decode()


TEXT = st.text(max_size=50)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=TEXT,
    machine=TEXT,
    kind=TEXT,
    code=st.integers(-(2**31), 2**31 - 1),
    at=st.integers(-(2**63), 2**63 - 1),
    metrics=st.dictionaries(TEXT, st.floats(), max_size=40),
)
async def test_whatever_an_agent_says_is_taken_or_refused_with_a_type(
    name: str, machine: str, kind: str, code: int, at: int, metrics: dict[str, float]
):
    async with running(spec(1)) as it:
        (node,) = await it.serving(1)
        token = (await it.register(node)).token
        event = pb.HealthEvent(kind=kind, xid=code, at_ms=at, gpu=code, metrics=metrics)
        calls = [
            it.agent(JOIN).register(pb.RegisterRequest(node_id=name, machine_id=machine, pool=name)),
            it.agent(token).report(pb.ReportRequest(boot=name, first=at, events=[event])),
        ]
        refusals: list[str] = []
        for call in calls:
            try:
                await call
            except Error as error:
                refusals.append(error.code)
        assert "rpc.internal" not in refusals
