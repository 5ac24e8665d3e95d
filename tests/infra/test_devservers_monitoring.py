"""Alerts that can be silent and can fire, and a dashboard that asks for nothing that is not there."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from neorion.devservers.app.metrics import FleetMetrics
from neorion.devservers.model import Cost, DevServerStatus
from neorion.devservers.testing import a_server
from neorion.devservers.testing.builders import CREATED
from neorion.drydock.binaries import BinaryCache
from neorion.keel.kube.control.metrics import ControlMetrics
from neorion.keel.telemetry.metrics import Metrics
from tests.infra.recorded import Series, wrong

FOLDER = Path(__file__).parents[2] / "infra/monitoring/devservers"
GROUPS: list[dict[str, Any]] = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["spec"]["groups"]
RULES: list[dict[str, Any]] = [rule for group in GROUPS for rule in group["rules"]]
PANELS: list[dict[str, Any]] = json.loads((FOLDER / "dashboard.json").read_text())["panels"]
SHOWN = [target["expr"] for panel in PANELS for target in panel["targets"]]
JOB = 'job="devservers-operator"'
# Both replicas, all the time: who does not ask about them shall not hear of them.
UP = {f'up{{{JOB},instance="a"}}': "1x200", f'up{{{JOB},instance="b"}}': "1x200"}


# The alert, what is measured minute by minute, a minute at which nothing fires, and one at which it does.
PROOFS: list[tuple[str, dict[str, str], int, int]] = [
    ("DevServersOperatorGone", {f"up{{{JOB}}}": "1x10 0x190"}, 12, 20),
    ("DevServersOperatorAlone", {f'up{{{JOB},instance="a"}}': "1x200"}, 10, 20),
    (
        "DevServersWorkWaits",
        {
            **UP,
            f"neorion_controller_queue_depth{{{JOB}}}": "3x200",
            f"neorion_controller_reconciles_total{{{JOB}}}": "0+5x30 150x170",
        },
        40,
        50,
    ),
    (
        "DevServersWorkFails",
        {**UP, f'neorion_controller_failing_keys{{{JOB},controller="servers"}}': "0x10 2x190"},
        20,
        30,
    ),
    (
        "DevServersSlow",
        {
            **UP,
            f'neorion_controller_wait_seconds_bucket{{{JOB},le="5"}}': "0x200",
            f'neorion_controller_wait_seconds_bucket{{{JOB},le="10"}}': "0+6x200",
            f'neorion_controller_wait_seconds_bucket{{{JOB},le="+Inf"}}': "0+6x200",
        },
        5,
        20,
    ),
    ("DevServersWriteWithoutEnd", {**UP, f"neorion_kube_writes_total{{{JOB}}}": "0+200x200"}, 50, 80),
    ("DevServersFail", {**UP, f'neorion_devservers_servers{{{JOB},phase="Failed"}}': "1x200"}, 50, 70),
    (
        "DevServersNotSeenInto",
        {
            **UP,
            f'neorion_devservers_looks_total{{{JOB},result="failed"}}': "0+3x200",
            f'neorion_devservers_looks_total{{{JOB},result="seen"}}': "0+1x200",
        },
        50,
        80,
    ),
    (
        "DevServersWarningsLost",
        {
            **UP,
            f'neorion_devservers_warnings_total{{{JOB},way="webhook",result="failed"}}': "0x30 0+1x170",
        },
        30,
        50,
    ),
]


@pytest.fixture
def promtool() -> Path:
    return BinaryCache.of().path("promtool")


def rules_file(folder: Path, *expressions: str) -> Path:
    """The alerts, and further expressions beside them, as Prometheus reads them."""
    shown = [{"record": f"shown:{number}", "expr": text} for number, text in enumerate(expressions)]
    file = folder / "rules.json"
    # JSON is YAML.
    file.write_text(json.dumps({"groups": [*GROUPS, {"name": "shown", "rules": shown}]}))
    return file


def understood(promtool: Path, file: Path) -> bool:
    return (
        subprocess.run([promtool, "check", "rules", file], capture_output=True, check=False).returncode == 0
    )


@pytest.mark.needs("promtool")
def test_prometheus_understands_every_expression(promtool: Path, tmp_path: Path):
    assert understood(promtool, rules_file(tmp_path, *SHOWN))
    assert not understood(promtool, rules_file(tmp_path, *SHOWN, "sum(rate(up[5m])"))


@pytest.mark.needs("promtool")
@pytest.mark.parametrize(("alert", "series", "silent", "fires"), PROOFS)
def test_each_alert_can_be_silent_and_can_fire(
    promtool: Path, tmp_path: Path, alert: str, series: dict[str, str], silent: int, fires: int
):
    given = [Series(series=name, values=values) for name, values in series.items()]
    assert wrong(promtool, rules_file(tmp_path), tmp_path, given, {silent: {}, fires: {alert: 1}}) == ""


def test_no_alert_is_without_its_proof():
    assert [proof[0] for proof in PROOFS] == [rule["alert"] for rule in RULES]


def told() -> frozenset[str]:
    """What the operator tells, and what Prometheus adds of its own."""
    metrics = Metrics()
    control, fleet = ControlMetrics(metrics), FleetMetrics(metrics)
    control.worked("servers", "done", 0.0, 0.0)  # pyright: ignore[reportArgumentType] -- any ending will do
    control.queued("servers", 0, 0)
    control.wrote("apply", "services")
    fleet.probed(well=True)
    fleet.warned("webhook", well=True)
    fleet.oversee([a_server(status=DevServerStatus(cost=Cost(as_of=CREATED)))])
    fleet.refresh()
    names = re.findall(r"^([a-z_]+)(?:\{|\s)", metrics.exposition().decode(), re.MULTILINE)
    return frozenset(names) | {"up"}


@pytest.mark.parametrize("expression", [*SHOWN, *(rule["expr"] for rule in RULES)])
def test_every_figure_is_one_that_the_operator_tells_and_is_the_operators(expression: str):
    used = re.findall(r"\b([a-z]+(?:_[a-z]+)+|up)\{([^}]*)\}", expression)
    assert used
    assert {figure for figure, _ in used} <= told()
    assert all(labels.startswith(JOB) for _, labels in used)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_says_how_bad_it_is_and_what_to_do(rule: dict[str, Any]):
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert rule["annotations"].keys() == {"summary", "description"}


def test_panels_have_their_own_places():
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in PANELS]
    assert len(set(places)) == len(places) == len({panel["id"] for panel in PANELS})
