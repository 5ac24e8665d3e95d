"""The veth pair between the bridge and a node's network namespace."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from neorion.drydock.machine import ask
from neorion.drydock.network.addresses import Addresses
from neorion.keel.base import Terminal

_LINKS: Final = Path("/sys/class/net")


async def attach_veth(addresses: Addresses, index: int, pid: int) -> None:
    """Attaches the namespace of process `pid`, gives it the node's address, and routes to its Pods."""
    wire, node = addresses.wire(index), addresses.node(index)
    # One at the far end: the name every program expects of a machine's first link.
    await ask(
        ["ip", "-batch", "-"],
        say=f"link add {wire} type veth peer name eth0 netns {pid}\n"
        f"link set {wire} master {addresses.bridge} up\n"
        f"route add {addresses.pods_of(index)} via {node} dev {addresses.bridge}\n",
    )
    await ask(
        [*_in_namespace(pid), "ip", "-batch", "-"],
        say="link set lo up\n"
        f"addr add {node}/{addresses.nodes.prefixlen} dev eth0\n"
        "link set eth0 up\n"
        f"route add default via {addresses.host}\n",
    )


async def is_attached(pid: int) -> bool:
    """Reports whether `attach_veth` finished for the namespace of process `pid`: it adds the default route last."""
    return bool(await ask([*_in_namespace(pid), "ip", "-4", "route", "show", "default"]))


def _in_namespace(pid: int) -> list[str]:
    return ["nsenter", f"--net=/proc/{pid}/ns/net"]


async def detach_veth(addresses: Addresses, index: int) -> None:
    """Removes a node's link and routes. A missing link is not an error: the kernel removes it with its namespace."""
    wire, pods = addresses.wire(index), addresses.pods_of(index)
    if await ask(["ip", "-4", "route", "show", "exact", str(pods)]):
        await ask(["ip", "route", "delete", str(pods)])
    try:
        await ask(["ip", "link", "delete", wire])
    except Terminal:
        if (_LINKS / wire).exists():
            raise


async def route_services(addresses: Addresses, live: Sequence[int]) -> None:
    """Routes Services through one live node, whose kube-proxy forwards them. Without live nodes there is no route."""
    services = addresses.services
    if live:
        node = addresses.node(live[0])
        await ask(["ip", "route", "replace", str(services), "via", str(node), "dev", addresses.bridge])
    elif await ask(["ip", "-4", "route", "show", "exact", str(services)]):
        await ask(["ip", "route", "delete", str(services)])
