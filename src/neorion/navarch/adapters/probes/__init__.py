"""Probes: what an agent finds on its machine, one module for each way to look.

A stand-in is used only where somebody asked for it by name; no probe falls back to another.
"""

from neorion.navarch.adapters.probes.fake import FakeProbe

__all__ = ["FakeProbe"]
