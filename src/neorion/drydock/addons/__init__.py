"""Parts that a cluster can have beside its own: metrics adapters, autoscalers, gateways. Each is a process of this machine.

Each add-on has one module with `NAME`, `PROGRAMS` and `start`. None is started unless a person asks for it.
"""

from neorion.drydock.addons.catalogue import ADDONS, Addon, resume_addons, start_addons, url_of

__all__ = ["ADDONS", "Addon", "resume_addons", "start_addons", "url_of"]
