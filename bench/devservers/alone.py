"""The operator alone: neither Kubernetes' controllers nor its scheduler work, so that all the time is the operator's.

Each server gets its objects and says Pending, and that is all there is to do. Same figures, sizes and reference as
`devservers.operator`.
"""

import anyio

from bench.devservers.operator import Stage, measure
from bench.kit import Report
from neorion.devservers.model import Phase

ALONE = Stage("created → all Pending, all objects made", Phase.PENDING, controlled=False)


def run(report: Report) -> None:
    anyio.run(measure, report, ALONE)
