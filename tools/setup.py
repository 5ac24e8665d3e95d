"""Builds the virtual environment that every make target runs in. Standard library only: it runs before anything is installed."""

import subprocess
import sys
import venv
from pathlib import Path


def main(folder: Path) -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 -- the sentence below is for those who have an older one
        print(f"Neorion needs Python 3.11 or newer, this is {sys.version.split()[0]}.")
        print("hint: name a newer one, for example: make PYTHON=python3.11 setup")
        return 1
    try:
        venv.create(folder, with_pip=True)
    except (subprocess.CalledProcessError, ModuleNotFoundError):
        print("This Python cannot create virtual environments: it comes without ensurepip.")
        print("hint: install it, on Debian with: apt-get install python3-venv")
        return 1
    pip = [str(folder / "bin" / "pip"), "--quiet", "--disable-pip-version-check", "install"]
    print("setup: installing pinned packages into", folder)
    for step in (
        [*pip, "--require-hashes", "--no-deps", "-r", "constraints.txt"],
        [*pip, "--no-deps", "--no-build-isolation", "--editable", "."],
    ):
        done = subprocess.run(step, check=False)
        if done.returncode != 0:
            print(
                "setup: failed; once the cause above is gone, run make setup again: it goes on where it stopped."
            )
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
