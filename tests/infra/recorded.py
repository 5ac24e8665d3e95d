"""Series for promtool: what a real `/metrics` said, held for as long as a test wants."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

Series = dict[str, str]


def recorded(*phases: tuple[str, int], instance: str = "") -> list[Series]:
    """Each phase is an exposition and the minutes for which it stayed so; what is not told in a phase is not there."""
    values: dict[str, list[str]] = {}
    length = 0
    for text, minutes in phases:
        for name, value in _samples(text, instance).items():
            known = values.setdefault(name, [])
            known += ["_"] * (length - len(known)) + [value] * minutes
        length += minutes
    return [{"series": name, "values": " ".join(said)} for name, said in values.items()]


def _samples(text: str, instance: str) -> dict[str, str]:
    """By name and labels, in PromQL's own form."""
    found: dict[str, str] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = sample.labels | ({"instance": instance} if instance else {})
            said = ",".join(f"{key}={json.dumps(value)}" for key, value in labels.items())
            found[f"{sample.name}{{{said}}}"] = str(sample.value)
    return found


def wrong(
    promtool: Path, rules: Path, folder: Path, series: Sequence[Series], firing: dict[int, dict[str, int]]
) -> str:
    """What promtool complains of if these alerts, so often each, and no others fire at these minutes; nothing if that is so."""
    tests = [
        {
            "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
            "eval_time": f"{minute}m",
            "exp_samples": [
                {"labels": f'{{alertname="{name}"}}', "value": count} for name, count in alerts.items()
            ],
        }
        for minute, alerts in firing.items()
    ]
    body = {
        "rule_files": [str(rules)],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": list(series), "promql_expr_test": tests}],
    }
    path = folder / "test.json"
    # JSON is YAML.
    path.write_text(json.dumps(body))
    done = subprocess.run([promtool, "test", "rules", str(path)], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr
