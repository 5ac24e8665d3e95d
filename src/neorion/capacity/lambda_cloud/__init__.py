"""Machines of Lambda's cloud, through its REST API.

Lambda has no client tokens, so the promise of one machine for one intent is kept here: by name, by looking first, and by
waiting where an answer was lost. Nothing here knows who buys.
"""

from neorion.capacity.lambda_cloud.provider import LambdaProvider, LambdaSettings

__all__ = ["LambdaProvider", "LambdaSettings"]
