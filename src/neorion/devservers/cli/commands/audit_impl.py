"""The work of `devctl admin audit`."""

from pathlib import Path

from neorion.devservers.cli.audit import search, verify
from neorion.keel.cli.kit import Output


def verify_command(out: Output, files: tuple[Path, ...]) -> int:
    return verify(out, files)


def search_command(out: Output, files: tuple[Path, ...], of_user: str, **fields: str) -> None:
    search(out, files, {"user": of_user, **fields})
