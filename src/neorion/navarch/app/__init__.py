"""Navarch put together: from a configuration and the world's parts to a running control plane.

Chooses and connects. Nothing is decided and nothing is done here that a part could do.
"""

from neorion.navarch.app.plane import Plane, Settings, build

__all__ = ["Plane", "Settings", "build"]
