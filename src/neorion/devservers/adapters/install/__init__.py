"""The installation of development servers in a cluster: what it consists of, how it is brought there and taken away.

`manifests` holds the overlays of `infra/devservers` as kustomize renders them: they are written there, never here.
"""

from neorion.devservers.adapters.install.bundle import ImageOverrides, Overlay, bundle
from neorion.devservers.adapters.install.installer import Installer, carry_out
from neorion.devservers.adapters.install.plan import ChangeType, PlannedChange, plan
from neorion.devservers.adapters.install.resource_kinds import GUARDS, KINDS, PART_OF, key_of, kind_of
from neorion.devservers.adapters.install.rollout import until, until_rolled_out

__all__ = [
    "GUARDS",
    "KINDS",
    "PART_OF",
    "ChangeType",
    "ImageOverrides",
    "Installer",
    "Overlay",
    "PlannedChange",
    "bundle",
    "carry_out",
    "key_of",
    "kind_of",
    "plan",
    "until",
    "until_rolled_out",
]
