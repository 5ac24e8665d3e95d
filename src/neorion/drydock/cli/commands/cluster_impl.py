"""The work of `neorion drydock up` and `down`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio

from neorion.drydock.cli.session import run
from neorion.drydock.cli.tables import STATUS
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.preflight import require_real_nodes
from neorion.drydock.simulated import SimulatedNodeGroup
from neorion.drydock.status import status_of
from neorion.keel.base import Invalid, did_you_mean
from neorion.keel.cli.kit import Output

_ADDONS: Final = (
    "coscheduling",
    "custom-metrics",
    "device-metrics",
    "gvisor",
    "jobset",
    "karpenter",
    "pod-groups",
    "prometheus",
    "traefik",
)
_EXTRAS: Final = frozenset({"coreweave", "kueue", *_ADDONS})


def up_command(
    out: Output, *, name: str, simulated: tuple[str, ...], nodes: int, extras: str, binaries: Path | None
) -> None:
    chosen = _chosen(extras)
    groups = tuple(map(SimulatedNodeGroup.parse, simulated))
    addons = tuple(name for name in _ADDONS if name in chosen)
    wishes = ClusterOptions(
        groups, nodes, kueue="kueue" in chosen, coreweave="coreweave" in chosen, addons=addons
    )
    if wishes.needs_network:
        require_real_nodes(out.env, os.geteuid())
    manager = ClusterManager.of(out.env, binaries)

    async def up(tell: Callable[[str], None]) -> None:
        cluster = await manager.up(name, wishes, tell)
        out.show_one(await status_of(cluster), STATUS)

    run(out, f"cluster {name}", up)
    out.say(f"Use it: export KUBECONFIG=$(neorion drydock kubeconfig --name {name})")


def down_command(out: Output, name: str, *, every: bool, dry_run: bool) -> None:
    manager = ClusterManager.of(out.env)
    for each in manager.names() if every else [name]:
        there = each in manager.names()
        if dry_run:
            out.say(f"{each} would be removed." if there else f'The cluster "{each}" does not exist.')
        else:
            anyio.run(manager.down, each)
            out.say(f"{each} is gone." if there else f'The cluster "{each}" does not exist.')


def _chosen(extras: str) -> set[str]:
    chosen = {word.strip() for word in extras.split(",") if word.strip()}
    for word in sorted(chosen - _EXTRAS):
        raise Invalid(
            "drydock.unknown_part", f'--with does not know "{word}".', hint=did_you_mean(word, _EXTRAS)
        )
    return chosen
