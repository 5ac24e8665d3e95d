from msgspec.structs import replace

from neorion.devservers.app.metrics import FleetMetrics
from neorion.devservers.model import Cost, DevServerSpec, DevServerStatus, Phase
from neorion.devservers.model.kube_types import DevServerObject
from neorion.devservers.testing import a_server
from neorion.devservers.testing.builders import CREATED
from neorion.keel.telemetry.metrics import Metrics

COST = Cost(as_of=CREATED, per_hour="1.5", stopped_per_hour="0.1")


def server(user: str, phase: Phase | None, *, running: bool = True) -> DevServerObject:
    spec = DevServerSpec(flavor="cpu-small", owner="somebody else", running=running)
    made = a_server(spec, DevServerStatus(phase=phase, cost=replace(COST, running=running)))
    return replace(made, meta=replace(made.meta, namespace=f"dev-{user}"))


def shown(metrics: Metrics) -> set[str]:
    return {line for line in metrics.exposition().decode().splitlines() if not line.startswith("#")}


def test_servers_are_counted_by_phase_and_their_cost_by_user():
    metrics = Metrics()
    fleet = FleetMetrics(metrics)
    servers = [
        server("ann", Phase.RUNNING),
        server("ann", Phase.STOPPED, running=False),
        server("bob", Phase.RUNNING),
        server("eve", None),
    ]
    fleet.oversee(servers)
    fleet.refresh()
    assert {
        'neorion_devservers_servers{phase="Running"} 2.0',
        'neorion_devservers_servers{phase="Stopped"} 1.0',
        'neorion_devservers_servers{phase="Pending"} 1.0',
        'neorion_devservers_servers{phase="Failed"} 0.0',
        'neorion_devservers_cost_per_hour{currency="USD",namespace="dev-ann"} 1.6',
        'neorion_devservers_cost_per_hour{currency="USD",namespace="dev-bob"} 1.5',
    } <= shown(metrics)
    servers[:] = [replace(servers[0], status=replace(servers[0].status, phase=Phase.EXPIRED))]
    fleet.refresh()
    assert 'neorion_devservers_servers{phase="Running"} 0.0' in shown(metrics)
    assert not any("bob" in line for line in shown(metrics))


def test_looks_and_warnings_are_counted_by_their_result():
    metrics = Metrics()
    fleet = FleetMetrics(metrics)
    fleet.probed(well=True)
    fleet.probed(well=False)
    fleet.warned("webhook", well=False)
    assert {
        'neorion_devservers_looks_total{result="seen"} 1.0',
        'neorion_devservers_looks_total{result="failed"} 1.0',
        'neorion_devservers_warnings_total{result="failed",way="webhook"} 1.0',
    } <= shown(metrics)
