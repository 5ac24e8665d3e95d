"""One thing under three names: the cloud's instance, the Kubernetes node, the agent that speaks from it.

An agent says what it believes to be called. Depending on how it was started that is navarch's own node id, the name of
the Kubernetes node, or the host's name. All of it is matched against what was bought; an agent that fits nothing, or
two things, is not believed.
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
    """What an agent says of itself. Only `name` is always there; `aliases` are what others call the machine of that name."""

    name: str
    machine: str = ""
    provider_id: str = ""
    host_name: str = ""
    aliases: AbstractSet[str] = frozenset()

    @property
    def names(self) -> set[str]:
        """Every name by which it may be known."""
        parsed = ProviderId.parse(self.provider_id)
        told = [self.name, self.machine, self.host_name, parsed.machine if parsed else "", *self.aliases]
        return {name for name in told if name}


@dataclass(frozen=True, slots=True)
class KnownNode:
    """A node by all the names it may be called."""

    node: str
    machine: str = ""
    machine_name: str = ""
    kube_name: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in (self.node, self.machine, self.machine_name, self.kube_name) if name)


def resolve(claim: IdentityClaim, known: Iterable[KnownNode]) -> str | None:
    """The node that the claim is about. None where nothing fits, or where its parts fit different nodes."""
    said = claim.names
    fitting = {each.node for each in known if said.intersection(each.names)}
    return fitting.pop() if len(fitting) == 1 else None
