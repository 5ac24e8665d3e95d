"""Machines of Google Compute Engine, through the vendor's own client.

The client blocks, so every call runs in a thread. Nothing here retries a purchase and nothing here knows who buys: whoever
asks gets one answer, in the words of `capacity.provider`.
"""

from neorion.capacity.gcp.provider import GcpProvider, GcpSettings

__all__ = ["GcpProvider", "GcpSettings"]
