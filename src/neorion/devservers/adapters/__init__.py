"""The outside of devservers, one foreign thing each: the insides of pods, installations, the namespaces of users.

What is to be asked of it is decided elsewhere; what servers are made of belongs to `decide`. The maker of keys and the
webhook are imported by their modules' names: what they load, few processes need.
"""

from neorion.devservers.adapters.pod_exec import PodExec

__all__ = ["PodExec"]
