"""`navarch simulate`: from a file to measures, twice the same, and a page that needs nothing else."""

import json
import re
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from neorion.keel.cli import run
from neorion.navarch.app.simulation.report import SimulationReport, Variant, summary
from neorion.navarch.cli import app

CONFIG = """
server: { heartbeat_interval: 5m }
providers: { fake: {} }
pools:
  - name: training
    provider: fake
    instance_type: gpu_8x_h100_sxm5
    region: us-1
    scaling: { min_nodes: 8, max_nodes: 8 }
"""
SCENARIO = """
name: one <fault>
config: config.yaml
against: spares.yaml
duration: 2h
seeds: 1
price: 10
troubles: { wear: 0, bugs: 0 }
events: [{ at: 30m, ill: faulty-gpu }, { at: 1h, ill: application, nodes: 8 }]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "spares.yaml").write_text(CONFIG + "    spares: 1\n")
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    return tmp_path / "scenario.yaml"


def measured(scenario: Path, name: str, *args: str):
    file = scenario.parent / name
    assert run(app, ["simulate", str(scenario), "--json", str(file), *args]) == 0
    return json.loads(file.read_text())


def test_one_fault_is_detected_at_once_and_repaired_sooner_with_a_spare(scenario: Path):
    plain, spares = [side["runs"][0] for side in measured(scenario, "report.json")["sides"]]
    for side in (plain, spares):
        assert side["broken"] == ""
        assert side["happened"] == {"application": 8, "faulty-gpu": 1}
        assert side["detection"]["count"] == 1
        assert side["cordon"]["most"] < 1
        assert side["repairs"]["replace"]["count"] == 1
    assert plain["purchases"] == 9
    assert spares["purchases"] == 10
    assert spares["repairs"]["replace"]["most"] < plain["repairs"]["replace"]["most"]
    assert spares["dollars"] > plain["dollars"] > 0
    assert plain["goodput"] <= plain["availability"] <= 1


def test_a_fault_whose_repair_gives_way_to_a_harder_one_was_detected_once(scenario: Path):
    worse = "events: [{ at: 30m, ill: memory, nodes: 8 }, { at: 31m, ill: faulty-gpu, nodes: 8 }]"
    scenario.write_text(re.sub("events: .*", worse, SCENARIO).replace("against: spares.yaml\n", ""))
    ((run,),) = [side["runs"] for side in measured(scenario, "report.json")["sides"]]
    assert run["detection"]["count"] == 8
    assert run["detection"]["most"] < 1
    assert run["cordon"]["count"] == run["repairs"]["replace"]["count"] == 8


def test_what_one_side_had_is_told_of_both_and_what_nobody_had_is_not(scenario: Path):
    report = msgspec.convert(measured(scenario, "report.json"), SimulationReport)
    (run,) = report.sides[0].runs
    without = replace(run, dollars=0.0, lives=0)
    sides = [Variant("with", [replace(run, lives=0)]), Variant("without", [without])]
    told = Counter(line.measure for line in summary(SimulationReport("", sides)))
    assert told["dollars"] == 2
    assert told["lives of the control plane"] == 0


def test_the_same_seed_measures_the_same(scenario: Path):
    once, twice = (measured(scenario, name, "--seed", "7") for name in ("once.json", "twice.json"))
    assert once == twice
    assert once["sides"][0]["runs"][0]["seed"] == 7


def test_the_page_needs_nothing_else_and_escapes_what_people_wrote(scenario: Path):
    page = scenario.parent / "report.html"
    assert run(app, ["simulate", str(scenario), "--html", str(page)]) == 0
    text = page.read_text()
    assert "<h1>one &lt;fault&gt;</h1>" in text
    assert text.count("<svg") >= 4
    assert not re.search(r"<script|<link|src=|https?://", text)


@pytest.mark.parametrize(
    ("wrong", "right", "says"),
    [
        ("ill: faulty-gpu", "ill: faulty-gpus", '"faulty-gpu"'),
        ("wear: 0", "wears: 0", '"wear"'),
        ("at: 1h", "at: 3h", "after the end"),
        ("against: spares.yaml", "against: spare.yaml", "spare.yaml"),
    ],
)
def test_a_mistake_in_the_file_is_told_with_a_suggestion(
    scenario: Path, wrong: str, right: str, says: str, capsys: pytest.CaptureFixture[str]
):
    scenario.write_text(SCENARIO.replace(wrong, right))
    assert run(app, ["simulate", str(scenario)]) != 0
    assert says in capsys.readouterr().err
