"""`navarch serve` as an operator runs it: a process, a port, a fault, and a node replaced."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO, cast

import pytest

from tests.navarch.adapters.test_config_file import DOCUMENT

PROGRAM = [sys.executable, "-m", "neorion.navarch"]
# The document's example, with fake clouds in place of its own, on a port of this machine.
FAKE = (
    DOCUMENT.replace("0.0.0.0:50051", "127.0.0.1:0")
    .replace(
        "    api_key_env: LAMBDA_API_KEY",
        "    type: fake\n    boot: 100ms\n    faults: [{ after: 3s, machine: 1, xid: 79 }]",
    )
    .replace("    project: my-gcp-project", "    type: fake\n    boot: 100ms")
)
# Each look is a process of its own and takes about a second.
LOOKS_MAX = 60


@contextmanager
def serving(folder: Path, config: str = FAKE) -> Generator[tuple[str, dict[str, str]]]:
    """One life of a control plane: where it answers, and what those who call it are started with."""
    (folder / "config.yaml").write_text(config)
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"}
    serve = subprocess.Popen(
        [*PROGRAM, "serve", "--config", str(folder / "config.yaml")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=env,
    )
    assert serve.stdout is not None
    try:
        yield serve.stdout.readline().strip(), env
    finally:
        serve.send_signal(signal.SIGTERM)
        serve.stdout.close()
        code = serve.wait(120)
    assert code == 0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    with serving(tmp_path) as found:
        yield found


def call(server: tuple[str, dict[str, str]], *args: str):
    address, env = server
    done = subprocess.run(
        [*PROGRAM, *args, "--server", address, "-o", "json"],
        capture_output=True,
        text=True,
        check=True,
        env=env,
    )
    return json.loads(done.stdout)


@pytest.mark.timeout(360)
def test_the_documents_example_runs_and_a_fallen_gpu_costs_one_node(server: tuple[str, dict[str, str]]):
    events: list[str] = []
    for _ in range(LOOKS_MAX):
        events = [line["event"] for line in call(server, "node", "history", "pool/training")]
        if "node.terminated" in events:
            break
    order = [
        "health.unhealthy",
        "node.cordoned",
        "node.draining",
        "node.drained",
        "node.terminating",
        "node.terminated",
    ]
    assert [event for event in events if event in order] == order
    assert events.count("node.ordered") == 3
    pools = {pool["name"]: pool for pool in call(server, "pool", "list")}
    assert pools["training"]["nodes"]["active"] == 2
    assert call(server, "doctor") == []
    assert [line["event"] for line in watched(server, "training")][: len(events)] == events


def watched(server: tuple[str, dict[str, str]], pool: str):
    """One line for each thing that happened, as `navarch watch` tells it."""
    address, env = server
    command = [*PROGRAM, "watch", "--pool", pool, "--for", "1s", "--server", address, "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_pool_that_is_misspelt_is_not_watched_for_ever(server: tuple[str, dict[str, str]]):
    address, env = server
    command = [*PROGRAM, "watch", "--pool", "trainin", "--server", address]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env, timeout=60)
    assert done.returncode == 3
    assert 'did you mean "training"?' in done.stderr


@contextmanager
def watching(address: str, env: dict[str, str]) -> Generator[tuple[TextIO, TextIO]]:
    """What `navarch watch` tells, and what it remarks."""
    watch = subprocess.Popen(
        [*PROGRAM, "watch", "--server", address, "-o", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )
    assert watch.stdout is not None
    assert watch.stderr is not None
    try:
        yield cast("TextIO", watch.stdout), cast("TextIO", watch.stderr)
    finally:
        watch.terminate()
        watch.communicate()


def test_a_watch_outlives_the_control_plane_it_asks(tmp_path: Path):
    with ExitStack() as stack:
        with serving(tmp_path) as (address, env):
            told, remarks = stack.enter_context(watching(address, env))
            assert json.loads(told.readline())["event"]
        assert "Events are printed when it answers again." in remarks.readline()
        with serving(tmp_path, FAKE.replace("127.0.0.1:0", address.removeprefix("https://"))):
            assert remarks.readline() == "It answers again.\n"
            call((address, env), "pool", "pause", "training")
            assert any("paused" in json.loads(line)["sentence"] for line in iter(told.readline, ""))


AGENT = ("agent", "--node-id", "somebody", "--state", "agent")


@pytest.mark.timeout(360)
@pytest.mark.parametrize("words", [("pool", "list"), AGENT])
def test_who_is_not_known_is_told_which_token_to_show(
    words: Sequence[str], server: tuple[str, dict[str, str]], tmp_path: Path
):
    address, env = server
    done = subprocess.run(
        [*PROGRAM, *words, "--server", address],
        capture_output=True,
        text=True,
        check=False,
        env={**env, "NAVARCH_AUTH_TOKEN": "made-up"},
        cwd=tmp_path,
    )
    assert done.returncode == 4
    assert "Set NAVARCH_AUTH_TOKEN" in done.stderr
