"""The operator put together, and run as a process.

Nothing here decides; nothing elsewhere knows which parts there are.
"""

from neorion.devservers.app.operator import Plan, build

__all__ = ["Plan", "build"]
