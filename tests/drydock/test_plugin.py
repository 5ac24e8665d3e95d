"""The fixtures as another project uses them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from neorion.drydock.clusters import ClusterManager

CONFTEST = """
import pytest
from neorion.drydock.simulated import SimulatedNodeGroup
from neorion.drydock.clusters import ClusterOptions

pytest_plugins = ["neorion.drydock.testing.plugin"]


@pytest.fixture(scope="session")
def cluster_wishes():
    return ClusterOptions(simulated=(SimulatedNodeGroup(2, "h100x8"),))


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"
"""
TESTS = """
import json
import subprocess

import pytest

seen = []


def kubectl(cluster, *words):
    command = [cluster.shelf.path("kubectl"), "--kubeconfig", cluster.kubeconfig, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("turn", [1, 2])
def test_a_namespace_each(cluster, kube_namespace, turn):
    kubectl(cluster, "create", "configmap", "same-name", "--namespace", kube_namespace)
    seen.append((cluster.name, kube_namespace))
    assert len({name for name, _ in seen}) == 1
    assert len({namespace for _, namespace in seen}) == turn


def test_nodes_as_wished(cluster):
    assert len(json.loads(kubectl(cluster, "get", "nodes", "-o", "json"))["items"]) == 2


@pytest.mark.anyio
async def test_with_a_loop(cluster, kube_namespace):
    async with cluster.api() as api:
        assert await api.get(f"/api/v1/namespaces/{kube_namespace}")
"""


@pytest.mark.needs("drydock")
@pytest.mark.timeout(300)
def test_a_project_gets_one_cluster_and_each_of_its_tests_a_namespace(tmp_path: Path):
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    (project / "pytest.ini").write_text("[pytest]\n")
    (project / "conftest.py").write_text(CONFTEST)
    (project / "test_it.py").write_text(TESTS)
    env = {**os.environ, "XDG_STATE_HOME": str(home)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=project, env=env, capture_output=True, text=True, check=False)
    assert "4 passed" in done.stdout, done.stdout
    # Nothing is left of it.
    assert ClusterManager.of(env).names() == []
