"""A configuration that changes under a control plane at work: taken whole, or refused and told."""

import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from neorion.keel.base import Error, Instant
from neorion.keel.http.client import Request, fetch
from neorion.keel.rpc import ClientTls, http_transport
from neorion.keel.run.process import only_error
from neorion.navarch.app.reload import ConfigSource, Reloader
from neorion.navarch.app.server import RunningControlPlane, serving
from neorion.navarch.decide.policy import NodeHistory, policy_input
from neorion.navarch.model import EventKind, HealthEvent
from neorion.navarch.testing import node
from tests.navarch.processes import Fleet

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(240)]

FILE = """
server: {{ address: "127.0.0.1:{port}", state_dir: {folder}, health_policy: policy.yaml }}
providers: {{ fake: {{ boot: 100ms }} }}
pools:
  - {{ name: training, provider: fake, instance_type: gpu_8x_h100_sxm5, min_nodes: {least}, max_nodes: {most} }}
"""
POLICY = "rules: [{{ name: {name}, condition: 'true', result: degraded }}]\n"


def write(
    folder: Path, *, least: int = 1, most: int = 4, port: int = 0, more: str = "", rule: str = "first"
) -> None:
    text = FILE.format(port=port, folder=folder / "state", least=least, most=most) + more
    (folder / "policy.yaml").write_text(POLICY.format(name=rule))
    (folder / "config.new").write_text(text)
    (folder / "config.new").replace(folder / "config.yaml")


@asynccontextmanager
async def reloading(folder: Path) -> AsyncGenerator[tuple[RunningControlPlane, Reloader]]:
    write(folder)
    source = ConfigSource(folder / "config.yaml", {"HOME": str(folder)})
    file = source.read()
    async with serving(file, folder, source.env) as running:
        yield running, Reloader(source, file, running.plane)


async def test_what_changed_is_taken_and_named(tmp_path: Path):
    async with reloading(tmp_path) as (running, reloader):
        context = running.plane.fleet.context
        write(tmp_path, least=2, most=6)
        assert await reloader.reload() == ["pools.training.max_nodes", "pools.training.min_nodes"]
        assert (context.specs["training"].scaling.least, context.specs["training"].scaling.most) == (2, 6)
        assert await reloader.reload() == []


async def test_a_changed_policy_judges_from_then_on(tmp_path: Path):
    async with reloading(tmp_path) as (running, reloader):
        engine = running.plane.fleet.context.backends.policy_engine
        event = HealthEvent(Instant(1), EventKind.THERMAL)
        seen = policy_input(event, node(), NodeHistory(), Instant(1))
        assert [verdict.rule for verdict in await engine.evaluate("policy.yaml", [seen])] == ["first"]
        write(tmp_path, rule="second")
        assert await reloader.reload() == ["policy policy.yaml"]
        assert [verdict.rule for verdict in await engine.evaluate("policy.yaml", [seen])] == ["second"]


OTHER_POOL = "  - { name: other, provider: fake, instance_type: gpu_8x_h100_sxm5, max_nodes: 1 }\n"


@pytest.mark.parametrize(
    ("more", "port", "code"),
    [
        (OTHER_POOL.replace("max_nodes", "max_node"), 0, "config.invalid"),
        (OTHER_POOL.replace("fake", "none"), 0, "config.invalid"),
        (OTHER_POOL, 50_052, "navarch.needs_restart"),
    ],
)
async def test_a_file_that_cannot_be_taken_changes_nothing_and_is_told_until_it_is_mended(
    tmp_path: Path, more: str, port: int, code: str
):
    async with reloading(tmp_path) as (running, reloader):
        context = running.plane.fleet.context
        before = dict(context.specs)
        write(tmp_path, least=3, more=more, port=port)
        await reloader.tick()
        assert context.specs == before
        (finding,) = context.findings.values()
        assert finding.code == code
        write(tmp_path, least=3, more=OTHER_POOL)
        await reloader.tick()
        assert sorted(context.specs) == ["other", "training"]
        assert context.findings == {}


async def test_a_pool_that_has_nodes_cannot_vanish(tmp_path: Path):
    async with reloading(tmp_path) as (running, reloader):
        fleet = running.plane.fleet
        await fleet.tick()
        text = (tmp_path / "config.yaml").read_text().replace("name: training", "name: renamed")
        (tmp_path / "config.yaml").write_text(text)
        with pytest.raises(Error) as refused:
            await reloader.reload()
        assert refused.value.code == "navarch.pool_in_use"
        assert list(fleet.context.specs) == ["training"]


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ("name: training", "name: renamed", "navarch.pool_in_use"),
        ("fake", "other", "navarch.provider_in_use"),
    ],
)
async def test_who_starts_again_without_what_has_nodes_is_refused(
    tmp_path: Path, before: str, after: str, code: str
):
    async with reloading(tmp_path) as (running, _):
        await running.plane.fleet.tick()
    text = (tmp_path / "config.yaml").read_text()
    (tmp_path / "config.yaml").write_text(
        text.replace(before, after).replace("{ boot:", "{ type: fake, boot:")
    )
    source = ConfigSource(tmp_path / "config.yaml", {"HOME": str(tmp_path)})
    with pytest.raises(BaseExceptionGroup) as refused:
        async with serving(source.read(), tmp_path, source.env):
            pass
    error = only_error(refused.value)
    assert isinstance(error, Error)
    assert error.code == code


async def test_a_file_or_a_signal_is_noticed_by_the_process_and_a_refusal_leaves_it_ready(tmp_path: Path):
    write(tmp_path)
    fleet = Fleet.at(tmp_path)
    async with fleet.start("serve", "--config", "config.yaml") as serve:
        server = await serve.out.until("http")
        write(tmp_path, least=2)
        await serve.log.until("the configuration was read again", "pools.training.min_nodes")
        write(tmp_path, most=1, least=3)
        await serve.log.until("the configuration was refused, and the old one is kept")
        (found,) = await fleet.call("doctor", "--server", server)
        assert (found["code"], found["severity"]) == ("config.invalid", "warning")
        certificate = tmp_path / "state" / "tls" / "server.crt"
        transport = http_transport(server, ClientTls(certificate))
        head, _ = await fetch(transport, Request("GET", "/readyz"))
        await transport.aclose()
        assert head.status == 200
        serve.process.send_signal(signal.SIGHUP)
        # Asked to, it looks although nothing changed.
        await serve.log.until("the configuration was refused, and the old one is kept")
        (pool,) = await fleet.call("pool", "list", "--server", server)
        assert (pool["min_nodes"], pool["max_nodes"]) == (2, 4)
