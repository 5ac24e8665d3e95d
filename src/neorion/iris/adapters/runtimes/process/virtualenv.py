"""A Python of its own for each environment that has setup commands: what they install stays in it.

It finds the worker's packages behind its own, so that a task still has everything that the worker has.
"""

import os
import site
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

# The files by which projects name what they install. A bundle with other contents in them is another environment.
MANIFESTS = (
    "Pipfile.lock",
    "environment.yaml",
    "environment.yml",
    "poetry.lock",
    "pylock.toml",
    "pyproject.toml",
    "requirements.txt",
    "setup.cfg",
    "setup.py",
    "uv.lock",
)
# Python reads each line that begins with "import" of such a file when it starts.
_WORKER = "worker.pth"


def create(folder: Path) -> None:
    """Makes an empty environment; what an earlier try has left there goes."""
    venv.EnvBuilder(clear=True, symlinks=True, with_pip=False).create(folder)
    theirs = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    lines = [f"import sys, site; {path!r} in sys.path or site.addsitedir({path!r})\n" for path in theirs]
    (packages(folder) / _WORKER).write_text("".join(lines), encoding="utf-8")
    for name in ("pip", "pip3", f"pip{sys.version_info.major}.{sys.version_info.minor}"):
        pip = folder / "bin" / name
        # The worker's own pip would install into the worker.
        pip.write_text(f'#!/bin/sh\nexec "{folder}/bin/python" -P -m pip "$@"\n', encoding="utf-8")
        pip.chmod(0o755)


def packages(folder: Path) -> Path:
    """The folder of its packages."""
    return Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))


def activate(folder: Path) -> None:
    """Lets this process import the packages, before those of the worker. Editable ones are named in .pth files."""
    before = [*sys.path]
    site.addsitedir(str(packages(folder)))
    added = [path for path in sys.path if path not in before]
    sys.path[:] = [*before[:1], *added, *before[1:]]


def named_files(setup: Sequence[str], work: Path) -> list[Path]:
    """The files of a bundle on which setup depends: manifests, and what the commands name."""
    words = {word.strip("'\"") for line in setup for word in line.replace("=", " ").split()}
    names = sorted({*MANIFESTS, *words})
    inside = (Path(os.path.normpath(work / name)) for name in names if name)
    return [path for path in inside if path.is_relative_to(work) and path.is_file()]
