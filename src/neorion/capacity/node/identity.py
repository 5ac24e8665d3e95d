"""Identity of a machine under three names: the cloud's instance, the Kubernetes node, and the agent on it.

An agent reports a name. Depending on how it was started, that is navarch's own node id, the name of
the Kubernetes node, or the host's name. All names are compared with the bought machines; an agent that matches none, or
two of them, is rejected.
"""

import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

_PROVIDER_ID = re.compile(
    r"([a-z][a-z0-9+.-]{0,31})://(/?(?:[A-Za-z0-9._-]{1,128}/){0,4})([A-Za-z0-9._-]{1,128})"
)


@dataclass(frozen=True, slots=True)
class ProviderId:
    """`spec.providerID` of a node: "aws:///us-west-2a/i-0abc", "gce://project/zone/name"."""

    cloud: str
    path: tuple[str, ...]
    machine: str

    @classmethod
    def parse(cls, text: str) -> "ProviderId | None":
        found = _PROVIDER_ID.fullmatch(text)
        if found is None:
            return None
        cloud, path, machine = found.groups()
        return cls(cloud, tuple(part for part in path.split("/") if part), machine)


@dataclass(frozen=True, slots=True)
class IdentityClaim:
    """The names that an agent reports. Only `name` is always set; `aliases` are other names of the same machine."""

    name: str
    machine: str = ""
    provider_id: str = ""
    host_name: str = ""
    aliases: AbstractSet[str] = frozenset()

    @property
    def names(self) -> set[str]:
        """All names of the machine."""
        parsed = ProviderId.parse(self.provider_id)
        names = [self.name, self.machine, self.host_name, parsed.machine if parsed else "", *self.aliases]
        return {name for name in names if name}


@dataclass(frozen=True, slots=True)
class KnownNode:
    """A node with all its names."""

    node: str
    machine: str = ""
    machine_name: str = ""
    kube_name: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in (self.node, self.machine, self.machine_name, self.kube_name) if name)


def resolve(claim: IdentityClaim, known: Iterable[KnownNode]) -> str | None:
    """The node of the claim. None if no node matches, or if the names match different nodes."""
    claimed = claim.names
    fitting = {each.node for each in known if claimed.intersection(each.names)}
    return fitting.pop() if len(fitting) == 1 else None
