"""Creates the virtual environment of the make targets and installs one lock file into it.

Standard library only: it runs before anything is installed. uv does the work. Without uv on PATH, pip fetches the
version that constraints.txt pins, and hands on its own settings (index, certificates).
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

PINS = Path("constraints.txt")
# What pip is configured with → what uv reads.
SETTINGS = {
    "cert": "SSL_CERT_FILE",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "index-url": "UV_DEFAULT_INDEX",
}
HINTS = {
    "python": "Name a newer one, e.g. make PYTHON=python3.12 demo",
    "pip": "Install uv, or pip for this Python. On Debian: apt-get install python3-venv",
    "install": "Run the same command again once the cause above is gone. It continues where it stopped.",
}


class SetupError(Exception):
    """Setup cannot continue. Carries a key of `HINTS`."""

    def __init__(self, sentence: str, hint: str) -> None:
        super().__init__(sentence)
        self.hint = HINTS[hint]


def main(folder: Path, lock: Path) -> int:
    try:
        check_python()
        uv = str(folder / "bin" / "uv") if (folder / "bin" / "uv").exists() else shutil.which("uv")
        if uv is None:
            with step("uv, which installs the rest"):
                uv = fetch_uv(folder)
        install(uv, folder, lock)
    except SetupError as error:
        print(f"setup: {error}")
        print(f"hint: {error.hint}")
        return 1
    return 0


def check_python() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036 -- the sentence is for those who have an older one
        raise SetupError(f"Neorion needs Python 3.11 or newer, this is {sys.version.split()[0]}.", "python")


def install(uv: str, folder: Path, lock: Path) -> None:
    # The system's certificates, as other programs use them: a company's proxy has its own. The name depends on the version.
    for name in ("UV_SYSTEM_CERTS", "UV_NATIVE_TLS"):
        os.environ.setdefault(name, "true")
    with step(f"environment in {folder}"):
        run(uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(folder))
    into = ("pip", "install", "--quiet", "--python", str(folder), "--no-deps")
    with step(f"{len(re.findall('^[^ #].*==', lock.read_text(), re.MULTILINE))} packages of {lock}"):
        run(uv, *into, "--require-hashes", "--requirement", str(lock))
    with step("this checkout"):
        run(uv, *into, "--editable", ".")


def fetch_uv(folder: Path) -> str:
    """Installs the pinned uv into the environment, and returns its path."""
    # This Python's own pip spares the environment one, which takes seconds to unpack.
    own_pip = has("pip")
    # Debian keeps the module apart.
    if not own_pip and not has("ensurepip"):
        raise SetupError("There is neither uv nor pip to install packages with.", "pip")
    venv.create(folder, with_pip=not own_pip)
    python = str(folder / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python] if own_pip else [python, "-m", "pip"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as pinned:
        pinned.write(pin_of("uv"))
        pinned.flush()
        quiet = ("--quiet", "--disable-pip-version-check")
        run(*pip, "install", *quiet, "--require-hashes", "--no-deps", "--requirement", pinned.name)
    hand_on_settings(pip)
    return str(folder / "bin" / "uv")


def has(module: str) -> bool:
    spec = importlib.util.find_spec(module)
    # An empty folder of that name is not the module.
    return spec is not None and spec.origin is not None


def pin_of(package: str) -> str:
    """A package's entry in the lock, with its hashes."""
    found = re.search(rf"^{package}==.*(\n    .*)*\n", PINS.read_text(), re.MULTILINE)
    if found is None:
        raise SetupError(f"{PINS} does not pin {package}.", "install")
    return found[0]


def hand_on_settings(pip: list[str]) -> None:
    """Gives uv the index and the certificates that pip is configured with."""
    listed = subprocess.run([*pip, "config", "list"], check=False, capture_output=True, text=True).stdout
    for name, value in re.findall(r"^[^=]*\.([a-z-]+)='(.*)'$", listed, re.MULTILINE):
        if name in SETTINGS:
            os.environ.setdefault(SETTINGS[name], value)


def run(*command: str) -> None:
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise SetupError(f"The installation failed.\n{done.stdout.rstrip()}", "install")


@contextmanager
def step(name: str) -> Generator[None]:
    """Prints a step when it begins, and its seconds when it ends."""
    began = time.perf_counter()
    print(f"setup: {name:40}", end="", flush=True)
    try:
        yield
    except BaseException:
        print()
        raise
    print(f"{time.perf_counter() - began:6.1f} s")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
