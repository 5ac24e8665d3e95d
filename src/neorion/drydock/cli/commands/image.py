"""`neorion drydock build-image` and `load-image`."""

from pathlib import Path

import click

from neorion.drydock.cli.options import name_option
from neorion.keel.cli import Command


@click.command("build-image", cls=Command, run=".image_impl:build_image_command", extras=("drydock", "kube"))
@click.argument("context", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="FOLDER")
@click.option("--tag", required=True, metavar="IMAGE", help="Name of the image.")
@click.option(
    "--file",
    "dockerfile",
    type=click.Path(path_type=Path, exists=True),
    help="The Dockerfile, if not in FOLDER.",
)
@name_option
def build_image_command() -> None:
    """Build an image from a Dockerfile and give it to a cluster.

    Base images are stand-ins made on this machine; nothing is fetched from an image registry.
    """


@click.command("load-image", cls=Command, run=".image_impl:load_image_command", extras=("drydock", "kube"))
@click.argument("archive", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@name_option
def load_image_command() -> None:
    """Give a cluster the images of an archive.

    As `docker save` or `buildah push oci-archive:` writes it.
    """
