"""Containers of a containerd that iris has for itself, over CRI: a sandbox for each attempt, on the machine's network.

It knows nothing of kubelets but that their containerd must not be used.
"""

from neorion.iris.adapters.runtimes.containerd.cri_client import CriClient
from neorion.iris.adapters.runtimes.containerd.engine import ContainerdEngine

__all__ = ["ContainerdEngine", "CriClient"]
