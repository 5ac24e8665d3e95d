"""`neorion drydock up`, `down` and `build`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import click

from neorion.drydock.cli.options import binaries_option, name_option, require_extras
from neorion.keel.cli import Command, dry_run_option
from neorion.keel.cli.kit import Output

_ADDONS: Final = ("custom-metrics", "gvisor", "karpenter", "prometheus", "traefik")
_EXTRAS: Final = frozenset({"coreweave", "kueue", *_ADDONS})


@click.command("up", cls=Command)
@name_option
@click.option(
    "--simulated",
    multiple=True,
    metavar="N[:TYPE]",
    help='Nodes that only the API server knows, as in "100:h100x8"; may be given more than once.',
)
@click.option(
    "--nodes",
    type=click.IntRange(0, 20),
    default=0,
    help="Real nodes, which run real pods; needs root and containerd.",
)
@click.option(
    "--with",
    "extras",
    metavar="PART,...",
    default="",
    help="What else to run: kueue, coreweave, custom-metrics, gvisor, karpenter, prometheus, traefik.",
)
@binaries_option
def up_command(
    out: Output, *, name: str, simulated: tuple[str, ...], nodes: int, extras: str, binaries: Path | None
) -> None:
    """Make a cluster, or bring back what of it does not run."""
    require_extras()
    from neorion.drydock.cli.session import run  # noqa: PLC0415 -- the help does not need it
    from neorion.drydock.cli.tables import STATUS  # noqa: PLC0415 -- as above
    from neorion.drydock.clusters import ClusterManager, ClusterOptions  # noqa: PLC0415 -- as above
    from neorion.drydock.preflight import require_real_nodes  # noqa: PLC0415 -- as above
    from neorion.drydock.simulated import SimulatedNodeGroup  # noqa: PLC0415 -- as above
    from neorion.drydock.status import status_of  # noqa: PLC0415 -- as above

    chosen = _chosen(extras)
    groups = tuple(map(SimulatedNodeGroup.parse, simulated))
    addons = tuple(name for name in _ADDONS if name in chosen)
    wishes = ClusterOptions(
        groups, nodes, kueue="kueue" in chosen, coreweave="coreweave" in chosen, addons=addons
    )
    if wishes.needs_network:
        require_real_nodes(out.env, os.geteuid())
    yard = ClusterManager.of(out.env, binaries)

    async def up(tell: Callable[[str], None]) -> None:
        cluster = await yard.up(name, wishes, tell)
        out.show_one(await status_of(cluster), STATUS)

    run(out, f"cluster {name}", up)
    out.say(f"Use it: export KUBECONFIG=$(neorion drydock kubeconfig --name {name})")


@click.command("down", cls=Command)
@name_option
@click.option("--all", "every", is_flag=True, allow_from_autoenv=False, help="All clusters of this user.")
@dry_run_option
def down_command(out: Output, name: str, *, every: bool, dry_run: bool) -> None:
    """Remove a cluster without a trace."""
    require_extras()
    import anyio  # noqa: PLC0415 -- the help does not need it

    from neorion.drydock.clusters import ClusterManager  # noqa: PLC0415 -- as above

    yard = ClusterManager.of(out.env)
    for each in yard.names() if every else [name]:
        there = each in yard.names()
        if dry_run:
            out.say(f"{each} would be removed." if there else f'There is no cluster "{each}".')
        else:
            anyio.run(yard.down, each)
            out.say(f"{each} is gone." if there else f'There is no cluster "{each}".')


@click.command("build", cls=Command)
@click.argument("products", nargs=-1)
@click.option(
    "--released",
    is_flag=True,
    allow_from_autoenv=False,
    help="Fetch what its makers have released instead of building it; needs no Go.",
)
def build_command(out: Output, products: tuple[str, ...], *, released: bool) -> None:
    """Build the programs that clusters are made of.

    PRODUCTS are etcd, kubernetes, kwok, coredns, prometheus and kueue; all of them if none is named. The first time takes minutes,
    what is there already takes none. prometheus and kueue are always built: no fitting programs of theirs are released.
    """
    from neorion.drydock.binaries import (  # noqa: PLC0415 -- the help does not need it
        PRODUCTS,
        BinaryCache,
        build,
        product_named,
    )
    from neorion.drydock.cli.session import run  # noqa: PLC0415 -- as above

    if released:
        require_extras()
    shelf = BinaryCache.of(out.env)
    every = [product for product in PRODUCTS if product.release is not None or not released]
    chosen = [product_named(each) for each in products] or every

    async def build_all(tell: Callable[[str], None]) -> None:
        for product in chosen:
            await build(product, shelf, tell, released=released)

    run(out, "build", build_all)
    for product in chosen:
        out.text(f"{shelf.folder(product)}\n")


def _chosen(extras: str) -> set[str]:
    from neorion.keel.base import Invalid, did_you_mean  # noqa: PLC0415 -- the help does not need it

    chosen = {word.strip() for word in extras.split(",") if word.strip()}
    for word in sorted(chosen - _EXTRAS):
        raise Invalid(
            "drydock.unknown_part", f'--with does not know "{word}".', hint=did_you_mean(word, _EXTRAS)
        )
    return chosen
