"""The alert rules over what a real control plane told, and a dashboard that asks for nothing that is not there."""

import json
import re
from pathlib import Path

import pytest

from neorion.drydock.binaries import BinaryCache
from neorion.keel.http.client import Request, fetch
from neorion.navarch.model import NodeState
from neorion.navarch.model.gen import navarch_pb as pb
from neorion.navarch.testing import spec
from tests.infra.recorded import Series, recorded, wrong
from tests.navarch.plane import Running, running

MONITORING = Path(__file__).parents[2] / "infra" / "monitoring" / "navarch"
ALERTS = MONITORING / "alerts.yaml"
DASHBOARD = MONITORING / "dashboard.json"

pytestmark = pytest.mark.anyio


@pytest.fixture
def promtool() -> Path:
    return BinaryCache.of().path("promtool")


async def told(it: Running) -> str:
    """What Prometheus would be given now."""
    _, body = await fetch(it.dial(None)._transports[0], Request("GET", "/metrics"))
    return body.decode()


async def strike(it: Running, count: int) -> None:
    """XID 79 on so many nodes, and nothing done about it yet."""
    event = pb.HealthEvent(kind="xid", xid=79, gpu=0)
    for node in it.nodes(NodeState.ACTIVE)[:count]:
        agent = it.agent((await it.register(node)).token)
        await agent.heartbeat(pb.HeartbeatRequest(tested=True))
        await agent.report(pb.ReportRequest(boot="b", first=1, events=[event]))


async def fleet(it: Running, size: int) -> None:
    for node in await it.serving(size):
        agent = it.agent((await it.register(node)).token)
        await agent.heartbeat(pb.HeartbeatRequest(tested=True))


@pytest.mark.needs("promtool")
async def test_one_sick_node_warns_after_five_minutes_and_is_forgotten_when_it_is_well(
    promtool: Path, tmp_path: Path
):
    async with running(spec(10)) as it:
        await fleet(it, 10)
        well = await told(it)
        await strike(it, 1)
        sick = await told(it)
    series = recorded((well, 10), (sick, 20), (well, 10))
    expected = {9: {}, 13: {}, 20: {"NavarchNodeUnhealthy": 1}, 35: {}}
    assert wrong(promtool, ALERTS, tmp_path, series, expected) == ""


@pytest.mark.needs("promtool")
async def test_a_pool_that_loses_a_quarter_is_critical(promtool: Path, tmp_path: Path):
    async with running(spec(4)) as it:
        await fleet(it, 4)
        await strike(it, 1)
        sick = await told(it)
    expected = {
        3: {},
        7: {"NavarchNodeUnhealthy": 1},
        15: {"NavarchNodeUnhealthy": 1, "NavarchPoolCapacityLow": 1},
    }
    assert wrong(promtool, ALERTS, tmp_path, recorded((sick, 20)), expected) == ""


@pytest.mark.needs("promtool")
async def test_a_rack_that_fails_alike_calls_a_person_at_once(promtool: Path, tmp_path: Path):
    async with running(spec(10)) as it:
        await fleet(it, 10)
        well = await told(it)
        await strike(it, 8)
        await it.plane.fleet.tick()
        held = await told(it)
    assert 'navarch_holds{code="common_cause"' in held
    series = recorded((well, 5), (held, 3))
    expected = {4: {}, 6: {"NavarchCommonCause": 1}}
    assert wrong(promtool, ALERTS, tmp_path, series, expected) == ""


@pytest.mark.needs("promtool")
async def test_one_replica_leads_and_its_absence_or_a_second_one_is_noticed(promtool: Path, tmp_path: Path):
    async with running(spec(1)) as it:
        await fleet(it, 1)
        text = await told(it)
    leader = "\n".join(line for line in text.splitlines() if "navarch_leader" in line) + "\n"
    assert "navarch_leader 1.0" in leader
    waiting = leader.replace("navarch_leader 1.0", "navarch_leader 0.0")
    pair = recorded((leader, 30), instance="a") + recorded((waiting, 10), (leader, 20), instance="b")
    assert wrong(promtool, ALERTS, tmp_path, pair, {9: {}, 15: {"NavarchTwoLeaders": 1}}) == ""
    alone = recorded((waiting, 20), instance="b")
    assert wrong(promtool, ALERTS, tmp_path, alone, {4: {}, 8: {"NavarchDown": 1}}) == ""


LEADS = Series(series="navarch_leader", values="1x120")


@pytest.mark.needs("promtool")
@pytest.mark.parametrize(
    ("alert", "series", "silent", "fires"),
    [
        ("NavarchDrainStuck", {'navarch_repairs{pool="a",step="draining"}': "1x120"}, 55, 65),
        ("NavarchWaitsForApproval", {'navarch_holds{pool="a",code="approval"}': "1x120"}, 25, 35),
        ("NavarchWaitsForApproval", {'navarch_holds{pool="a",code="attempts"}': "1x120"}, 25, 35),
        (
            "NavarchBudgetExhausted",
            {
                'navarch_holds{pool="a",code="budget"}': "4x120",
                'navarch_budget_used{pool="a",budget="budget 10%"}': "2x120",
                'navarch_budget_allowed{pool="a",budget="budget 10%"}': "2x120",
            },
            25,
            35,
        ),
        (
            "NavarchPoolTooSmall",
            {
                'navarch_nodes{pool="a",state="active"}': "3x120",
                'navarch_nodes{pool="a",state="booting"}': "1x120",
                'navarch_nodes_wanted{pool="a"}': "4x120",
            },
            25,
            35,
        ),
        (
            "NavarchPurchasesRefused",
            {'navarch_purchases_total{pool="a",outcome="refused"}': "0x30 1+1x60"},
            20,
            45,
        ),
        ("NavarchLoopFails", {'neorion_loop_failures_total{loop="navarch.sweep"}': "0x30 1+1x60"}, 20, 45),
    ],
)
def test_each_alert_can_be_silent_and_can_fire(
    promtool: Path, tmp_path: Path, alert: str, series: dict[str, str], silent: int, fires: int
):
    given = [LEADS, *(Series(series=name, values=values) for name, values in series.items())]
    assert wrong(promtool, ALERTS, tmp_path, given, {silent: {}, fires: {alert: 1}}) == ""


async def test_rules_and_dashboard_ask_only_for_what_is_told():
    async with running(spec(1)) as it:
        await fleet(it, 1)
        text = await told(it)
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    there = {
        f"{name}{suffix}"
        for name, kind in kinds.items()
        for suffix in (("_bucket", "_count", "_sum") if kind == "histogram" else ("",))
    }
    panels = json.loads(DASHBOARD.read_text())["panels"]
    asked = " ".join(target["expr"] for panel in panels for target in panel["targets"])
    asked += " ".join(re.findall(r"expr: (.*)", ALERTS.read_text()))
    names = set(re.findall(r"\b(?:navarch|neorion)_[a-z_]+", asked))
    assert len(names) > 15
    assert names <= there
    # What loops tell is on everybody's port; of navarch's own, nothing is told that nobody looks at.
    unseen = {name for name in kinds if name.startswith("navarch_")} - {
        name.removesuffix("_bucket") for name in names
    }
    assert {name for name in unseen if not name.endswith("_created")} == set()


def test_panels_have_their_own_places():
    panels = json.loads(DASHBOARD.read_text())["panels"]
    places = [(one["gridPos"]["x"], one["gridPos"]["y"]) for one in panels]
    assert len(set(places)) == len(places)
    assert len({one["id"] for one in panels}) == len(panels)
