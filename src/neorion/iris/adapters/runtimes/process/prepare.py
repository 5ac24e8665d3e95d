"""What has to be there before the task: its files, its packages, its setup. Runs in the attempt's own process."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from neorion.iris.adapters.runtimes.process import surroundings
from neorion.iris.adapters.runtimes.process.bundle import unpack
from neorion.iris.adapters.runtimes.process.content import alone
from neorion.iris.adapters.runtimes.process.files import Files
from neorion.iris.adapters.runtimes.process.packages import installed
from neorion.iris.adapters.runtimes.process.wire import Job
from neorion.keel.base import Invalid

# What a person needs to see of a failed build; the log has all of it.
TAIL_LINES = 20
TAIL_BYTES = 4096


def prepare(job: Job, files: Files, work: Path) -> Path | None:
    """Returns the directory with the packages, where there are any. Everything printed goes to the attempt's log."""
    if job.bundle:
        unpack(Path(job.bundle), work)
    log = Path(files.attempt(job.attempt).log)
    packages = None
    if job.packages:
        packages = installed(job.packages, files.packages, lambda: tail(log))
    if job.setup:
        found = surroundings.variables(job, str(work), packages)
        _set_up_first(Path(found[surroundings.KEPT]), lambda: _set_up(job.setup, found, log))
    return packages


def _set_up_first(kept: Path, set_up: Callable[[], None]) -> None:
    """The first of an environment sets up alone, and those who came with it wait: what it kept, they find whole."""
    kept.mkdir(parents=True, exist_ok=True)
    done = kept.with_suffix(".done")
    if not done.exists():
        with alone(kept):
            if not done.exists():
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
                hint="run it by hand in the same directory",
            )


def tail(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - TAIL_BYTES))
        return "\n".join(file.read().decode(errors="replace").splitlines()[-TAIL_LINES:])
