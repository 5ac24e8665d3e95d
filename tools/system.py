"""Installs the system packages of the list as root on Debian; elsewhere says the one command that would.

Standard library only. Importable by the tests, which ask it what is missing.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

LIST = Path(__file__).parent / "system-packages.txt"
# Debian keeps servers and administration tools out of an ordinary user's PATH.
EXTRA_PATH = (
    "/usr/sbin",
    "/sbin",
    "/usr/local/sbin",
    "/usr/lib/cni",
    *sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin"))),
)


def packages() -> dict[str, str]:
    """Program → Debian package."""
    rows = (line.split("#")[0].split() for line in LIST.read_text().splitlines())
    return {row[0]: row[1] for row in rows if row}


def find(program: str) -> str | None:
    return shutil.which(program, path=os.pathsep.join([os.environ.get("PATH", ""), *EXTRA_PATH]))


def missing() -> list[str]:
    return sorted({package for program, package in packages().items() if find(program) is None})


def main() -> int:
    absent = missing()
    if not absent:
        return 0
    command = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *absent]
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print("system: not installed:", ", ".join(absent), "- tests that need them are skipped.")
        print("system: on Debian, as root:", " ".join(command))
        return 0
    print("system: installing", ", ".join(absent))
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "--quiet"], check=False, stdout=subprocess.DEVNULL, env=quiet)
    if subprocess.run(command, check=False, stdout=subprocess.DEVNULL, env=quiet).returncode != 0:
        print("system: could not install them; tests that need them are skipped.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
