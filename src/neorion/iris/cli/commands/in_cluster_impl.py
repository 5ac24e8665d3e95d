"""Implementation of `iris cluster up`, `down`, `tunnel` and `logs`."""

from pathlib import Path

from neorion.iris.cli import in_cluster
from neorion.keel.cli.kit import Output, confirm


def up_command(
    out: Output, config: Path, kubeconfig: Path | None, context: str, *, dry_run: bool, wait: bool
) -> None:
    installation = in_cluster.Installation.of(out, config, kubeconfig, context)
    if dry_run:
        in_cluster.show(out, installation)
    else:
        in_cluster.up(out, installation, wait=wait)


def down_command(
    out: Output, config: Path, kubeconfig: Path | None, context: str, *, purge: bool, yes: bool
) -> None:
    installation = in_cluster.Installation.of(out, config, kubeconfig, context)
    what = "with all jobs and results" if purge else "and end what runs there"
    confirm(f"Remove iris from the namespace {installation.names.namespace}, {what}?", yes=yes)
    in_cluster.down(out, installation, purge=purge)


def tunnel_command(out: Output, config: Path, kubeconfig: Path | None, context: str, port: int) -> None:
    in_cluster.tunnel(out, in_cluster.Installation.of(out, config, kubeconfig, context), port)


def logs_command(
    out: Output, config: Path, kubeconfig: Path | None, context: str, *, follow: bool, tail: int | None
) -> None:
    in_cluster.logs(
        out, in_cluster.Installation.of(out, config, kubeconfig, context), follow=follow, tail=tail
    )
