"""Probes: an agent's readings of its machine, one module for each source.

A simulated probe is used only when its name is given. No probe falls back to another.
"""

from neorion.navarch.adapters.probes.fake import FakeProbe

__all__ = ["FakeProbe"]
