"""`controller serve`, `worker serve` and `local`."""

import os
import socket
import sys
from pathlib import Path
from typing import Any, TypedDict, Unpack, cast

import click

from neorion.iris.adapters.cluster_file import ClusterFile, RuntimeName, kubernetes_settings
from neorion.iris.adapters.cluster_file.sections import LocalController
from neorion.iris.adapters.runtimes.process.syscalls import set_pdeathsig
from neorion.iris.app.cluster import ServeOptions, local_file, run_cluster
from neorion.iris.app.runtime import ContainerOptions, RuntimeChoice, task_containers, task_pods
from neorion.iris.app.worker import REPORT_S, WorkerSetup, run_worker
from neorion.iris.model import Resources
from neorion.iris.worker import Identity
from neorion.keel.base import Duration, Invalid, Quantity, Unauthenticated, UnitError
from neorion.keel.cli import App, Command
from neorion.keel.cli.kit import Output
from neorion.keel.config import erase_from_environment, load
from neorion.keel.rpc import check_proof
from neorion.keel.run import Supervisor, run_process
from neorion.keel.telemetry.setup import LogFormat, setup

controller = App("controller", help="The process that keeps and places jobs.")
worker = App("worker", help="The process that runs tasks on a machine.")

# What a process keeps is readable by its own user alone; tasks get a mask of their own.
_PRIVATE = 0o077

_config = click.option("--config", type=click.Path(path_type=Path), help="The cluster file.")
_log = click.option("--log", default="people", type=click.Choice(["people", "json"]), help="Form of the log.")

_log_file = click.option(
    "--log-file",
    type=click.Path(path_type=Path),
    help="The file that standard error was led to; a full one is set aside as FILE.old.",
)


class _QuantityParam(click.ParamType[Quantity]):
    """Cores, bytes: "4", "500m", "512Mi", "2048GB"."""

    name = "amount"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Quantity:  # noqa: ANN401 -- click's own
        try:
            return Quantity.parse(value)
        except UnitError as error:
            self.fail(str(error), param, ctx)


class _ControllerOptions(TypedDict):
    host: str
    port: int | None
    config: Path | None
    bundle_prefix: str
    standby: bool
    log: str


@controller.command("serve")
@click.option("--host", default="", help="The address to listen on; the cluster file's by default.")
@click.option("--port", type=int, help="The port to listen on; 0 takes any that is free.")
@_config
@click.option("--bundle-prefix", default="", help="Where large blobs go; the cluster file's by default.")
@click.option(
    "--standby", is_flag=True, help="Wait while another controller leads, and take over when it ends."
)
@_log
def controller_serve(out: Output, **options: Unpack[_ControllerOptions]) -> None:
    """Run a controller until it is told to stop."""
    config, port, bundle_prefix = options["config"], options["port"], options["bundle_prefix"]
    setup(LogFormat(options["log"]))
    if config is None:
        raise Invalid("iris.no_config", "A controller needs a cluster file.", hint="Name it: --config FILE.")
    file = load(config, ClusterFile, os.environ)
    if bundle_prefix:
        storage = file.storage.model_copy(update={"bundle_prefix": bundle_prefix})
        file = file.model_copy(update={"storage": storage})
    usual_host, usual_port = _default_address(file)
    place = (options["host"] or usual_host, usual_port if port is None else port)
    folder = Path(file.storage.state_dir).expanduser()
    _run_cluster(out, file, folder, ServeOptions(place, standby=options["standby"]))


