"""`iris cluster up` with a cluster file that this version does not implement."""

import subprocess
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).parent.parent / "cluster_files" / "kubernetes.yaml"


def up(config: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run it without a cluster: looking for one fails with another code."""
    command = [
        str(Path(sys.executable).with_name("iris")),
        "cluster",
        "up",
        "--config",
        str(config),
        *options,
    ]
    return subprocess.run(
        command,
        env={"KUBECONFIG": str(config.parent / "none"), "HOME": str(config.parent)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_an_unsupported_runtime_is_refused_before_the_cluster_is_touched(tmp_path: Path, options: list[str]):
    config = tmp_path / "cluster.yaml"
    config.write_text(FILE.read_text().replace("runtime: process", "runtime: containerd"))
    done = up(config, *options)
    assert "iris.unserved" in done.stderr
    assert "containerd" in done.stderr
    assert (done.returncode, done.stdout) == (2, "")


def test_the_same_file_with_a_supported_runtime_is_shown(tmp_path: Path):
    config = tmp_path / "cluster.yaml"
    config.write_text(FILE.read_text())
    done = up(config, "--dry-run")
    assert done.returncode == 0
    assert "kind: Deployment" in done.stdout


def test_the_variables_of_the_controller_are_not_needed_here(tmp_path: Path):
    config = tmp_path / "cluster.yaml"
    config.write_text(FILE.read_text() + "storage: { database: '${IRIS_DATABASE}' }\n")
    done = up(config, "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")
    assert "database: '${IRIS_DATABASE}'" in done.stdout


def test_a_variable_that_shapes_the_objects_is_needed_here(tmp_path: Path):
    config = tmp_path / "cluster.yaml"
    config.write_text(FILE.read_text().replace("namespace: jobs", "namespace: ${TEAM}"))
    done = up(config, "--dry-run")
    assert (done.returncode, done.stdout) == (2, "")
    assert "The environment variable TEAM is not set" in done.stderr
