"""Machines of Lambda's cloud, through its REST API.

Lambda has no client tokens, so one machine per intent is guaranteed here: by name, by listing first, and by
waiting after a lost response. Nothing here depends on a buyer.
"""

from neorion.capacity.lambda_cloud.provider import LambdaProvider, LambdaSettings

__all__ = ["LambdaProvider", "LambdaSettings"]
