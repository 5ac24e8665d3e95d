"""Alerts and the dashboard ask for figures that the operator has, in expressions that Prometheus understands."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from neorion.devservers.app.metrics import FleetMetrics
from neorion.devservers.model import Cost, DevServerStatus
from neorion.devservers.testing import a_server
from neorion.devservers.testing.build import CREATED
from neorion.keel.kube.control.metrics import ControlMetrics
from neorion.keel.telemetry.metrics import Metrics

FOLDER = Path(__file__).parent.parent.parent / "infra/monitoring/devservers"
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text())["spec"]["groups"]
    for rule in group["rules"]
]
PANELS: list[dict[str, Any]] = json.loads((FOLDER / "dashboard.json").read_text())["panels"]
EXPRESSIONS: dict[str, str] = {rule["alert"]: rule["expr"] for rule in RULES} | {
    f"{panel['title']} {target['refId']}": target["expr"] for panel in PANELS for target in panel["targets"]
}


def figures() -> frozenset[str]:
    """What the operator tells, and what Prometheus adds of its own."""
    metrics = Metrics()
    control = ControlMetrics(metrics)
    control.worked("servers", "done", 0.0, 0.0)  # pyright: ignore[reportArgumentType] -- any ending will do
    control.queued("servers", 0, 0)
    control.wrote("apply", "services")
    fleet = FleetMetrics(metrics)
    fleet.looked(well=True)
    fleet.warned("webhook", well=True)
    server = a_server(status=DevServerStatus(cost=Cost(as_of=CREATED)))
    fleet.oversee([server])
    fleet.refresh()
    told = re.findall(r"^([a-z_]+)(?:\{|\s)", metrics.exposition().decode(), re.MULTILINE)
    return frozenset(told) | {"up"}


def selected(expression: str) -> Iterator[tuple[str, str]]:
    """Names of figures in an expression, each with what is selected of it."""
    yield from re.findall(r"\b([a-z]+(?:_[a-z]+)+|up)\{([^}]*)\}", expression)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_prometheus_understands_the_expression(name: str):
    assert promql_parser.parse(EXPRESSIONS[name])


def test_the_parser_is_not_blind():
    with pytest.raises(ValueError, match="unclosed left parenthesis"):
        promql_parser.parse("sum(rate(up[5m])")


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_every_figure_is_one_that_the_operator_tells_and_is_the_operators(name: str):
    used = list(selected(EXPRESSIONS[name]))
    assert used
    assert {figure for figure, _ in used} <= figures()
    assert all(labels.startswith('job="devservers-operator"') for _, labels in used)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_says_how_bad_it_is_and_what_to_do(rule: dict[str, Any]):
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert rule["annotations"].keys() == {"summary", "description"}
    assert re.fullmatch(r"[0-9]+[mh]", rule["for"])


def test_no_two_panels_share_a_place():
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in PANELS]
    assert len(set(places)) == len(places) == len({panel["id"] for panel in PANELS})
