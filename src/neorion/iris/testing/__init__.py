"""Builders and hypothesis strategies for the views of iris, for the tests of whoever builds on it.

Only makes values: no fakes of ports and no assertions live here, and no room of iris imports it.
"""

from neorion.iris.testing.build import NOW, ago, job, placement, resources, running, worker
from neorion.iris.testing.views import clusters, groups, jobs, workers

__all__ = [
    "NOW",
    "ago",
    "clusters",
    "groups",
    "job",
    "jobs",
    "placement",
    "resources",
    "running",
    "worker",
    "workers",
]
