"""A Kubernetes API in memory, for the tests of whoever uses the kit, in real and in simulated time.

It keeps the promises of the port that controllers rely on, and the contract suite holds it to them beside a real API
server. Schemas, rights, quotas and controllers must not be looked for here: it stores what it is given.
"""

from neorion.keel.kube.testing.api import MemoryApi
from neorion.keel.kube.testing.cluster import MemoryCluster, WriteRequest

__all__ = ["MemoryApi", "MemoryCluster", "WriteRequest"]
