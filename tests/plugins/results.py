"""Writes what became of a run to a file, for the program that runs the tests: `--results FILE`."""

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

# Part of the reason of every skip for want of compiled programs.
NOT_BUILT = "not built"
_COUNTED = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--results", help="Write counts and failures to this JSON file.")


def pytest_configure(config: pytest.Config) -> None:
    # With several workers, their controller alone hears of every test.
    if config.getoption("results") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Results(config), "results")


class _Results:
    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._failures = list[dict[str, Any]]()
        # Of each file, which tells where a run spends its time.
        self._seconds = defaultdict[str, float](float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid.partition("::")[0]] += report.duration
        if report.failed:
            self._failures.append(
                {
                    "test": report.nodeid,
                    "phase": report.when,
                    "error": _first_line(report),
                    "timeout": ("timeout", True) in map(tuple, report.user_properties),
                    "seconds": round(report.duration, 1),
                    "load": round(os.getloadavg()[0], 1),
                    "worker": getattr(report, "worker_id", "main"),
                }
            )

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        reporter: Any = self._config.pluginmanager.getplugin("terminalreporter")
        stats: dict[str, list[pytest.TestReport]] = reporter.stats
        reasons = [str(report.longrepr) for report in stats.get("skipped", ())]
        longest_first = sorted(self._seconds, key=self._seconds.__getitem__, reverse=True)
        content = {
            "exit": int(exitstatus),
            "counts": {name: len(stats[name]) for name in _COUNTED if stats.get(name)},
            "left_out": sum(NOT_BUILT in reason for reason in reasons),
            "failures": self._failures,
            "seconds": {name: round(self._seconds[name], 1) for name in longest_first},
        }
        file = Path(str(self._config.getoption("results")))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content))


def _first_line(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = (crash.message if crash else report.longreprtext).strip().splitlines()
    return lines[0] if lines else ""
