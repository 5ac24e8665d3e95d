"""The outside of devservers, one foreign thing each: the insides of pods, installations, the namespaces of users.

What is to be asked of it is decided elsewhere; what servers are made of belongs to `decide`. The maker of keys is
imported by its module's name: its library is there only where the operator runs.
"""

from neorion.devservers.adapters.inside import Inside
from neorion.devservers.adapters.webhook import Webhook

__all__ = ["Inside", "Webhook"]
