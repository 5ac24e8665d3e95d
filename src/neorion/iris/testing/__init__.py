"""Builders and hypothesis strategies for the views of iris, and its runtime in memory, for the tests of whoever builds on it.

No assertions live here, and no room of iris imports it.
"""

from neorion.iris.testing.build import NOW, ago, job, placement, resources, running, worker
from neorion.iris.testing.runtime import Fate, MemoryRuntime
from neorion.iris.testing.views import clusters, groups, jobs, workers

__all__ = [
    "NOW",
    "Fate",
    "MemoryRuntime",
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
