"""Options that several commands take."""

from pathlib import Path

import click

name_option = click.option("--name", default="drydock", help="The cluster's name.")
binaries_option = click.option(
    "--binaries",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="FOLDER",
    help="Ready programs (kube-apiserver, etcd, kubectl, …) to use instead of those built here.",
)
