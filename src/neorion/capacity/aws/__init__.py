"""Machines of Amazon EC2, through the vendor's own client.

The client blocks, so every call runs in a thread. Nothing here retries and nothing here knows who buys: whoever asks gets one
answer of one call, in the words of `capacity.provider`.
"""

from neorion.capacity.aws.provider import AwsProvider, AwsSettings

__all__ = ["AwsProvider", "AwsSettings"]
