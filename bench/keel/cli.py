"""How long people wait for a command line to answer, beside the interpreter and the library it is made of."""

import subprocess
import sys
import time
from collections.abc import Callable

from bench.kit import Report

ROUNDS = 15


def run(report: Report) -> None:
    bare = ("python -c pass", _milliseconds("-c", "pass"))
    click = ("python -c 'import click'", _milliseconds("-c", "import click"))
    report.compare("neorion --help", "ms", _milliseconds("-m", "neorion", "--help"), bare, ROUNDS)
    report.compare("neorion --help", "ms", _milliseconds("-m", "neorion", "--help"), click, ROUNDS)
    report.compare(
        "neorion explain -o json", "ms", _milliseconds("-m", "neorion", "explain", "-o", "json"), bare, ROUNDS
    )


def _milliseconds(*args: str) -> Callable[[], float]:
    def measure() -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, *args], stdout=subprocess.DEVNULL, check=True)
        return (time.perf_counter() - began) * 1000

    return measure
