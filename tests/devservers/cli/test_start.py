"""What stands between a person and the first line: what a command loads before it can speak."""

import json
import os
import sys
from pathlib import Path

import anyio
import pytest
from aiohttp import web

from tests.keel.kube.stage import serving

pytestmark = pytest.mark.anyio

SERVER = {
    "metadata": {"name": "mydev", "namespace": "dev-ann", "uid": "1"},
    "spec": {"flavor": "cpu-small"},
    "status": {"phase": "Running", "ready": True},
}
CONFIG = """
current-context: here
clusters:
- name: here
  cluster:
    server: {server}
users:
- name: me
  user:
    token: secret
contexts:
- name: here
  context:
    cluster: here
    user: me
    namespace: dev-ann
"""
# Each takes a part of the time that somebody looks at nothing; each has come along unnoticed once.
HEAVY = (
    "aiohttp",
    "yarl",
    "uvloop",
    "pydantic",
    "rich",
    "google",
    "connectrpc",
    "importlib.metadata",
    "anyio._backends._asyncio",
    "email",
    "pickle",
    "tarfile",
    "tempfile",
    "zoneinfo",
    "cronsim",
    "difflib",
    "hashlib",
    "json",
    "getpass",
    "neorion.devservers.client.async_client",
    "neorion.devservers.client.file_copy",
    "neorion.devservers.client.extend",
    "neorion.devservers.client.create_request",
    "neorion.devservers.decide.decision",
    "neorion.devservers.decide.manifests",
    "neorion.devservers.model.crds",
    "neorion.keel.kube.control",
    "neorion.keel.kube.streams",
    "neorion.keel.run.supervisor",
)
LOADS = f"""
import sys
from neorion.devservers.cli import app
from neorion.keel.cli import run
code = run(app, sys.argv[1:])
print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)
sys.exit(code)
"""
# Tells when the client is first wanted.
TELLS = """
import sys
from neorion.devservers.cli import app
from neorion.keel.cli import run

class Teller:
    def find_spec(self, name, *_):
        if name in ("asyncio", "msgspec", "neorion.devservers.client"):
            print("loads", name, file=sys.stderr, flush=True)

sys.meta_path.insert(0, Teller())
sys.exit(run(app, sys.argv[1:]))
"""


async def answer(request: web.Request) -> web.Response:
    if request.path.endswith("/devservers"):
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": [SERVER]})
    return web.json_response(SERVER)


@pytest.mark.parametrize(
    ("command", "shown"), [(["list"], "mydev"), (["cost"], "mydev"), (["cost", "mydev"], "mydev")]
)
async def test_what_a_short_command_does_not_load(command: list[str], shown: str, tmp_path: Path):
    config = tmp_path / "config"
    async with serving(answer) as server:
        config.write_text(CONFIG.format(server=server))
        program = [sys.executable, "-c", LOADS, *command, "--kubeconfig", str(config)]
        done = await anyio.run_process(program, check=False)
    assert (done.stderr.decode(), done.returncode) == ("[]\n", 0)
    assert shown in done.stdout.decode()


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (["create", "mydev", "--wait"], "Asking for mydev ...\n"),
        (["start", "mydev"], "Starting mydev ...\n"),
    ],
    ids=["create", "start"],
)
async def test_who_waits_is_told_before_anything_is_loaded(command: list[str], line: str, tmp_path: Path):
    nowhere = tmp_path / "none"
    program = [sys.executable, "-c", TELLS, *command, "--kubeconfig", str(nowhere)]
    done = await anyio.run_process(program, check=False)
    told = done.stderr.decode()
    assert told.startswith(line)
    assert "loads neorion.devservers.client" in told
    assert "No kubeconfig exists" in told


async def test_create_reads_the_flavors_once(tmp_path: Path):
    reads = 0

    async def api(request: web.Request) -> web.Response:
        nonlocal reads
        if request.path.endswith("/devserverflavors"):
            reads += 1
            flavor = {"metadata": {"name": "cpu-small"}, "spec": {"resources": {}}}
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": [flavor]})
        return web.json_response(SERVER)

    config = tmp_path / "config"
    async with serving(api) as server:
        config.write_text(CONFIG.format(server=server))
        program = [sys.executable, "-c", LOADS, "create", "mydev", "cpu-small", "--kubeconfig", str(config)]
        done = await anyio.run_process(program, check=False)
    assert (done.returncode, reads) == (0, 1), done.stderr.decode()


async def test_a_program_that_waits_is_told_nothing_but_the_error(tmp_path: Path):
    command = ["create", "mydev", "--wait", "-o", "json", "--kubeconfig", str(tmp_path / "none")]
    done = await anyio.run_process([sys.executable, "-c", LOADS, *command], check=False)
    first, _ = done.stderr.decode().splitlines()
    assert json.loads(first)["error"]["code"] == "kube.no_config"


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("devctl ssh ", "mydev"),
        ("devctl ssh my", "mydev"),
        ("devctl ssh other", ""),
        ("devctl delete mydev m", "mydev"),
        ("devctl cost ", "mydev"),
        ("devctl update mydev --flavor ", "cpu-small"),
        ("devctl create new c", "cpu-small"),
    ],
)
async def test_a_shell_is_offered_the_names_that_are_there(words: str, offered: str, tmp_path: Path):
    async def names(request: web.Request) -> web.Response:
        name = "cpu-small" if request.path.endswith("/devserverflavors") else "mydev"
        thing = {**SERVER, "metadata": {"name": name}, "spec": {"flavor": "cpu-small", "resources": {}}}
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": [thing]})

    config = tmp_path / "config"
    async with serving(names) as server:
        config.write_text(CONFIG.format(server=server))
        assert await completed(words, config) == offered


async def test_a_shell_is_offered_nothing_where_nobody_answers(tmp_path: Path):
    config = tmp_path / "config"
    config.write_text(CONFIG.format(server="http://127.0.0.1:9"))
    assert await completed("devctl ssh ", config) == ""


async def completed(words: str, config: Path) -> str:
    asked = {"_DEVCTL_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    program = [sys.executable, "-c", "from neorion.devservers.devctl import main; main()"]
    env = {**os.environ, **asked, "KUBECONFIG": str(config)}
    done = await anyio.run_process(program, check=False, env=env)
    assert done.stderr == b""
    return ",".join(line.removeprefix("plain,") for line in done.stdout.decode().splitlines())
