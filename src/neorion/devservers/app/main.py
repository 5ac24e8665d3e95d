"""`python -m neorion.devservers operator`."""

import asyncio
import os
from functools import partial
from pathlib import Path
from typing import Final, TypedDict, Unpack

import click
import uvloop

from neorion.devservers.app.run import OperatorConfig, run_operator
from neorion.keel.base import Duration, Invalid, UnitError
from neorion.keel.cli import App, run
from neorion.keel.cli.kit import Output
from neorion.keel.clock import SystemClock
from neorion.keel.kube.client import find_cluster
from neorion.keel.run import Supervisor, run_in_fork, run_process
from neorion.keel.telemetry.setup import LogFormat, setup


class Listening(TypedDict):
    """The address of the bastion, and the places that it writes to."""

    host: str
    port: int
    audit: Path
    direct: bool
    recordings: Path | None
    console_image: str
    replica: str
    user_ca: Path | None
    post_quantum: bool
    host_name: tuple[str, ...]


class Provisioning(TypedDict):
    """The keys that the user controller trusts, and the folder for the bastion's token."""

    keys_url: str
    bastion_token: Path | None
    user_ca: Path | None


# The bastion ends this long after its sessions, at the latest.
_ENDS_S: Final = 10.0

app = App("devservers", help="The processes behind development servers.", env_prefix="DEVSERVERS")


@app.command("operator")
@click.option("--config", type=click.Path(path_type=Path), help="The operator's file.")
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path), help="Kubeconfig file; inside a Pod, its own cluster."
)
@click.option("--context", default="", help="The context in the kubeconfig.")
@click.option("--log", default="people", type=click.Choice(["people", "json"]), help="Form of the log.")
def operator(out: Output, config: Path | None, kubeconfig: Path | None, context: str, log: str) -> None:
    """Turn DevServers into pods and volumes until told to stop."""
    setup(LogFormat(log))
    orders = run_in_fork(lambda: _orders(config))
    cluster = find_cluster(kubeconfig, context)
    out.say(f"operator of {cluster.server}")

    async def main(crew: Supervisor) -> None:
        await run_operator(crew, orders, cluster)

    # Halves the CPU of each request to the API server.
    run_process(main, loop_factory=uvloop.new_event_loop)


@app.command("user-controller")
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path), help="Kubeconfig file; inside a Pod, its own cluster."
)
@click.option("--context", default="", help="The context in the kubeconfig.")
@click.option(
    "--bastion-token",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="The folder that the bastion's container mounts as its service account.",
)
@click.option(
    "--keys-url",
    default="https://github.com/{login}.keys",
    metavar="URL",
    help="The address of a user's public keys, with {login} in it.",
)
@click.option(
    "--user-ca",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Public keys of authorities whose user certificates log in.",
)
@click.option("--log", default="people", type=click.Choice(["people", "json"]), help="Form of the log.")
def user_controller(
    out: Output, kubeconfig: Path | None, context: str, *, log: str, **options: Unpack[Provisioning]
) -> None:
    """Provision DevServerUsers until stopped."""
    from neorion.devservers.app.user_controller import UserControllerOptions, run_user_controller  # noqa: PLC0415 -- another process

    setup(LogFormat(log))
    cluster = find_cluster(kubeconfig, context)
    settings = UserControllerOptions(**options)
    out.say(f"user controller of {cluster.server}")

    async def main(crew: Supervisor) -> None:
        await run_user_controller(crew, cluster, settings)

    run_process(main, loop_factory=uvloop.new_event_loop)


