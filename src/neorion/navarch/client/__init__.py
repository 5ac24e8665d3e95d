"""The client of navarch: pools and nodes, seen and steered from Python and from the command line.

Uses the public RPC alone.
"""

from neorion.navarch.client.async_client import NavarchClient

__all__ = ["NavarchClient"]
