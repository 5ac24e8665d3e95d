"""`neorion drydock status` and `logs`."""

import click

from neorion.drydock.cli.options import name_option, require_extras
from neorion.keel.cli import Command
from neorion.keel.cli.kit import Output


@click.command("status", cls=Command)
@click.option("--name", help="Only this cluster.")
def status_command(out: Output, name: str | None) -> None:
    """Show the clusters of this machine."""
    require_extras()
    import anyio  # noqa: PLC0415 -- the help does not need it

    from neorion.drydock.cli.tables import STATUS  # noqa: PLC0415 -- as above
    from neorion.drydock.clusters import ClusterManager  # noqa: PLC0415 -- as above
    from neorion.drydock.status import status_of  # noqa: PLC0415 -- as above

    yard = ClusterManager.of(out.env)
    if name is not None:
        out.show_one(anyio.run(status_of, yard.find(name)), STATUS)
    else:
        out.show([anyio.run(status_of, each) for each in yard.clusters()], STATUS)


@click.command("logs", cls=Command)
@click.argument("part")
@name_option
def logs_command(out: Output, part: str, name: str) -> None:
    """Print what a part of a cluster said.

    PART is one that `status -o json` names, as in etcd; of a real node its programs, as in node1/kubelet.
    """
    require_extras()
    from neorion.drydock.clusters import ClusterManager  # noqa: PLC0415 -- the help does not need it
    from neorion.keel.base import NotFound, did_you_mean  # noqa: PLC0415 -- as above

    layout = ClusterManager.of(out.env).find(name).layout
    logs = {path.stem: path for path in layout.logs.glob("*.log")}
    logs |= {f"{path.parents[1].name}/{path.stem}": path for path in layout.folder.glob("nodes/*/log/*.log")}
    if part not in logs:
        raise NotFound(
            "drydock.no_part", f'"{part}" has said nothing in cluster {name}.', hint=did_you_mean(part, logs)
        )
    with logs[part].open(errors="replace") as lines:
        for line in lines:
            out.text(line)
