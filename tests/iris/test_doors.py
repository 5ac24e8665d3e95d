"""The names users and manifests type lead where they should."""

import subprocess
import sys

import pytest

import iris
import iris.client
import neorion.iris.client
from neorion.keel.base import QuotaExceeded


@pytest.mark.parametrize("room", ["controller", "worker"])
def test_the_programs_of_the_documents_take_their_flags(room: str):
    program = [sys.executable, "-m", f"iris.cluster.{room}.main", "serve"]
    flags = {
        "controller": ["--host", "--port", "--config", "--bundle-prefix"],
        "worker": ["--config", "--runtime"],
    }
    told = subprocess.run([*program, "--help"], capture_output=True, text=True, check=True).stdout
    assert all(flag in told for flag in flags[room])
    wrong = subprocess.run([*program, "--confg", "x"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "--config" in wrong.stderr
    assert f"See: python -m neorion.iris {room} serve --help" in wrong.stderr


def test_a_runtime_of_the_documents_without_its_image_is_refused_by_name():
    program = [sys.executable, "-m", "iris.cluster.worker.main", "serve", "--runtime", "containerd"]
    told = subprocess.run(program, capture_output=True, text=True, check=False)
    assert told.returncode != 0
    assert "The runtime containerd needs an image for tasks." in told.stderr
    assert "iris.no_task_image" in told.stderr


@pytest.mark.parametrize("name", iris.client.__all__)
def test_the_client_is_the_one_behind_the_door(name: str):
    assert getattr(iris.client, name) is getattr(neorion.iris.client, name)


def test_the_documents_name_for_a_full_quota_is_ours():
    assert iris.QuotaExhaustedError is QuotaExceeded
