"""`neorion drydock build-image` and `load-image`."""

from pathlib import Path

import click

from neorion.drydock.cli.options import name_option, require_extras
from neorion.keel.cli import Command
from neorion.keel.cli.kit import Output


@click.command("build-image", cls=Command)
@click.argument("context", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="FOLDER")
@click.option("--tag", required=True, metavar="IMAGE", help="What the image shall be called.")
@click.option(
    "--file",
    "dockerfile",
    type=click.Path(path_type=Path, exists=True),
    help="The Dockerfile, if not in FOLDER.",
)
@name_option
def build_image_command(out: Output, context: Path, *, tag: str, dockerfile: Path | None, name: str) -> None:
    """Build an image from a Dockerfile and give it to a cluster.

    Base images are stand-ins made on this machine; nothing is fetched from an image registry.
    """
    require_extras()
    from neorion.drydock.cli.commands.image_impl import give_build  # noqa: PLC0415 -- as above
    from neorion.drydock.cli.session import run  # noqa: PLC0415 -- the help does not need it
    from neorion.drydock.clusters import ClusterManager  # noqa: PLC0415 -- as above

    cluster = ClusterManager.of(out.env).find(name)
    names = run(out, f"image {tag}", lambda tell: give_build(cluster, context, tag, dockerfile))  # noqa: ARG005 -- buildah tells nothing
    out.text("".join(f"{each}\n" for each in names))


@click.command("load-image", cls=Command)
@click.argument("archive", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@name_option
def load_image_command(out: Output, archive: Path, name: str) -> None:
    """Give a cluster the images of an archive.

    As `docker save` or `buildah push oci-archive:` writes it.
    """
    require_extras()
    from neorion.drydock.cli.commands.image_impl import give_archive  # noqa: PLC0415 -- as above
    from neorion.drydock.cli.session import run  # noqa: PLC0415 -- the help does not need it
    from neorion.drydock.clusters import ClusterManager  # noqa: PLC0415 -- as above

    cluster = ClusterManager.of(out.env).find(name)
    names = run(out, f"images of {archive.name}", lambda tell: give_archive(cluster, archive))  # noqa: ARG005 -- as above
    out.text("".join(f"{each}\n" for each in names))
