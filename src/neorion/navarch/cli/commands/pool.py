"""`navarch pool`: nodes of one shape."""

import click

from neorion.keel.cli import App
from neorion.keel.cli.kit import Output
from neorion.navarch.cli.options import server_option, why_option

pool = App("pool", help="See pools and change their size.")


@pool.command("list")
@server_option
def list_command(out: Output, server: str) -> None:
    """List the pools."""
    from neorion.navarch.cli.session import ask  # noqa: PLC0415 -- the help does not need it
    from neorion.navarch.cli.tables import POOLS, PoolRecord  # noqa: PLC0415 -- as above

    found = ask(out, server, lambda client: client.pools())
    out.show([PoolRecord.of(one) for one in found], POOLS)


@pool.command("describe")
@click.argument("name")
@server_option
def describe_command(out: Output, name: str, server: str) -> None:
    """Show everything about a pool."""
    from neorion.navarch.cli.session import ask  # noqa: PLC0415 -- the help does not need it
    from neorion.navarch.cli.tables import POOLS, PoolRecord  # noqa: PLC0415 -- as above
    from neorion.navarch.model.gen import navarch_pb as pb  # noqa: PLC0415 -- as above

    found = ask(out, server, lambda client: client.calls.get_pool(pb.GetPoolRequest(pool=name)))
    out.show_one(PoolRecord.of(found), POOLS)


@pool.command("scale")
@click.argument("name")
@click.argument("nodes", type=click.IntRange(min=0))
@why_option
@server_option
def scale_command(out: Output, name: str, nodes: int, why: str, server: str) -> None:
    """Let a pool have so many nodes."""
    from neorion.navarch.cli.session import ask  # noqa: PLC0415 -- the help does not need it
    from neorion.navarch.cli.tables import POOLS, PoolRecord  # noqa: PLC0415 -- as above
    from neorion.navarch.model.gen import navarch_pb as pb  # noqa: PLC0415 -- as above

    request = pb.ScalePoolRequest(pool=name, nodes=nodes, why=why)
    out.show_one(PoolRecord.of(ask(out, server, lambda client: client.calls.scale_pool(request))), POOLS)


@pool.command("pause")
@click.argument("name")
@why_option
@server_option
def pause_command(out: Output, name: str, why: str, server: str) -> None:
    """Buy nothing, give nothing back and repair nothing in a pool."""
    from neorion.navarch.cli.session import ask  # noqa: PLC0415 -- the help does not need it
    from neorion.navarch.cli.tables import POOLS, PoolRecord  # noqa: PLC0415 -- as above
    from neorion.navarch.model.gen import navarch_pb as pb  # noqa: PLC0415 -- as above

    request = pb.PausePoolRequest(pool=name, why=why)
    out.show_one(PoolRecord.of(ask(out, server, lambda client: client.calls.pause_pool(request))), POOLS)


@pool.command("resume")
@click.argument("name")
@server_option
def resume_command(out: Output, name: str, server: str) -> None:
    """Let a paused pool go on."""
    from neorion.navarch.cli.session import ask  # noqa: PLC0415 -- the help does not need it
    from neorion.navarch.cli.tables import POOLS, PoolRecord  # noqa: PLC0415 -- as above
    from neorion.navarch.model.gen import navarch_pb as pb  # noqa: PLC0415 -- as above

    request = pb.ResumePoolRequest(pool=name)
    out.show_one(PoolRecord.of(ask(out, server, lambda client: client.calls.resume_pool(request))), POOLS)
