"""`neorion drydock kubeconfig` and `kubectl`."""

import click

from neorion.drydock.cli.options import name_option, require_extras
from neorion.keel.cli import Command
from neorion.keel.cli.kit import Output


@click.command("kubeconfig", cls=Command)
@name_option
def kubeconfig_command(out: Output, name: str) -> None:
    """Print where a cluster's kubeconfig is."""
    require_extras()
    from neorion.drydock.clusters import ClusterManager  # noqa: PLC0415 -- the help does not need it

    out.text(f"{ClusterManager.of(out.env).find(name).kubeconfig}\n")


@click.command(
    "kubectl",
    cls=Command,
    runs_user_command=True,
    context_settings={"allow_interspersed_args": False},
)
@click.argument("args", nargs=-1, type=click.UNPROCESSED, metavar="[ARGS]...")
@name_option
def kubectl_command(out: Output, args: tuple[str, ...], name: str) -> int:
    """Run kubectl as the administrator of a cluster.

    Options of this command come first, those of kubectl after its verb or after --:
    neorion drydock kubectl --name mine get pods -A.
    """
    require_extras()
    import subprocess  # noqa: PLC0415 -- the help does not need it

    from neorion.drydock.clusters import ClusterManager  # noqa: PLC0415 -- as above

    cluster = ClusterManager.of(out.env).find(name)
    env = cluster.kubectl_env(out.env)
    return subprocess.run([str(cluster.shelf.path("kubectl")), *args], env=env, check=False).returncode  # noqa: S603 -- that is the command
