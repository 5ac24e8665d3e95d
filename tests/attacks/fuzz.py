"""Gives hostile inputs to one parser, and prints a report as JSON: `python -m tests.attacks.fuzz TARGET SEED COUNT`.

A program of its own, because a parser that overflows its stack ends its process. An error without a type ends it too, and
the input is printed: add it to the samples of its target, so that it is tried in every run.
"""

import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from neorion.keel.base import Error
from neorion.keel.clock import seeded_rng
from tests.attacks.fuzz_target import Target
from tests.attacks.fuzz_targets import TARGETS


@dataclass(slots=True)
class Report:
    """The number of inputs, the most processor time of one, and how many were read or refused."""

    inputs: int = 0
    slowest_s: float = 0.0
    slowest: str = ""
    answers: Counter[str] = field(default_factory=Counter[str])


def fuzz(target: Target, seed: int, count: int) -> Report:
    """Every sample as it is, and then as many mutants as are left."""
    report = Report()
    with target.opened() as attempt:
        found = target.inputs(seeded_rng(seed))
        for _ in range(count):
            given = next(found)
            begun = time.process_time()
            try:
                answer = attempt(given)
            except Error:
                answer = "refused"
            except BaseException:
                sys.stderr.write(f"input: {given!r}\n")
                raise
            took = time.process_time() - begun
            if took > report.slowest_s:
                report.slowest_s, report.slowest = took, repr(given)[:2000]
            report.inputs += 1
            report.answers[answer] += 1
    return report


def main(name: str, seed: int, count: int) -> None:
    report = fuzz(TARGETS[name], seed, count)
    sys.stdout.write(
        json.dumps(
            {
                "inputs": report.inputs,
                "slowest_s": report.slowest_s,
                "slowest": report.slowest,
                "answers": report.answers,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
