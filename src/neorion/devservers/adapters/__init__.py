"""The outside of devservers, one foreign thing each: pods, webhooks, a cluster that is to be set up.

What is to be asked of them is decided elsewhere.
"""

from neorion.devservers.adapters.inside import Inside
from neorion.devservers.adapters.webhook import Webhook

__all__ = ["Inside", "Webhook"]