@app.command("bastion")
@click.option("--host", default="127.0.0.1", help="The address to listen on.")
@click.option("--port", default=2222, type=click.IntRange(0, 65535), help="The port to listen on.")
@click.option(
    "--audit",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="The audit log.",
)
@click.option(
    "--recordings",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="The folder for recordings of terminals; without it nothing is recorded.",
)
@click.option(
    "--keep-days",
    default=90,
    type=click.IntRange(1, 3650),
    help="Days to keep old audit logs and recordings.",
)
@click.option(
    "--console-image", default="", metavar="IMAGE", help="The image of consoles; without it there are none."
)
@click.option(
    "--drain", default="0s", metavar="TIME", help="Keep open sessions this long when stopped, as in 2m."
)
@click.option(
    "--user-ca",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Public keys of authorities whose user certificates log in.",
)
@click.option(
    "--host-name",
    multiple=True,
    metavar="NAME",
    help="A name that users reach the bastion by, for its host certificate. May be repeated.",
)
@click.option("--post-quantum", is_flag=True, help="Refuse clients without post-quantum key exchange.")
@click.option("--replica", default="", metavar="NAME", help="The name of this replica (default: its Pod's).")
@click.option("--direct", is_flag=True, help="Connect to sshd by the addresses of Pods, as inside a cluster.")
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path), help="Kubeconfig file; inside a Pod, its own cluster."
)
@click.option("--context", default="", help="The context in the kubeconfig.")
@click.option("--log", default="people", type=click.Choice(["people", "json"]), help="Form of the log.")
def bastion(
    out: Output,
    kubeconfig: Path | None,
    context: str,
    *,
    log: str,
    keep_days: int,
    drain: str,
    **options: Unpack[Listening],
) -> None:
    """Let users log in by SSH and reach their servers until stopped."""
    from neorion.devservers.app.bastion import BastionOptions, run_bastion  # noqa: PLC0415 -- another process
    from neorion.devservers.bastion import Retention  # noqa: PLC0415 -- another process

    setup(LogFormat(log))
    patience = _duration(drain)
    settings = BastionOptions(**options, keep=Retention(days=keep_days), drain_s=patience.seconds)
    out.say(f"bastion on {settings.host}:{settings.port}")

    async def main(crew: Supervisor) -> None:
        await run_bastion(crew, partial(find_cluster, kubeconfig, context), settings)

    grace = Duration.of(seconds=patience.seconds + _ENDS_S)
    run_process(main, grace, loop_factory=uvloop.new_event_loop)


def _duration(text: str) -> Duration:
    try:
        return Duration.parse(text)
    except UnitError:
        raise Invalid(
            "devservers.drain",
            f'"{text}" is not a valid length of time.',
            hint="Write one such as 30s or 2m.",
        ) from None


@app.command("publish-usage")
@click.option(
    "--cloudwatch", default="Neorion/DevServers", metavar="NAMESPACE", help="The namespace of the metrics."
)
@click.option("--region", default="", help="AWS region; without it, the one of the environment.")
@click.option(
    "--endpoint", default="", metavar="URL", help="Where CloudWatch answers, if not at the usual address."
)
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path), help="Kubeconfig file; inside a Pod, its own account."
)
@click.option("--context", default="", help="The context in the kubeconfig.")
def publish_usage_command(
    out: Output, cloudwatch: str, region: str, endpoint: str, kubeconfig: Path | None, context: str
) -> None:
    """Publish cost and usage of all servers to CloudWatch once."""
    from neorion.devservers.adapters.cloudwatch import CloudWatch  # noqa: PLC0415 -- needs the extra aws
    from neorion.devservers.app.usage_publisher import publish_usage  # noqa: PLC0415 -- as above

    cluster = find_cluster(kubeconfig, context)
    count = asyncio.run(publish_usage(cluster, CloudWatch(cloudwatch, region, endpoint), SystemClock()))
    out.say(f"published {count} metrics to {cloudwatch}")


def _orders(file: Path | None) -> OperatorConfig:
    from neorion.devservers.app.config import orders_in  # noqa: PLC0415 -- its models stay out of the operator's memory

    return orders_in(file, os.environ)


def main(arguments: list[str]) -> int:
    return run(app, arguments)
