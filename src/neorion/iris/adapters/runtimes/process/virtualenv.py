"""Virtual environment for each task environment with setup commands, which install into it.

The worker's packages follow its own on the path, so that a task can still import them.
"""

import os
import site
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

# Files in which projects declare their packages. Different contents in a bundle give a different environment.
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
# At its start, Python executes each line of such a file that begins with "import".
_WORKER = "worker.pth"


def create(folder: Path) -> None:
    """Creates an empty environment in place of an unfinished one."""
    venv.EnvBuilder(clear=True, symlinks=True, with_pip=False).create(folder)
    worker_paths = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    lines = [
        f"import sys, site; {path!r} in sys.path or site.addsitedir({path!r})\n" for path in worker_paths
    ]
    (packages(folder) / _WORKER).write_text("".join(lines), encoding="utf-8")
    for name in ("pip", "pip3", f"pip{sys.version_info.major}.{sys.version_info.minor}"):
        pip = folder / "bin" / name
        # The worker's own pip would install into the worker.
        pip.write_text(f'#!/bin/sh\nexec "{folder}/bin/python" -P -m pip "$@"\n', encoding="utf-8")
        pip.chmod(0o755)


def packages(folder: Path) -> Path:
    """Folder of the environment's packages."""
    return Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))


def activate(folder: Path) -> None:
    """Puts the packages on this process's path, before those of the worker. Editable ones are named in .pth files."""
    before = [*sys.path]
    site.addsitedir(str(packages(folder)))
    added = [path for path in sys.path if path not in before]
    sys.path[:] = [*before[:1], *added, *before[1:]]


def named_files(setup: Sequence[str], work: Path) -> list[Path]:
    """Files of a bundle that setup depends on: manifests, and files that the commands name."""
    words = {word.strip("'\"") for line in setup for word in line.replace("=", " ").split()}
    names = sorted({*MANIFESTS, *words})
    inside = (Path(os.path.normpath(work / name)) for name in names if name)
    return [path for path in inside if path.is_relative_to(work) and path.is_file()]
