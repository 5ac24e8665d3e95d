"""The two operators as processes: ours as a cluster runs it, and the reference, built from Go beside this file."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import anyio

from neorion.devservers.decide.scripts import SCRIPTS
from neorion.drydock.binaries import BinaryCache, ignore_progress
from neorion.drydock.binaries.build import build
from neorion.drydock.binaries.products import Product
from neorion.drydock.cluster import Cluster
from neorion.keel.kube import ObjectKey

# The operator's own.
NAMESPACE: Final = "bench"
# As a lab has them, a namespace for each person: Kubernetes' controllers go through all of one for every change in it.
PER_NAMESPACE: Final = 10
REFERENCE: Final = Product(
    "reference",
    "sigs.k8s.io/controller-runtime",
    ".",
    ("reference",),
    tools=Path(__file__).parent,
)
Place = Callable[[int], ObjectKey]
_PORT: Final = 18_980
_OURS: Final = [sys.executable, "-m", "neorion.devservers"]
_COMPILED: Final = Path("/tmp/bench-devservers-compiled")  # noqa: S108 -- made anew from the sources whenever they change


def spread(number: int) -> ObjectKey:
    """A server where its owner's servers are."""
    return ObjectKey(f"dev-{number // PER_NAMESPACE:04d}", f"dev-{number:05d}")


def together(number: int) -> ObjectKey:
    """A server where all the others are."""
    return ObjectKey(NAMESPACE, f"dev-{number:05d}")


async def built() -> Path:
    """The reference's program, in the user's cache; and ours compiled, as it is in its image."""
    shelf = BinaryCache.of()
    await build(REFERENCE, shelf, ignore_progress)
    await anyio.run_process([*_OURS, "operator", "--help"], env=_environment(), stdout=subprocess.DEVNULL)
    return shelf.folder(REFERENCE) / "reference"


def ours(cluster: Cluster) -> list[str]:
    file = cluster.layout.folder / "operator.yaml"
    file.write_text(f"namespace: {NAMESPACE}\nport: {_PORT}\ndefault_image: any\n")
    files = ["--config", str(file), "--kubeconfig", str(cluster.kubeconfig)]
    return [*_OURS, "operator", "--log", "json", *files]


def reference(cluster: Cluster, program: Path) -> list[str]:
    return [str(program), str(cluster.kubeconfig), "", json.dumps(dict(SCRIPTS))]


@contextmanager
def side(name: str, command: list[str]) -> Generator["subprocess.Popen[bytes]"]:
    with Path(f"/tmp/bench-devservers-{name}.log").open("w") as log:  # noqa: S108 -- overwritten by the next run
        process = subprocess.Popen(command, stdout=log, stderr=log, env=_environment())
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(_COMPILED)}
