"""A Kubernetes API in memory for tests, in real and in simulated time.

Implements the parts of the port that controllers use; the contract suite also runs on a real API
server. Has no schemas, permissions, quotas or controllers: it stores what it receives.
"""

from neorion.keel.kube.testing.api import MemoryApi
from neorion.keel.kube.testing.cluster import MemoryCluster, WriteRequest

__all__ = ["MemoryApi", "MemoryCluster", "WriteRequest"]
