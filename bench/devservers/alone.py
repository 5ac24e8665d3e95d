"""The operator alone: volumes are bound and pods run as soon as it asks for them, so that the time is its own.

Neither Kubernetes' controllers nor its scheduler work: this program plays them, by the fewest writes. Same figures, sizes
and reference as `devservers.operator`, and quick enough for 10,000 servers.
"""

import anyio

from bench.devservers.operator import Stage, measure
from bench.kit import Report

ALONE = Stage("created → all Running", played=True)


def run(report: Report) -> None:
    anyio.run(measure, report, ALONE)
