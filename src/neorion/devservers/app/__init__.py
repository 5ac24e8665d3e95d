"""The operator put together, and its process: the file it reads, what it serves, how it starts.

Nothing here decides, and nothing here writes to the cluster: it only joins the rooms that do.
"""

from neorion.devservers.app.operator import OperatorAdapters, OperatorOptions, build

__all__ = ["OperatorAdapters", "OperatorOptions", "build"]
