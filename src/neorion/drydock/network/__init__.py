"""The networks of clusters on this machine: addresses, a bridge with a fence around it, cables to nodes.

What runs at the ends of the cables belongs to `node`. No cluster's packet leaves the machine, and none comes in.
"""

from neorion.drydock.network.addresses import NODES_MAX, SLOTS, Addresses, reaching_clusters
from neorion.drydock.network.bridge import lower_bridge, raise_bridge
from neorion.drydock.network.veth import attach_veth, detach_veth, is_attached, route_services

__all__ = [
    "NODES_MAX",
    "SLOTS",
    "Addresses",
    "attach_veth",
    "detach_veth",
    "is_attached",
    "lower_bridge",
    "raise_bridge",
    "reaching_clusters",
    "route_services",
]
