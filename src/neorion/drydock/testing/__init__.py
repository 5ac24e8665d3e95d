"""Clusters for tests: one shared by a whole run, and a namespace for each test.

Contains no assertions and no tests. Fixtures for pytest are in `plugin`.
"""

from neorion.drydock.testing.namespaces import namespace
from neorion.drydock.testing.shared import is_shared, remove_unused, shared_cluster

__all__ = ["is_shared", "namespace", "remove_unused", "shared_cluster"]
