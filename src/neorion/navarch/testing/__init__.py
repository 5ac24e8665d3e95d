"""For the tests of navarch and of whoever builds on it: builders for records and views.

No room of navarch imports this.
"""

from neorion.navarch.testing.builders import NOW, ailment, later, node, nodes, pool_view, repair, spec

__all__ = ["NOW", "ailment", "later", "node", "nodes", "pool_view", "repair", "spec"]
