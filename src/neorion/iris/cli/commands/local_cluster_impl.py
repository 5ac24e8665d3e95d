"""The work of `iris cluster start` and `stop`."""

from pathlib import Path
from typing import TypedDict, Unpack

import anyio

from neorion.iris.cli import local_cluster
from neorion.iris.cli.options import DEFAULT_CONTROLLER
from neorion.iris.cli.session import ask
from neorion.iris.cli.status_table import first_worker
from neorion.iris.client.endpoint import local_cluster_endpoint
from neorion.keel.base import Invalid
from neorion.keel.cli.kit import Output
from neorion.keel.clock import SystemClock
from neorion.keel.rpc import PinnedToken


class StartOptions(TypedDict):
    """The options of `start`."""

    here: bool
    port: int
    workers: int
    folder: Path | None
    auth: bool
    detach: bool


def start_command(out: Output, **wish: Unpack[StartOptions]) -> None:
    if not wish["here"]:
        raise Invalid(
            "iris.cluster_where", "Only a cluster on this machine can be started.", hint="Add --local."
        )
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


def stop_command(out: Output, folder: Path | None) -> None:
    place = (folder or local_cluster.default_folder(out.env)).absolute()
    ended = anyio.run(local_cluster.stop, place, SystemClock())
    if ended:
        out.say(f"The cluster at {ended.address} has ended.")
    out.show([ended] if ended else [], local_cluster.LOCAL)


def _detached(out: Output, wanted: local_cluster.LocalClusterOptions) -> None:
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
