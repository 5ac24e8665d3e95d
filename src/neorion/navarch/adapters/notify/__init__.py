"""Other schedulers behind webhooks. Requests cordon a node, drain it, and ask whether it is drained.

This package knows only the format of the messages. The scheduler decides what a cordon means.
"""

from neorion.navarch.adapters.notify.webhook import WebhookScheduler, WebhookSettings, webhook

__all__ = ["WebhookScheduler", "WebhookSettings", "webhook"]
