"""Pods, Services and names across real nodes; and the fence around them."""

import socket

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from neorion.drydock.cluster import Cluster
from neorion.drydock.machine import ask
from neorion.keel.base import Terminal
from tests.node.pods import MINUTES, NEEDS, SLEEP, Kubectl, pod, service, web

pytestmark = [pytest.mark.anyio, NEEDS, MINUTES]


async def test_pods_on_different_nodes_reach_each_other(kubectl: Kubectl):
    await kubectl.run(pod("web", web(), "node1"), pod("caller", SLEEP, "node2"))
    address = (await kubectl.get("pod", "web"))["status"]["podIP"]
    answer = await kubectl.fetch("caller", f"http://{address}:8080")
    assert answer == "hello\n"


async def test_a_service_is_reached_by_its_name_from_pods_and_by_its_address_from_this_machine(
    kubectl: Kubectl,
):
    await kubectl.apply(service("web", 8080))
    await kubectl.run(pod("web", web(), "node2"), pod("caller", SLEEP, "node1"))
    full = f"http://web.{kubectl.namespace}.svc.cluster.local"
    for url in ("http://web", full):
        assert await kubectl.fetch("caller", url) == "hello\n"
    address = (await kubectl.get("service", "web"))["spec"]["clusterIP"]
    async with await anyio.connect_tcp(address, 80) as stream:
        await stream.send(b"GET / HTTP/1.0\r\n\r\n")
        assert b"200 OK" in await stream.receive()


async def test_a_pod_reaches_itself_through_its_service(kubectl: Kubectl):
    await kubectl.apply(service("web", 8080))
    await kubectl.run(pod("web", web(), "node1"))
    # In full: the short name is the pod's own name too.
    url = f"http://web.{kubectl.namespace}.svc.cluster.local"
    assert await kubectl.fetch("web", url) == "hello\n"


async def test_a_pod_speaks_to_the_api_server_as_its_service_account(kubectl: Kubectl):
    program = str(kubectl.cluster.shelf.path("kubectl"))
    volume = {"name": "kubectl", "hostPath": {"path": program, "type": "File"}}
    mount = {"name": "kubectl", "mountPath": "/kubectl"}
    await kubectl.run(pod("caller", SLEEP, "node1", volumes=[volume], container={"volumeMounts": [mount]}))
    who = await kubectl("exec", "caller", "--", "/kubectl", "auth", "whoami")
    assert f"system:serviceaccount:{kubectl.namespace}:default" in who


async def test_no_packet_of_a_pod_leaves_the_fence(kubectl: Kubectl, node_cluster: Cluster):
    """A listener on every address of this machine answers pods at the bridge's address only."""
    await kubectl.run(pod("caller", SLEEP, "node1"))
    everywhere = "0.0.0.0"  # noqa: S104 -- that is the point
    async with (
        await anyio.create_tcp_listener(local_host=everywhere) as listener,
        anyio.create_task_group() as tasks,
    ):
        port = listener.extra_attributes[SocketAttribute.local_port]()
        tasks.start_soon(listener.serve, _greet)
        inside, outside = str(node_cluster.layout.addresses.host), await _own_address()
        assert "hello" in await kubectl("exec", "caller", "--", "wget", "-qO-", f"http://{inside}:{port}")
        with pytest.raises(Terminal, match="refused"):
            await kubectl("exec", "caller", "--", "wget", "-qO-", f"http://{outside}:{port}")
        tasks.cancel_scope.cancel()
    with pytest.raises(Terminal, match=r"can't resolve|bad address"):
        await kubectl("exec", "caller", "--", "wget", "-qO-", "http://example.com")


async def _greet(client: SocketStream) -> None:
    async with client:
        await client.receive()
        await client.send(b"HTTP/1.0 200 OK\r\n\r\nhello")


async def _own_address() -> str:
    """This machine's address in the outside world; nothing is sent."""
    words = (await ask(["ip", "-4", "route", "get", "192.0.2.250"])).split()
    address = words[words.index("src") + 1]
    socket.inet_aton(address)
    return address
