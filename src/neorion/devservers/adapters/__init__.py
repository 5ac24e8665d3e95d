"""The outside of devservers, one foreign thing each: pods, webhooks, a cluster that is to be set up.

What is to be asked of them is decided elsewhere. The maker of keys is imported by its module's name: its library is there
only where the operator runs.
"""

from neorion.devservers.adapters.inside import Inside
from neorion.devservers.adapters.webhook import Webhook

__all__ = ["Inside", "Webhook"]
