"""The identity of a worker, and the small files in its folder that keep it over restarts."""

from dataclasses import dataclass
from pathlib import Path

from neorion.iris.model import Resources


@dataclass(frozen=True, slots=True)
class Identity:
    """What a worker joins as. `worker` is its id from an earlier run, or "".

    The controller chooses the id when a worker joins for the first time.
    """

    slice: str
    host: str
    total: Resources
    attributes: dict[str, str]
    worker: str = ""


def read_text(path: Path) -> str:
    """The content of a file, or "" if it does not exist."""
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""


def write_text(path: Path, text: str) -> None:
    """Replaces the file at once. Only its owner may read it."""
    partial = path.with_suffix(".part")
    partial.touch(mode=0o600)
    partial.write_text(text)
    partial.replace(path)
