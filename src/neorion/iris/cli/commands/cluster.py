"""`iris cluster`: what is there, a cluster of one's own on this machine, and a controller in Kubernetes."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from neorion.iris.cli.options import controller_option
from neorion.keel.base import Invalid
from neorion.keel.cli import App
from neorion.keel.cli.kit import Output, require_extra

if TYPE_CHECKING:
    from neorion.iris.cli.local_cluster import LocalClusterOptions

cluster = App("cluster", help="See, start and stop a cluster.")

_folder = click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Where it keeps everything; a folder of the user's own if none is given.",
)


@cluster.command("status")
@controller_option
def status_command(out: Output, controller: str) -> None:
    """Show how many jobs, tasks, workers and slices there are."""
    from neorion.iris.cli.session import ask  # noqa: PLC0415 -- the help does not need it
    from neorion.iris.cli.status_table import StatusRecord, status_table  # noqa: PLC0415 -- as above
    from neorion.iris.model.gen import iris_pb as pb  # noqa: PLC0415 -- as above
    from neorion.keel.clock import SystemClock  # noqa: PLC0415 -- as above

    answer = ask(out, controller, lambda client: client.cluster.status(pb.StatusRequest()))
    out.show_one(StatusRecord.of(controller, answer), status_table(SystemClock()))


class StartOptions(TypedDict):
    """The options of `start`."""

    here: bool
    port: int
    workers: int
    folder: Path | None
    auth: bool
    detach: bool


@cluster.command("start")
@click.option("--local", "here", is_flag=True, allow_from_autoenv=False, help="On this machine.")
@click.option(
    "--port",
    default=10000,
    type=click.IntRange(0, 65_535),
    help="The port to listen on; 0 takes any that is free.",
)
# As many as the client takes: each is some processes of this machine.
@click.option("--workers", default=2, type=click.IntRange(1, 256), help="How many workers there are.")
@_folder
@click.option(
    "--auth/--no-auth",
    default=True,
    allow_from_autoenv=False,
    help="Without, everybody on this machine may do everything there; tokens are never asked for.",
)
@click.option(
    "--detach", is_flag=True, allow_from_autoenv=False, help="Return when it answers, and leave it running."
)
def start_command(out: Output, **wish: Unpack[StartOptions]) -> None:
    """Start a cluster on this machine."""
    if not wish["here"]:
        raise Invalid(
            "iris.cluster_where", "Only a cluster on this machine can be started.", hint="add --local"
        )
    require_extra("server")
    from neorion.iris.cli import local_cluster  # noqa: PLC0415 -- the help does not need it

    place = (wish["folder"] or local_cluster.default_folder(out.env)).absolute()
    running = local_cluster.found(place)
    if running:
        out.say(f"A cluster already runs at {running.address}.")
        out.show_one(running, local_cluster.LOCAL)
        return
    wanted = local_cluster.LocalClusterOptions(place, wish["port"], wish["workers"], wish["auth"])
    if not wanted.auth:
        out.warn("Everybody on this machine may do everything on this cluster.")
    if wish["detach"]:
        _detached(out, wanted)
    else:
        local_cluster.watch_over(wanted, lambda started: out.show_one(started, local_cluster.LOCAL))


def _detached(out: Output, wanted: "LocalClusterOptions") -> None:
    import anyio  # noqa: PLC0415 -- the help does not need it

    from neorion.iris.cli import local_cluster  # noqa: PLC0415 -- as above
    from neorion.iris.cli.options import DEFAULT_CONTROLLER  # noqa: PLC0415 -- as above
    from neorion.iris.cli.session import ask  # noqa: PLC0415 -- as above
    from neorion.iris.cli.status_table import first_worker  # noqa: PLC0415 -- as above
    from neorion.iris.client.endpoint import local_cluster_endpoint  # noqa: PLC0415 -- as above
    from neorion.keel.clock import SystemClock  # noqa: PLC0415 -- as above
    from neorion.keel.rpc import PinnedToken  # noqa: PLC0415 -- as above

    clock = SystemClock()
    started = anyio.run(local_cluster.start, wanted, clock)
    home = local_cluster_endpoint(started.address, out.env)
    try:
        trouble = ask(out, started.address, lambda client: first_worker(client, clock), home)
    except KeyboardInterrupt:
        # Whoever takes back the start does not look for what it left.
        anyio.run(local_cluster.stop, wanted.folder, clock)
        raise
    if trouble:
        out.warn(f"No worker has joined yet: {trouble}. Jobs are taken, and wait.")
    default = DEFAULT_CONTROLLER.rpartition(":")[2]
    if started.address.rpartition(":")[2] != default:
        out.say(f"Commands find it with: export IRIS_CONTROLLER={started.address}")
    if not wanted.auth:
        out.say(f"Other users of this machine set: export IRIS_TOKEN={PinnedToken.parse(home.token).pin}:")
    elsewhere = f" --folder {wanted.folder}" if wanted.folder != local_cluster.default_folder(out.env) else ""
    out.say(f"It ends with: iris cluster stop{elsewhere}")
    out.show_one(started, local_cluster.LOCAL)


@cluster.command("stop")
@_folder
def stop_command(out: Output, folder: Path | None) -> None:
    """End the cluster that was started on this machine; what it knows stays in its folder."""
    require_extra("server")
    import anyio  # noqa: PLC0415 -- the help does not need it

    from neorion.iris.cli import local_cluster  # noqa: PLC0415 -- as above
    from neorion.keel.clock import SystemClock  # noqa: PLC0415 -- as above

    place = (folder or local_cluster.default_folder(out.env)).absolute()
    ended = anyio.run(local_cluster.stop, place, SystemClock())
    if ended:
        out.say(f"The cluster at {ended.address} has ended.")
    out.show([ended] if ended else [], local_cluster.LOCAL)


_in_cluster = [
    click.option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False),
        required=True,
        metavar="FILE",
        help="The cluster file.",
    ),
    click.option("--kubeconfig", type=click.Path(path_type=Path, dir_okay=False), help="The kubeconfig."),
    click.option("--context", default="", show_default=False, help="The context in the kubeconfig."),
]


def _on_kubernetes(function: Callable[..., None]) -> Callable[..., None]:
    """Options that say which installation is meant."""
    for option in reversed(_in_cluster):
        function = option(function)
    return function


@cluster.command("up")
@_on_kubernetes
@click.option("--dry-run", is_flag=True, allow_from_autoenv=False, help="Print the objects; change nothing.")
@click.option("--wait/--no-wait", default=True, allow_from_autoenv=False, help="Wait until it answers.")
def up_command(
    out: Output, config: Path, kubeconfig: Path | None, context: str, *, dry_run: bool, wait: bool
) -> None:
    """Install or update a controller in a Kubernetes cluster."""
    require_extra("server")
    from neorion.iris.cli import in_cluster  # noqa: PLC0415 -- the help does not need it

    place = in_cluster.Place.of(out, config, kubeconfig, context)
    if dry_run:
        in_cluster.show(out, place)
    else:
        in_cluster.up(out, place, wait=wait)


@cluster.command("down")
@_on_kubernetes
@click.option("--purge", is_flag=True, allow_from_autoenv=False, help="Delete its volume and namespace too.")
@click.option("-y", "--yes", is_flag=True, allow_from_autoenv=False, help="Ask no question.")
def down_command(
    out: Output, config: Path, kubeconfig: Path | None, context: str, *, purge: bool, yes: bool
) -> None:
    """Remove a controller from a Kubernetes cluster, with all of its slices."""
    require_extra("server")
    from neorion.iris.cli import in_cluster  # noqa: PLC0415 -- the help does not need it
    from neorion.keel.cli.kit import confirm  # noqa: PLC0415 -- as above

    place = in_cluster.Place.of(out, config, kubeconfig, context)
    what = "with all jobs and results" if purge else "and end what runs there"
    confirm(f"Remove iris from the namespace {place.names.namespace}, {what}?", yes=yes)
    in_cluster.down(out, place, purge=purge)


@cluster.command("tunnel")
@_on_kubernetes
@click.option("--port", default=10000, type=click.IntRange(0, 65_535), help="The port to listen on here.")
def tunnel_command(out: Output, config: Path, kubeconfig: Path | None, context: str, port: int) -> None:
    """Forward a local port to the controller, with its administrator's token for clients on this machine."""
    require_extra("server")
    from neorion.iris.cli import in_cluster  # noqa: PLC0415 -- the help does not need it

    in_cluster.tunnel(out, in_cluster.Place.of(out, config, kubeconfig, context), port)


@cluster.command("logs")
@_on_kubernetes
@click.option("-f", "--follow", is_flag=True, allow_from_autoenv=False, help="Go on as it writes.")
@click.option("--tail", type=click.IntRange(min=1), metavar="LINES", help="Only the last lines.")
def logs_command(
    out: Output, config: Path, kubeconfig: Path | None, context: str, *, follow: bool, tail: int | None
) -> None:
    """Show what the controller writes."""
    require_extra("server")
    from neorion.iris.cli import in_cluster  # noqa: PLC0415 -- the help does not need it

    in_cluster.logs(out, in_cluster.Place.of(out, config, kubeconfig, context), follow=follow, tail=tail)
