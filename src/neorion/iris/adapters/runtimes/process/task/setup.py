"""Setup of a task: its files, its packages, its setup commands. Runs in the attempt's own process."""

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from neorion.iris.adapters.runtimes.process import environ, virtualenv
from neorion.iris.adapters.runtimes.process.environ import Built
from neorion.iris.adapters.runtimes.process.layout import RuntimeLayout
from neorion.iris.adapters.runtimes.process.protocol import StartRequest
from neorion.iris.adapters.runtimes.process.task.build_cache import exclusive, key_of
from neorion.iris.adapters.runtimes.process.task.bundle import unpack
from neorion.iris.adapters.runtimes.process.task.packages import installed
from neorion.keel.base import Invalid

# Part of a failed build's log to show; the log has all of it.
TAIL_LINES = 20
TAIL_BYTES = 4096


def prepare(job: StartRequest, files: RuntimeLayout, work: Path) -> Built | None:
    """Builds the task's environment, if it has one, and makes it importable in this process.

    All output goes to the attempt's log.
    """
    if job.bundle:
        unpack(Path(job.bundle), work)
    log = Path(files.attempt(job.attempt).log)
    built: Built | None = None
    if job.packages:
        packages = installed(job.packages, files.packages, lambda: tail(log))
        built = Built((str(packages),), (str(packages / "bin"),))
        sys.path.insert(1, str(packages))
    if job.setup:
        kept = files.environments / _key(job, work)
        python = kept.with_suffix(".python")
        built = Built(
            (str(virtualenv.packages(python)), *(built.packages if built else ())),
            (str(python / "bin"), *(built.programs if built else ())),
            ((environ.KEPT, str(kept)), ("VIRTUAL_ENV", str(python))),
        )
        found = environ.variables(job, str(work), built)
        _set_up_first(kept, python, lambda: _set_up(job.setup, found, log))
        virtualenv.activate(python)
    return built


def _key(job: StartRequest, work: Path) -> str:
    """Key of an environment: packages, commands, and the contents of the files that they depend on."""
    files = virtualenv.named_files(job.setup, work) if job.bundle else []
    contents = [f"{path.relative_to(work)} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files]
    return key_of(job.packages, job.setup, contents, [sys.prefix])


def _set_up_first(kept: Path, python: Path, set_up: Callable[[], None]) -> None:
    """Sets up. The first task of an environment does this alone, and the others wait, so that they find its files complete."""
    kept.mkdir(parents=True, exist_ok=True)
    done = kept.with_suffix(".done")
    if not done.exists():
        with exclusive(kept):
            if not done.exists():
                virtualenv.create(python)
                set_up()
                done.touch()
                return
    set_up()


def _set_up(lines: list[str], found: dict[str, str], log: Path) -> None:
    for line in lines:
        shell = ["/bin/sh", "-c", line]
        done = subprocess.run(shell, env=found, check=False)  # noqa: S603 -- setup is a shell's line by definition
        if done.returncode != 0:
            raise Invalid(
                "runtime.setup",
                f'The setup command "{line[:200]}" ended with {done.returncode}. The log ends:\n{tail(log)}',
                hint="Run it by hand in the same directory.",
            )


def tail(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - TAIL_BYTES))
        return "\n".join(file.read().decode(errors="replace").splitlines()[-TAIL_LINES:])
