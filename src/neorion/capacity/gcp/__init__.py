"""Machines of Google Compute Engine, through the vendor's own client.

The client blocks, so every call runs in a thread. Nothing here retries a purchase or depends on a buyer:
each call returns one result or error of `capacity.provider`.
"""

from neorion.capacity.gcp.provider import GcpProvider, GcpSettings

__all__ = ["GcpProvider", "GcpSettings"]
