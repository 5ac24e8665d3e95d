"""The cable between the bridge and a node's network namespace."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from neorion.drydock.machine import ask
from neorion.drydock.network.addresses import Addresses
from neorion.keel.base import Terminal

_LINKS: Final = Path("/sys/class/net")


async def attach_veth(addresses: Addresses, index: int, pid: int) -> None:
    """A cable into the namespace of process `pid`, with the node's address at its end, and a route to its pods."""
    wire, node = addresses.wire(index), addresses.node(index)
    # One at the far end: the name every program expects of a machine's first link.
    await ask(
        ["ip", "-batch", "-"],
        say=f"link add {wire} type veth peer name eth0 netns {pid}\n"
        f"link set {wire} master {addresses.bridge} up\n"
        f"route add {addresses.pods_of(index)} via {node} dev {addresses.bridge}\n",
    )
    await ask(
        [*_inside(pid), "ip", "-batch", "-"],
        say="link set lo up\n"
        f"addr add {node}/{addresses.nodes.prefixlen} dev eth0\n"
        "link set eth0 up\n"
        f"route add default via {addresses.host}\n",
    )


async def is_plugged(pid: int) -> bool:
    """Whether the namespace of process `pid` has all that `attach_veth` gives it: the way out comes last."""
    return bool(await ask([*_inside(pid), "ip", "-4", "route", "show", "default"]))


def _inside(pid: int) -> list[str]:
    return ["nsenter", f"--net=/proc/{pid}/ns/net"]


async def detach_veth(addresses: Addresses, index: int) -> None:
    """What is gone already is no error: a cable goes by itself soon after its namespace."""
    wire, pods = addresses.wire(index), addresses.pods_of(index)
    if await ask(["ip", "-4", "route", "show", "exact", str(pods)]):
        await ask(["ip", "route", "delete", str(pods)])
    try:
        await ask(["ip", "link", "delete", wire])
    except Terminal:
        if (_LINKS / wire).exists():
            raise


async def route_services(addresses: Addresses, live: Sequence[int]) -> None:
    """The machine reaches Services through one of the live nodes, whose kube-proxy knows the way; without any, not at all."""
    services = addresses.services
    if live:
        node = addresses.node(live[0])
        await ask(["ip", "route", "replace", str(services), "via", str(node), "dev", addresses.bridge])
    elif await ask(["ip", "-4", "route", "show", "exact", str(services)]):
        await ask(["ip", "route", "delete", str(services)])
