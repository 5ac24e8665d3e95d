"""Refuses a file without a pool or provider that still has nodes, which would run on without care."""

from collections import Counter
from collections.abc import Collection, Mapping

from neorion.keel.base import Conflict
from neorion.navarch.state import FleetState


def check_in_use(state: FleetState, pools: Collection[str], clouds: Collection[str]) -> None:
    """Refuses a configuration without a pool or provider that still has nodes."""
    for name, count in _missing(Counter(node.pool for node in state.nodes.values()), pools):
        raise Conflict(
            "navarch.pool_in_use",
            f"The pool {name} still has nodes ({count}) and is not in the file any more.",
            hint="Put it back, set its min_nodes to 0 and scale it to 0 first; another fleet needs a server.state_dir of its own.",
        )
    # Machines that joined were not bought here, so no provider is needed for them.
    bought = Counter(node.place.provider for node in state.nodes.values() if node.place.provider)
    for name, count in _missing(bought, clouds):
        raise Conflict(
            "navarch.provider_in_use",
            f"The provider {name} still has nodes ({count}) and is not in the file any more.",
            hint="Put it back, and take it out of its pools first: their nodes there are given back when they are replaced.",
        )


def _missing(used: Mapping[str, int], named: Collection[str]) -> list[tuple[str, int]]:
    return sorted((name, count) for name, count in used.items() if name not in named)
