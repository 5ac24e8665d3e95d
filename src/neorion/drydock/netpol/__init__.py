"""NetworkPolicies, enforced by nftables in the network namespace of each real node."""

from neorion.drydock.netpol.deploy import policy_part, publish_policy_rights

__all__ = ["policy_part", "publish_policy_rights"]
