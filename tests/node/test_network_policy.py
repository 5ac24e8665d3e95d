"""NetworkPolicies with packets: what the policy of users keeps a Pod from, and that nothing else does."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from neorion.devservers.decide.tenant import tenant_manifests
from neorion.devservers.model.user import DevServerUserSpec
from neorion.drydock.cluster import Cluster
from neorion.drydock.machine import ask
from neorion.drydock.node import init_pid
from neorion.drydock.testing import namespace
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock
from tests.node.pods import MINUTES, NEEDS, SLEEP, Kubectl, pod, service, web

pytestmark = [pytest.mark.anyio, NEEDS, MINUTES]

METADATA = "169.254.169.254"
POLICY: dict[str, Any] = next(
    one for one in tenant_manifests("ann", DevServerUserSpec()) if one["kind"] == "NetworkPolicy"
)
# An answer that is an error is an answer. busybox wget crashes with a time limit of its own.
_KNOCK = """
for target in {targets}; do
  if said=$(timeout 3 wget -qO- http://$target 2>&1); then echo $target open; else
    case $said in *"server returned error"*) echo $target open;; *) echo $target shut;; esac
  fi
done
"""


@dataclass(frozen=True)
class Neighbours:
    """Two users with a Pod each on both nodes."""

    ann: Kubectl
    bob: Kubectl

    async def address(self, kubectl: Kubectl, name: str) -> str:
        return (await kubectl.get("pod", name))["status"]["podIP"]

    async def knock(self, *targets: str) -> dict[str, str]:
        """Whether each target answers to Ann's Pod on node1, in whatever way."""
        said = await self.ann("exec", "web1", "--", "sh", "-c", _KNOCK.format(targets=" ".join(targets)))
        return dict(line.split() for line in said.splitlines())

    async def until(self, target: str, state: str) -> None:
        """A policy reaches the nodes a moment after the API server."""
        clock = SystemClock()
        with anyio.fail_after(60):
            while (await self.knock(target))[target] != state:
                await clock.sleep(Duration.of(ms=100))


@asynccontextmanager
async def neighbours(cluster: Cluster) -> AsyncGenerator[Neighbours]:
    async with namespace(cluster) as ann, namespace(cluster) as bob:
        both = Neighbours(Kubectl(cluster, ann), Kubectl(cluster, bob))
        pods = [pod(f"web{number}", web(), f"node{number}") for number in (1, 2)]
        async with anyio.create_task_group() as group:
            for one in (both.ann, both.bob):
                group.start_soon(one.run, *pods)
        yield both


@asynccontextmanager
async def metadata_server(cluster: Cluster, folder: Path) -> AsyncGenerator[None]:
    """Answers at the address of clouds' metadata, behind node2, as a cloud's would."""
    layout = cluster.layout
    one, two = (f"--net=/proc/{init_pid(layout, name)}/ns/net" for name in ("node1", "node2"))
    gateway = str(layout.addresses.node(2))
    await ask(["nsenter", two, "ip", "addr", "replace", f"{METADATA}/32", "dev", "lo"])
    await ask(["nsenter", one, "ip", "route", "replace", METADATA, "via", gateway])
    process = await anyio.open_process(
        ["nsenter", two, "busybox", "httpd", "-f", "-p", f"{METADATA}:80", "-h", str(folder)]
    )
    try:
        yield
    finally:
        process.kill()
        await process.aclose()
        await ask(["nsenter", one, "ip", "route", "delete", METADATA])
        await ask(["nsenter", two, "ip", "addr", "delete", f"{METADATA}/32", "dev", "lo"])


@pytest.mark.attack("network-reach")
async def test_a_pod_of_a_user_reaches_no_other_namespace_node_or_metadata_address(
    node_cluster: Cluster, tmp_path: Path
):
    addresses = node_cluster.layout.addresses
    async with metadata_server(node_cluster, tmp_path), neighbours(node_cluster) as both:
        own = [f"{await both.address(both.ann, name)}:8080" for name in ("web1", "web2")]
        foreign = [f"{await both.address(both.bob, name)}:8080" for name in ("web1", "web2")]
        nodes = [f"{addresses.node(number)}:10250" for number in (1, 2)]
        machine = f"{addresses.host}:{node_cluster.layout.server.rpartition(':')[2]}"
        walled = [*foreign, *nodes, machine, METADATA]
        # The control: without the policy each of them answers.
        assert await both.knock(*own, *walled) == dict.fromkeys([*own, *walled], "open")
        await both.ann.apply({**POLICY, "metadata": {"name": "walls"}})
        await both.until(METADATA, "shut")
        seen = await both.knock(*own, *walled)
        assert seen == {**dict.fromkeys(own, "open"), **dict.fromkeys(walled, "shut")}
        # Names and Services of the own namespace stay reachable.
        await both.ann.apply(service("web2", 8080))
        full = f"http://web2.{both.ann.namespace}.svc.cluster.local"
        assert await both.ann.fetch("web1", full) == "hello\n"
        # Nothing comes in from another namespace either.
        said = await both.bob("exec", "web2", "--", "sh", "-c", _KNOCK.format(targets=" ".join(own)))
        assert said == "".join(f"{target} shut\n" for target in own)
        await both.ann.remove("networkpolicy", "walls")
        await both.until(METADATA, "open")
        assert await both.knock(*walled) == dict.fromkeys(walled, "open")


async def test_a_policy_admits_pods_by_label_and_by_named_port(node_cluster: Cluster):
    async with neighbours(node_cluster) as both:
        named: dict[str, Any] = {"name": "main", "image": "busybox", "command": ["sh", "-c", web()]}
        named["ports"] = [{"name": "http", "containerPort": 8080}]
        await both.ann.run(pod("target", SLEEP, "node2", container=named))
        target = f"{await both.address(both.ann, 'target')}:8080"
        rule = {"from": [{"podSelector": {"matchLabels": {"app": "web2"}}}], "ports": [{"port": "http"}]}
        spec = {"podSelector": {"matchLabels": {"app": "target"}}, "ingress": [rule]}
        await both.ann.apply({**POLICY, "metadata": {"name": "by-label"}, "spec": spec})
        await both.until(target, "shut")
        assert await both.ann.fetch("web2", f"http://{target}") == "hello\n"
        # A change of labels counts at once, and no Pod is started anew for it.
        await both.ann("label", "pod", "web1", "app=web2", "--overwrite")
        await both.until(target, "open")
