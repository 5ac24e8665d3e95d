"""What every test may count on: one async backend, a cluster, and parts of the machine asked for by name."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import anyio
import hypothesis
import pytest

from neorion.drydock.binaries import ready
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager
from neorion.drydock.control import PROGRAMS
from tests import shaken
from tools import leftovers, system

# `cluster` and `kube_namespace`, as other projects have them.
pytest_plugins = [
    "neorion.drydock.testing.plugin",
    "pytester",
    "tests.plugins.limits",
    "tests.plugins.order",
    "tests.plugins.results",
]

# Of this checkout: two of them may be tested at the same time.
_CLUSTER = f"test-{hashlib.sha256(str(Path(__file__).parent).encode()).hexdigest()[:8]}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """More than there are cores: tests wait for real programs for a third of their time."""
    return max(2, (os.cpu_count() or 1) * 3 // 2)


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, Mapping[str, Any]]:
    return shaken.backend()


def _need_cluster() -> None:
    if not ready(*PROGRAMS, "kwok", "kueue", "coredns"):
        pytest.skip("the programs of clusters are not built (neorion drydock build)")


def _need_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("this needs the rights of root")


def _need_nobody() -> None:
    """Tests that give up the rights of root to become nobody, who has to be let in."""
    _need_root()
    command = [sys.executable, "-c", "import neorion"]
    try:
        subprocess.run(command, user="nobody", cwd="/", env={}, capture_output=True, check=True)
    except (PermissionError, subprocess.CalledProcessError):
        pytest.skip("others may not read this checkout, or run its Python")


def _need_go() -> None:
    if shutil.which("go") is None:
        pytest.skip("Go is not installed")


def _need_gvisor() -> None:
    if not ready("runsc"):
        pytest.skip("runsc is not built (neorion drydock build gvisor)")


def _need_gang_schedulers() -> None:
    if not ready("jobset", "coscheduling-scheduler"):
        pytest.skip("a gang scheduler is not built (neorion drydock build jobset scheduler-plugins)")


def _need_services() -> None:
    if not ready("karpenter", "prometheus", "traefik"):
        pytest.skip("an add-on is not built (neorion drydock build karpenter prometheus-server traefik)")


def _need_promtool() -> None:
    if not ready("promtool"):
        pytest.skip("promtool is not built (neorion drydock build prometheus)")


def _need_installation() -> None:
    if not os.environ.get("IRIS_COREWEAVE_URL"):
        pytest.skip("IRIS_COREWEAVE_URL names no installation of iris on CoreWeave")


# What no package of the list brings.
_OTHER_NEEDS = {
    "coreweave": _need_installation,
    "drydock": _need_cluster,
    "gang-schedulers": _need_gang_schedulers,
    "go": _need_go,
    "gvisor": _need_gvisor,
    "nobody": _need_nobody,
    "promtool": _need_promtool,
    "root": _need_root,
    "services": _need_services,
}


@pytest.fixture(scope="module")
def own_cluster() -> Generator[Cluster]:
    """A control plane that one file of tests may break."""
    _need_cluster()
    name = f"{_CLUSTER}-{os.getpid()}"
    yard = ClusterManager.of()
    try:
        yield anyio.run(yard.up, name)
    finally:
        anyio.run(yard.down, name)


def _choose_examples() -> None:
    """The same examples in every run, unless one explores: new ones are sought by `make soak`, not by whoever changes something else."""
    exploring = bool(os.environ.get("NEORION_EXPLORE"))
    # How long an example takes says more about the machine than about the code.
    hypothesis.settings.register_profile(
        "neorion",
        derandomize=not exploring,
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    hypothesis.settings.load_profile("neorion")


def _keep_bytecode() -> None:
    """Lets Python keep what it compiled, whatever the environment says: tests start thousands of programs."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def pytest_configure() -> None:
    _keep_bytecode()
    leftovers.mark_this_run()
    _choose_examples()
    # A run in the background of a shell inherits that Ctrl-C is ignored, and so would the programs that tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # A run that outlives its terminal inherits the same for SIGHUP, by which a bastion ends what its sessions run.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if seed := shaken.seed():
        items[:] = shaken.reordered(items, seed)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips what this machine cannot run, and says which package would change that."""
    known = system.packages()
    for mark in item.iter_markers("needs"):
        for program in mark.args:
            if program in _OTHER_NEEDS:
                _OTHER_NEEDS[program]()
            elif program not in known:
                pytest.fail(f'needs("{program}"): not in tools/system-packages.txt')
            elif system.find(program) is None:
                pytest.skip(f"{program} is not installed (Debian package {known[program]})")
