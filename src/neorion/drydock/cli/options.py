"""Options that several commands share."""

from pathlib import Path

import click

from neorion.keel.cli.kit import require_extra

name_option = click.option("--name", default="drydock", help="The cluster's name.")
binaries_option = click.option(
    "--binaries",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="FOLDER",
    help="Ready programs (kube-apiserver, etcd, kubectl, …) to use instead of those built here.",
)


def require_extras() -> None:
    """Requires the packages that drydock needs beyond the client."""
    require_extra("drydock", "kube")
