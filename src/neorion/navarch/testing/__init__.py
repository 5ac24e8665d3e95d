"""Builders of records and views, for tests of navarch and of software that uses it.

No other package of navarch imports this one.
"""

from neorion.navarch.testing.builders import NOW, ailment, later, node, nodes, pool_view, repair, spec

__all__ = ["NOW", "ailment", "later", "node", "nodes", "pool_view", "repair", "spec"]
