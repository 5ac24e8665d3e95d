import hashlib
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


class Absent(Exception):
    """The peer cannot be had on this machine."""


def python_of(name: str) -> Path:
    """The interpreter of the peer's environment, which is made the first time."""
    pinned = HERE / "requirements" / f"{name}.txt"
    mark = hashlib.sha256(pinned.read_bytes()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser()
    folder = cache / "neorion" / "peers" / f"{name}-{mark}"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"{name}: installing into {folder.name}", flush=True)
        _run(name, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder))
        _run(name, "pip", "install", "--quiet", "--python", str(python), "-r", str(pinned))
        (folder / "ready").touch()
    return python


def _run(name: str, *args: str) -> None:
    done = subprocess.run([sys.executable, "-m", "uv", *args], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Absent(f"{name} cannot be installed: {done.stderr.strip()[-300:]}")
