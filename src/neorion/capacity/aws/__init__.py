"""Machines of Amazon EC2, through the vendor's own client.

The client blocks, so every call runs in a thread. Nothing here retries or depends on a buyer: each call returns one
result or error of `capacity.provider`.
"""

from neorion.capacity.aws.provider import AwsProvider, AwsSettings

__all__ = ["AwsProvider", "AwsSettings"]
