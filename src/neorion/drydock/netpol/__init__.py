"""NetworkPolicies, enforced by nftables in the network namespace of each real node.

The network itself belongs to `network`, and nodes belong to `node`. Policies for IPv6 are not enforced.
"""

from neorion.drydock.netpol.deploy import policy_part, publish_policy_rights

__all__ = ["policy_part", "publish_policy_rights"]
