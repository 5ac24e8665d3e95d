"""`neorion drydock up`, `down` and `build`."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import click

from neorion.drydock.cli.options import binaries_option, name_option
from neorion.keel.cli import Command, dry_run_option
from neorion.keel.cli.kit import Output, require_extra


@click.command("up", cls=Command)
@name_option
@click.option(
    "--simulated",
    multiple=True,
    metavar="N[:TYPE]",
    help='Nodes that only the API server knows, as in "100:h100x8"; may be given more than once.',
)
@binaries_option
def up_command(out: Output, name: str, simulated: tuple[str, ...], binaries: Path | None) -> None:
    """Make a cluster, or bring back what of it does not run."""
    _require_extras()
    from neorion.drydock.cli.records import STATUS  # noqa: PLC0415 -- the help does not need it
    from neorion.drydock.simulated import Group  # noqa: PLC0415 -- as above
    from neorion.drydock.status import status_of  # noqa: PLC0415 -- as above
    from neorion.drydock.yard import Wishes, Yard  # noqa: PLC0415 -- as above

    wishes = Wishes(tuple(map(Group.parse, simulated)))
    yard = Yard.of(out.env, binaries)

    async def up(tell: Callable[[str], None]) -> None:
        cluster = await yard.up(name, wishes, tell)
        out.show_one(await status_of(cluster), STATUS)

    _run(out, f"cluster {name}", up)
    out.say(f"Use it: export KUBECONFIG=$(neorion drydock kubeconfig --name {name})")


@click.command("down", cls=Command)
@name_option
@click.option("--all", "every", is_flag=True, allow_from_autoenv=False, help="All clusters of this user.")
@dry_run_option
def down_command(out: Output, name: str, *, every: bool, dry_run: bool) -> None:
    """Remove a cluster without a trace."""
    _require_extras()
    import anyio  # noqa: PLC0415 -- the help does not need it

    from neorion.drydock.yard import Yard  # noqa: PLC0415 -- as above

    yard = Yard.of(out.env)
    for each in yard.names() if every else [name]:
        if not (yard.folder / each).exists():
            out.say(f'There is no cluster "{each}".')
        elif dry_run:
            out.say(f"{each} would be removed.")
        else:
            anyio.run(yard.down, each)
            out.say(f"{each} is gone.")


@click.command("build", cls=Command)
@click.argument("products", nargs=-1)
def build_command(out: Output, products: tuple[str, ...]) -> None:
    """Build the programs that clusters are made of.

    PRODUCTS are etcd, kubernetes, kwok, coredns and kueue; all of them if none is named. The first time takes minutes,
    what is built already takes none.
    """
    from neorion.drydock.binaries import PRODUCTS, Shelf, build, product_named  # noqa: PLC0415 -- the help does not need it

    shelf = Shelf.of(out.env)
    chosen = [product_named(each) for each in products] or list(PRODUCTS)

    async def build_all(tell: Callable[[str], None]) -> None:
        for product in chosen:
            await build(product, shelf, tell)

    _run(out, "build", build_all)
    for product in chosen:
        out.text(f"{shelf.folder(product)}\n")


def _require_extras() -> None:
    require_extra("drydock")
    require_extra("kube")


def _run(out: Output, title: str, work: Callable[[Callable[[str], None]], Coroutine[Any, Any, None]]) -> None:
    """Tells what is being done while it is done."""
    import anyio  # noqa: PLC0415 -- the help does not need it

    from neorion.keel.cli.kit.progress import progress  # noqa: PLC0415 -- as above
    from neorion.keel.clock import SystemClock  # noqa: PLC0415 -- as above

    with progress(out, title, SystemClock()) as told:

        def tell(words: str) -> None:
            told.advance(note=words)

        anyio.run(work, tell)
