"""Identity of a worker, and the small files in its folder that keep it over restarts."""

from dataclasses import dataclass
from pathlib import Path

from neorion.iris.model import Resources


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity with which a worker joins. `worker` is its id from an earlier run, or "".

    The controller chooses the id when a worker joins for the first time.
    """

    slice: str
    host: str
    total: Resources
    attributes: dict[str, str]
    worker: str = ""


def read_text(path: Path) -> str:
    """Content of a file, or "" if it does not exist."""
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""


def write_text(path: Path, text: str) -> None:
    """Replaces the file atomically. Only its owner may read it."""
    partial = path.with_suffix(".part")
    partial.touch(mode=0o600)
    partial.write_text(text)
    partial.replace(path)
