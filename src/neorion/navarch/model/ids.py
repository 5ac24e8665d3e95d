"""The names things go by."""

from neorion.keel.base import Id


class NodeId(Id):
    """One machine's life in the fleet, from the decision to buy it until it is gone."""

    __slots__ = ()
    prefix = "node"


class RepairId(Id):
    """One attempt to heal or replace one node."""

    __slots__ = ()
    prefix = "repair"


class InstallationId(Id):
    """One navarch: the owner of the machines it buys."""

    __slots__ = ()
    prefix = "navarch"
