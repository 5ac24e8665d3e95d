"""A control plane, an agent and a driver's library as an operator has them: processes, files, a port, a cloud's API."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import trustme

from neorion.keel.http.client import Request, fetch
from neorion.keel.rpc import ClientTls, http_transport
from tests.capacity.clouds.ec2 import IMAGE, KEYS, REGION, ec2
from tests.navarch.nvml.stand_in import Machine
from tests.navarch.processes import Fleet, Running

pytestmark = [pytest.mark.anyio, pytest.mark.needs("gcc"), pytest.mark.timeout(480)]

BOUGHT = """
server: {{ address: "127.0.0.1:0", state_dir: state, heartbeat_interval: 500ms, heartbeat_timeout: 60s }}
providers: {{ aws: {{ region: {region}, api_url: "{url}" }} }}
pools:
  - {{ name: training, provider: aws, instance_type: p5.48xlarge, image: {image}, min_nodes: 1, max_nodes: 2 }}
"""
JOINED = """
server:
  address: "127.0.0.1:{port}"
  state_dir: state
  heartbeat_interval: 500ms
  heartbeat_timeout: 120s
  tls_cert: server.pem
  tls_key: server.key
providers: {{ fake: {{}} }}
pools:
  - {{ name: training, provider: fake, instance_type: p5.48xlarge, adopt: true, max_nodes: 2 }}
"""
TOKEN = "an-operators-token"


def agent_args(machine: Machine, server: str, name: str) -> list[str]:
    state, kernel = str(machine.folder / "agent"), str(machine.folder / "kmsg")
    return ["agent", "--server", server, "--node-id", name, "--state", state, "--kernel-log", kernel]


def some(state: str) -> Callable[[Any], bool]:
    def found(nodes: Any) -> bool:
        return any(node["state"] == state for node in nodes)

    return found


def make(folder: Path, name: str) -> Machine:
    (folder / name).mkdir()
    return Machine(folder / name)


async def test_a_fallen_gpu_costs_its_node_and_an_applications_error_does_not(nvml: Path, tmp_path: Path):
    async with ec2() as rig, AsyncExitStack() as stack:
        (tmp_path / "config.yaml").write_text(BOUGHT.format(region=REGION, url=rig.gate.url, image=IMAGE))
        fleet = Fleet.at(tmp_path, **KEYS, NAVARCH_AUTH_TOKEN=TOKEN)
        serve = await stack.enter_async_context(fleet.start("serve", "--config", "config.yaml"))
        server = await serve.out.until("http")

        async def inhabit(name: str, machine: Machine) -> Running:
            stack.callback(machine.close)
            env = {"LD_LIBRARY_PATH": str(nvml.parent), "NVML_STAND_IN": str(machine.folder)}
            return await stack.enter_async_context(fleet.start(*agent_args(machine, server, name), **env))

        listing = ("node", "list", "--server", server)
        (first,) = await fleet.look(some("booting"), *listing)
        machine = make(tmp_path, "one")
        agent = await inhabit(first["machine"], machine)
        await fleet.look(some("active"), *listing)

        machine.xid(0, 13)
        await serve.log.until("health event", "xid 13")
        assert [node["state"] for node in await fleet.call(*listing)] == ["active"]

        machine.xid(3, 79)
        await serve.log.until("health event", "xid 79")
        nodes = await fleet.look(some("booting"), *listing)
        (second,) = [node for node in nodes if node["id"] != first["id"]]
        await inhabit(second["machine"], make(tmp_path, "two"))
        events = await fleet.history(first["id"], "node.terminated", server)
        assert in_order(events) == [
            "node.active",
            "health.unhealthy",
            "node.cordoned",
            "repair.buying",
            "repair.successor",
            "node.draining",
            "node.drained",
            "node.terminating",
            "node.terminated",
        ]
        assert await agent.process.wait() == 0
        assert [(node["id"], node["state"]) for node in await fleet.call(*listing)] == [
            (second["id"], "active")
        ]


def in_order(events: Sequence[str]) -> list[str]:
    """The words that tell the order of a replacement."""
    told = ("node.", "health.unhealthy", "repair.buying", "repair.successor")
    before = ("node.ordered", "node.booting", "node.verifying", "node.uncordoning")
    return [event for event in events if event.startswith(told) and event not in before]


async def test_a_fault_that_nobody_could_hear_arrives_once_although_the_agent_was_killed(
    nvml: Path, tmp_path: Path
):
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "server.pem")
    certificate.private_key_pem.write_to_path(tmp_path / "server.key")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    fleet = Fleet.at(tmp_path, NAVARCH_AUTH_TOKEN=TOKEN, NAVARCH_CA_FILE=str(tmp_path / "ca.pem"))
    machine = make(tmp_path, "one")
    seen = {"LD_LIBRARY_PATH": str(nvml.parent), "NVML_STAND_IN": str(machine.folder)}
    config = tmp_path / "config.yaml"
    config.write_text(JOINED.format(port=0))
    async with fleet.start("serve", "--config", "config.yaml") as serve:
        server = await serve.out.until("https")
        join = [*agent_args(machine, server, "theirs"), "--pool", "training"]
        join += ["--ca-file", str(tmp_path / "ca.pem")]
        async with fleet.start(*join, **seen) as agent:
            await agent.log.until("registered")
            await fleet.look(some("active"), "node", "list", "--server", server)
            await serve.kill()
            machine.xid(3, 79)
            # Twice: it was kept before it was tried to be told.
            await agent.log.until("the control plane did not take it")
            await agent.kill()
    config.write_text(JOINED.format(port=server.rpartition(":")[2]))
    async with fleet.start("serve", "--config", "config.yaml") as serve, fleet.start(*join, **seen):
        await serve.log.until("health event", "xid 79")
        events = await fleet.history("theirs", "health.unhealthy", server)
        assert events.count("health.unhealthy") == 1
        transport = http_transport(server, ClientTls(tmp_path / "ca.pem"))
        _, metrics = await fetch(transport, Request("GET", "/metrics"))
        await transport.aclose()
        assert b'navarch_xid_errors_total{pool="training",xid="79"} 1.0' in metrics
    machine.close()
