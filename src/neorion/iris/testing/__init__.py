"""Test support for iris and its users: builders and strategies for views, doubles of ports.

A double passes the contract suite of its port. No other package of iris imports this.
"""

from neorion.iris.testing.builders import NOW, ago, job, placement, resources, running, worker
from neorion.iris.testing.strategies import clusters, groups, jobs, workers

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
