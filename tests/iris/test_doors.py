"""The names users and manifests type lead where they should."""

import runpy
import subprocess
import sys
from types import ModuleType

import pytest

import iris
import iris.client
from neorion.keel.base import QuotaExceeded


@pytest.mark.parametrize("room", ["controller", "worker"])
def test_a_program_passes_its_arguments_on_and_ends_with_the_code_it_gets(
    room: str, monkeypatch: pytest.MonkeyPatch
):
    behind = ModuleType("neorion.iris.__main__")
    heard: list[list[str]] = []

    def main(argv: list[str]) -> int:
        heard.append(argv)
        return 7

    monkeypatch.setattr(behind, "main", main, raising=False)
    monkeypatch.setitem(sys.modules, "neorion.iris.__main__", behind)
    monkeypatch.setattr(sys, "argv", ["main", "serve", "--config", "/etc/iris/config.yaml"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(f"iris.cluster.{room}.main", run_name="__main__")
    assert ended.value.code == 7
    assert heard == [[room, "serve", "--config", "/etc/iris/config.yaml"]]


@pytest.mark.parametrize("name", ["AsyncIrisClient", "IrisClient", "Job"])
def test_the_client_is_the_one_behind_the_door(name: str, monkeypatch: pytest.MonkeyPatch):
    behind = ModuleType("neorion.iris.client")
    monkeypatch.setattr(behind, name, object(), raising=False)
    monkeypatch.setitem(sys.modules, "neorion.iris.client", behind)
    assert getattr(iris.client, name) is getattr(behind, name)
    assert name in dir(iris.client)


def test_a_name_that_is_not_there_is_missing_as_in_any_module():
    with pytest.raises(AttributeError, match="IrisClient"):
        _ = iris.client.IrisCleint


def test_the_documents_name_for_a_full_quota_is_ours():
    assert iris.QuotaExhaustedError is QuotaExceeded


def test_the_doors_open_without_what_is_behind_them():
    code = "import iris.client, iris.cluster.controller.main, sys; sys.exit('neorion.iris' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
