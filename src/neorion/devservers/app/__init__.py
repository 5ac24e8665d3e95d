"""The operator put together. Nothing here decides; nothing elsewhere knows which parts there are."""

from neorion.devservers.app.operator import Plan, build

__all__ = ["Plan", "build"]
