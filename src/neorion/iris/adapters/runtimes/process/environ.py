"""Environment of a task: its variables and its program. The worker's own variables, e.g. secrets, are not inherited."""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from neorion.iris.adapters.runtimes.process import procfs
from neorion.iris.adapters.runtimes.process.protocol import StartRequest

# Exit codes of shells.
NOT_FOUND = 127
NOT_RUNNABLE = 126
# The disk had no room for the value of a function: "input/output error" in sysexits.h.
NO_ROOM = 74

_PATH = os.pathsep.join(
    (
        str(Path(sys.executable).parent),
        "/usr/local/sbin",
        "/usr/local/bin",
        "/usr/sbin",
        "/usr/bin",
        "/sbin",
        "/bin",
    )
)
# Directory for lasting files of setup commands: one per environment, by its content.
KEPT = "IRIS_ENV_DIR"
BASE = {"PATH": _PATH, "LANG": "C.UTF-8"}


@dataclass(frozen=True, slots=True)
class Built:
    """Built environment of a task: folders of packages, folders of programs, and variables."""

    packages: tuple[str, ...]
    programs: tuple[str, ...]
    variables: tuple[tuple[str, str], ...] = ()


class TaskStartError(Exception):
    """The task cannot be started. The sentence is for the user."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


def variables(job: StartRequest, work: str, built: Built | None = None) -> dict[str, str]:
    found = BASE | {"HOME": work, "IRIS_WORKDIR": work} | dict(job.variables)
    if built is not None:
        found["PYTHONPATH"] = os.pathsep.join(filter(None, (*built.packages, found.get("PYTHONPATH"))))
        found["PATH"] = os.pathsep.join((*built.programs, found["PATH"]))
        found |= dict(built.variables)
    return found | {procfs.MARK: job.attempt}


def program(argv: list[str], found: dict[str, str]) -> str:
    """Path of the command's program, found with the task's own PATH and working directory."""
    path = shutil.which(argv[0], path=found["PATH"])
    if path is not None:
        return path
    if "/" in argv[0] and os.path.exists(argv[0]):  # noqa: PTH110 -- relative to the task's directory, as it is
        raise TaskStartError(NOT_RUNNABLE, f'"{argv[0]}" is not executable.')
    raise TaskStartError(NOT_FOUND, f'There is no program "{argv[0]}" on this worker.')


def unrunnable(argv: list[str], error: OSError) -> TaskStartError:
    return TaskStartError(NOT_RUNNABLE, f'"{argv[0]}" could not be executed: {error.strerror}.')
