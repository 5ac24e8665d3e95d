"""Other schedulers, told by webhooks: they are asked to stop placing work on a node, to empty it, and whether it is empty.

Knows the form of the messages alone. Whoever answers them decides what a cordon means there.
"""

from neorion.navarch.adapters.notify.webhook import WebhookScheduler, WebhookSettings, webhook

__all__ = ["WebhookScheduler", "WebhookSettings", "webhook"]
