"""What cannot be is refused in words one can act on: objects by the API server, commands by `devctl`."""

import shlex
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from anyio.from_thread import start_blocking_portal

from neorion.devservers.cli import app
from neorion.devservers.model import DEFAULT_FLAVORS
from neorion.devservers.model.kube_types import DEVSERVERFLAVORS, DEVSERVERS
from neorion.drydock.cluster import Cluster
from neorion.drydock.testing import namespace
from neorion.keel.base import Invalid
from neorion.keel.cli import run
from neorion.keel.kube import AlreadyExists, InvalidObject, MergePatch
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from tests.kube import object_refusals as refused
from tests.kube.dev_room import define

TRANSCRIPT = Path(__file__).parent / "devctl_refusals.txt"
# Beside the cluster's own: one with a short maximum, and one of which nobody gets any.
LIMITED: dict[str, dict[str, Any]] = {"short": {"maxTTL": "1h"}, "scarce": {"maxPerUser": 0}}
SMALL: dict[str, Any] = {"requests": {"cpu": "1"}}
OLD = {"expirationTime": "2020-01-01T00:00:00Z"}


@dataclass(frozen=True)
class Refusal:
    command: str
    told: str
    code: int


def transcript() -> list[Refusal]:
    """Blocks of a command, what it says, and its exit code."""
    found: list[Refusal] = []
    for block in TRANSCRIPT.read_text().split("\n\n"):
        command, *told, code = block.strip().splitlines()
        text = "".join(f"{line}\n" for line in told)
        found.append(Refusal(command.removeprefix("$ devctl "), text, int(code.removeprefix("exit "))))
    return found


REFUSALS = transcript()


async def _furnish(client: Client, place: str) -> None:
    """The kinds, some flavors, and servers that nobody operates."""
    await define(client)
    specs: dict[str, Any] = {name: msgspec.to_builtins(spec) for name, spec in DEFAULT_FLAVORS.items()}
    specs |= {name: {"resources": SMALL, "limits": limits} for name, limits in LIMITED.items()}
    for name, spec in specs.items():
        await _make(client, DEVSERVERFLAVORS, {"metadata": {"name": name}, "spec": spec})
    port = {"name": "web", "port": 8080}
    servers: dict[str, dict[str, Any]] = {
        "box": {"running": False, "ports": [port]},
        "lent": {"running": False, "flavor": "short"},
        "old": {"running": False, "lifecycle": OLD},
        "runs": {},
    }
    for name, spec in servers.items():
        await _make(client, DEVSERVERS, _server(place, name, spec))


async def _make(client: Client, kind: Any, manifest: dict[str, Any]) -> None:
    try:
        await client.create(kind, manifest)
    except AlreadyExists:
        return


def _server(place: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    whole = {"flavor": "cpu-small", **spec}
    given = {field: value for field, value in whole.items() if value is not None}
    return {"metadata": {"name": name, "namespace": place}, "spec": given}


@pytest.fixture(scope="module")
def place(cluster: Cluster) -> Generator[str]:
    """A namespace for this file."""

    async def furnish(name: str) -> None:
        async with connect(read_kubeconfig([cluster.kubeconfig]).cluster(), "test") as client:
            await _furnish(client, name)

    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(namespace(cluster)) as name,
    ):
        portal.call(furnish, name)
        yield name


@pytest.fixture
async def client(cluster: Cluster) -> AsyncGenerator[Client]:
    async with connect(read_kubeconfig([cluster.kubeconfig]).cluster(), "test") as made:
        yield made


def said(error: InvalidObject) -> str:
    """Without the name of the object, and the remark that there may be more."""
    return error.sentence.partition(" is invalid: ")[2].removeprefix("[").partition(", <nil>: ")[0]


def test_the_tables_are_long_enough_and_no_command_stands_in_them_twice():
    assert len(refused.SERVERS) + len(refused.CHANGES) + len(refused.FLAVORS) >= 60
    assert len({one.command for one in REFUSALS}) == len(REFUSALS) >= 60


@pytest.mark.anyio
@pytest.mark.parametrize("name", refused.SERVERS)
async def test_a_server_that_cannot_be_is_refused(client: Client, place: str, name: str):
    spec, words = refused.SERVERS[name]
    with pytest.raises(InvalidObject) as error:
        await client.create(DEVSERVERS.raw, _server(place, "wrong", spec))
    assert said(error.value) == words


@pytest.mark.anyio
@pytest.mark.parametrize("name", refused.NAMES)
async def test_a_name_that_cannot_be_is_refused(client: Client, place: str, name: str):
    with pytest.raises(InvalidObject) as error:
        await client.create(DEVSERVERS.raw, _server(place, refused.NAMES[name], {}))
    assert said(error.value) == refused.UNNAMEABLE


@pytest.mark.anyio
@pytest.mark.parametrize("name", refused.CHANGES)
async def test_a_change_that_cannot_be_is_refused_and_nothing_is_changed(
    client: Client, place: str, name: str
):
    before, change, words = refused.CHANGES[name]
    made = await client.create(DEVSERVERS, _server(place, name.replace(" ", "-"), before))
    with pytest.raises(InvalidObject) as error:
        await client.patch(DEVSERVERS, made.meta.name, MergePatch({"spec": change}), place)
    assert said(error.value) == words
    assert (await client.get(DEVSERVERS, made.meta.name, place)).spec == made.spec
    await client.delete(DEVSERVERS, made.meta.name, place)


@pytest.mark.anyio
@pytest.mark.parametrize("name", refused.FLAVORS)
async def test_a_flavor_that_cannot_be_is_refused(client: Client, place: str, name: str):
    del place
    change, words = refused.FLAVORS[name]
    spec = {field: value for field, value in {"resources": SMALL, **change}.items() if value is not None}
    with pytest.raises(InvalidObject) as error:
        await client.create(DEVSERVERFLAVORS.raw, {"metadata": {"name": "wrong"}, "spec": spec})
    assert said(error.value) == words


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda one: one.command)
def test_a_command_that_cannot_be_is_refused(
    refusal: Refusal,
    cluster: Cluster,
    place: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
):
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    monkeypatch.setenv("DEVCTL_NAMESPACE", place)
    code = run(app, shlex.split(refusal.command))
    out, err = capfd.readouterr()
    assert (out, err, code) == ("", refusal.told.replace("{namespace}", place), refusal.code)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("annotation", "image", "code", "words"),
    [
        (300_000, 1, "kube.invalid", "metadata.annotations: Too long: may not be more than 262144 bytes"),
        (1, 600, "kube.invalid", "spec.image: Too long: may not be more than 512 bytes"),
        (1, 4_000_000, "kube.too_large", "limit is 3145728"),
    ],
    ids=["a mark", "a field", "the whole"],
)
async def test_an_object_of_any_size_is_refused(
    client: Client, place: str, annotation: int, image: int, code: str, words: str
):
    huge = _server(place, "huge", {"image": "x" * image})
    huge["metadata"]["annotations"] = {"note": "x" * annotation}
    with pytest.raises(Invalid) as error:
        await client.create(DEVSERVERS.raw, huge)
    assert error.value.code == code
    assert words in error.value.sentence


@pytest.mark.anyio
async def test_nothing_refused_has_left_a_trace(client: Client, place: str):
    servers = await client.list(DEVSERVERS, place)
    assert {one.meta.name for one in servers.items} - {"box", "lent", "old", "runs"} == set()
    box = await client.get(DEVSERVERS, "box", place)
    assert (box.meta.generation, box.spec.running) == (1, False)
