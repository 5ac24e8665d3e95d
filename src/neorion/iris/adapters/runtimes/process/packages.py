"""Python packages of tasks: installed once for each list, side by side, and shared by every attempt that asks for the same."""

import fcntl
import hashlib
import json
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path

from neorion.keel.base import Invalid


def installed(wanted: Sequence[str], cache: Path, last_lines: Callable[[], str]) -> Path:
    """The directory with these packages. Whoever comes first installs, the others wait for it; a failure is not kept."""
    key = hashlib.sha256(json.dumps([sys.version, sysconfig.get_platform(), *wanted]).encode()).hexdigest()[
        :32
    ]
    done = cache / key
    if done.is_dir():
        return done
    with (cache / f"{key}.lock").open("w") as lock:
        # The kernel lets go of the lock when its holder dies, so a killed installation never blocks the next one.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.is_dir():
            return done
        unfinished = cache / f"{key}.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        command = [sys.executable, "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
        code = subprocess.run([*command, "--target", unfinished, "--", *wanted], check=False).returncode  # noqa: S603 -- the order's own packages
        if code != 0:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise Invalid(
                "runtime.packages",
                f"The packages {', '.join(wanted)[:200]} could not be installed. The log ends:\n{last_lines()}",
                hint="try the same list with: pip install --target",
            )
        unfinished.rename(done)
    return done