@worker.command("serve", cls=Command)
@_config
@click.option(
    "--runtime",
    default=RuntimeName.PROCESS.value,
    help="Runtime of tasks.",
    type=click.Choice([runtime.value for runtime in RuntimeName]),
)
@click.option("--task-image", default="", help="Image of tasks; for containerd and docker.")
@click.option(
    "--task-mount", "task_mounts", multiple=True, help="Folder that containers see: SOURCE:TARGET[:ro]."
)
@click.option(
    "--runtime-socket",
    type=click.Path(path_type=Path),
    help="Socket of containerd or Docker, where it is not the usual one.",
)
@click.option("--task-pods", default="", help="Settings of the attempts' Pods as JSON; for kubernetes.")
@click.option("--controller", "address", default="", help="Where the controller answers.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where the worker keeps its files.")
@click.option("--slice", "piece", default="slice-by-hand", help="The slice this machine belongs to.")
@click.option("--host", default="", help="The name by which other machines reach this one.")
@click.option("--cpu", type=_QuantityParam(), default=str(os.cpu_count() or 1), help="Cores to offer.")
@click.option("--memory", type=_QuantityParam(), default="4Gi", help="Memory to offer.")
@click.option("--disk", type=_QuantityParam(), default="10Gi", help="Disk to offer.")
@click.option("--gpus", default=0, help="GPUs to offer.")
@click.option("--gpu-variant", default="", help="Model of the GPUs.")
@click.option("--attribute", "attributes", multiple=True, help="KEY=VALUE, for constraints.")
@click.option("--token-file", type=click.Path(path_type=Path), help="Read the token from this file.")
@click.option("--token-stdin", is_flag=True, help="Read the token from standard input.")
@click.option("--leash", is_flag=True, help="End with the process that starts it, however that ends.")
@click.option(
    "--stop-grace",
    default=0,
    type=click.IntRange(min=0),
    help="On SIGTERM stop the tasks, and give them so many seconds; with 0 they run on.",
)
@_log
@_log_file
def worker_serve(out: Output, **options: Any) -> None:  # noqa: ANN401 -- click's own
    """Run a worker until it is told to stop."""
    if options["leash"]:
        set_pdeathsig(os.getppid())
    setup(LogFormat(options["log"]), own_file=options["log_file"])
    host = options["host"] or os.environ.get("IRIS_VM_ADDRESS") or socket.gethostname()
    folder = options["folder"] or Path("/var/cache/iris")
    runtime = RuntimeChoice(
        RuntimeName(options["runtime"]),
        host,
        task_pods(options["task_pods"], os.environ),
        task_containers(cast("ContainerOptions", options), folder, os.environ),
    )
    runtime.check()
    address = options["address"] or os.environ.get("IRIS_CONTROLLER_ADDRESS", "")
    if not address:
        address = _address_in(options["config"])
    if options["token_stdin"]:
        token = sys.stdin.read().strip()
    elif options["token_file"]:
        token = _token_in(options["token_file"])
    else:
        token = os.environ.get("IRIS_TOKEN", "")
    if options["token_stdin"] and not token:
        # The parent ended before it sent the token, so no controller has a record of this worker.
        raise Unauthenticated(
            "iris.no_token", "There was no token on standard input.", hint="Start it again."
        )
    check_proof(address, token)
    identity = Identity(
        slice=options["piece"],
        host=host,
        total=Resources(
            options["cpu"].milli,
            options["memory"].whole,
            options["disk"].whole,
            options["gpus"],
            options["gpu_variant"],
        ),
        attributes=dict(text.partition("=")[::2] for text in options["attributes"]),
    )
    grace = Duration.of(seconds=options["stop_grace"])
    out.say(f"worker of {address}")

    async def main(crew: Supervisor) -> None:
        await run_worker(crew, identity, WorkerSetup(address, token or None, folder, runtime, grace))

    os.umask(_PRIVATE)
    run_process(main, grace + Duration.of(seconds=2 * REPORT_S))


class _LocalOptions(TypedDict):
    folder: Path
    port: int
    workers: int
    config: Path | None
    auth: bool
    leash: bool
    log_file: Path | None


@click.command("local", cls=Command)
@click.option("--folder", type=click.Path(path_type=Path), required=True, help="Where everything is kept.")
@click.option("--port", default=10000, help="The port to listen on; 0 takes any that is free.")
@click.option("--workers", default=2, help="Workers that are always there.")
@_config
@click.option("--auth/--no-auth", default=True, help="Require tokens.")
@click.option("--leash", is_flag=True, help="End when standard input ends, and say only what is wrong.")
@_log_file
def local(out: Output, **options: Unpack[_LocalOptions]) -> None:
    """Run a controller and its workers on this machine until told to stop. Prints its address first."""
    leash, config = options["leash"], options["config"]
    setup(LogFormat.PEOPLE, level="warning" if leash else "info", own_file=options["log_file"])
    if config:
        file = load(config, ClusterFile, os.environ)
    else:
        file = local_file(options["workers"], auth=options["auth"])
    _run_cluster(out, file, options["folder"], ServeOptions(("127.0.0.1", options["port"]), leash=leash))


def _run_cluster(out: Output, file: ClusterFile, folder: Path, options: ServeOptions) -> None:
    async def main(crew: Supervisor) -> None:
        def tell(address: str) -> None:
            out.text(f"{address}\n")

        await run_cluster(crew, file, folder, options, tell=tell)

    # Tasks of a cluster on one machine could read them in /proc.
    secrets = [account.token for account in file.auth.users.values()]
    secrets += [file.storage.database] if file.storage.database else []
    erase_from_environment({secret.reveal() for secret in secrets})
    os.umask(_PRIVATE)
    run_process(main)


def _default_address(file: ClusterFile) -> tuple[str, int]:
    """Where the controller listens by its file. Behind a Service it is reached from other machines."""
    if (service := file.controller.service) is not None:
        return "0.0.0.0", service.port  # noqa: S104 -- callers show tokens
    local = file.controller.local or LocalController()
    return local.host, local.port


def _token_in(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError as error:
        raise Unauthenticated(
            "iris.no_token",
            f"The token could not be read from {path}: {error.strerror}.",
            hint="Mount the Secret of the slice there.",
        ) from None


def _address_in(config: Path | None) -> str:
    if config is None:
        raise Invalid(
            "iris.no_controller",
            "Where is the controller?",
            hint="Name it: --controller HOST:PORT, or --config FILE.",
        )
    file = load(config, ClusterFile, os.environ)
    if file.platform.in_cluster is None:
        raise Invalid(
            "iris.no_controller",
            "The cluster file does not say where workers find the controller.",
            hint="Name it: --controller HOST:PORT.",
        )
    return kubernetes_settings(file).controller
