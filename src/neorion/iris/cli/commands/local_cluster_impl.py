"""Implementation of `iris cluster start` and `stop`."""

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
    """Options of `start`."""

    here: bool
    port: int
    workers: int
    folder: Path | None
    auth: bool
    detach: bool


def start_command(out: Output, **options: Unpack[StartOptions]) -> None:
    if not options["here"]:
        raise Invalid(
            "iris.cluster_where", "Only a cluster on this machine can be started.", hint="Add --local."
        )
    path = (options["folder"] or local_cluster.default_folder(out.env)).absolute()
    running = local_cluster.found(path)
    if running:
        out.say(f"A cluster already runs at {running.address}.")
        out.show_one(running, local_cluster.LOCAL)
        return
    settings = local_cluster.LocalClusterOptions(path, options["port"], options["workers"], options["auth"])
    if not settings.auth:
        out.warn("All users of this machine have full access to this cluster.")
    if options["detach"]:
        _detached(out, settings)
    else:
        local_cluster.watch_over(settings, lambda started: out.show_one(started, local_cluster.LOCAL))


def stop_command(out: Output, folder: Path | None) -> None:
    path = (folder or local_cluster.default_folder(out.env)).absolute()
    ended = anyio.run(local_cluster.stop, path, SystemClock())
    if ended:
        out.say(f"The cluster at {ended.address} has ended.")
    out.show([ended] if ended else [], local_cluster.LOCAL)


def _detached(out: Output, settings: local_cluster.LocalClusterOptions) -> None:
    clock = SystemClock()
    started = anyio.run(local_cluster.start, settings, clock)
    home = local_cluster_endpoint(started.address, out.env)
    try:
        trouble = ask(out, started.address, lambda client: first_worker(client, clock), home)
    except KeyboardInterrupt:
        # An interrupted start must leave no cluster behind.
        anyio.run(local_cluster.stop, settings.folder, clock)
        raise
    if trouble:
        out.warn(f"No worker has joined yet: {trouble}. Jobs are accepted and wait.")
    default = DEFAULT_CONTROLLER.rpartition(":")[2]
    if started.address.rpartition(":")[2] != default:
        out.say(f"To use it, set: export IRIS_CONTROLLER={started.address}")
    if not settings.auth:
        out.say(f"Other users of this machine set: export IRIS_TOKEN={PinnedToken.parse(home.token).pin}:")
    elsewhere = (
        f" --folder {settings.folder}" if settings.folder != local_cluster.default_folder(out.env) else ""
    )
    out.say(f"Stop it with: iris cluster stop{elsewhere}")
    out.show_one(started, local_cluster.LOCAL)
