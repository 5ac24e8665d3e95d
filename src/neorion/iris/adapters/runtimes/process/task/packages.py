"""Python packages of tasks: each list is installed once, and shared by all attempts with the same list."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from neorion.iris.adapters.runtimes.process.task.build_cache import exclusive, key_of
from neorion.keel.base import Invalid


def installed(requested: Sequence[str], cache: Path, last_lines: Callable[[], str]) -> Path:
    """Directory with these packages. The first attempt installs them and the others wait; a failure is not kept."""
    done = cache / key_of(requested)
    if done.is_dir():
        return done
    with exclusive(done):
        if done.is_dir():
            return done
        unfinished = done.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        command = [sys.executable, "-P", "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
        command += ["--target", str(unfinished), "--", *requested]
        code = subprocess.run(command, check=False).returncode  # noqa: S603 -- the order's own packages
        if code != 0:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise Invalid(
                "runtime.packages",
                f"The packages {', '.join(requested)[:200]} could not be installed. The log ends:\n{last_lines()}",
                hint="Try the same list with: pip install --target.",
            )
        unfinished.rename(done)
    return done
