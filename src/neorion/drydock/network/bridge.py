"""The bridge that a cluster's nodes hang on, and the fence around it."""

import json
from ipaddress import IPv4Network
from pathlib import Path
from typing import Final

import msgspec

from neorion.drydock.machine import ask
from neorion.drydock.network.addresses import Addresses
from neorion.keel.base import Conflict

_CONF: Final = Path("/proc/sys/net/ipv4/conf")

# Pods reach this machine at the bridge's own address and nowhere else; what would leave or enter the block is refused,
# not dropped, so that a program that tries fails at once.
_FENCE: Final = """
table inet {bridge}
delete table inet {bridge}
table inet {bridge} {{
  chain passing {{
    type filter hook forward priority filter; policy accept;
    iifname "{bridge}" oifname != "{bridge}" reject
    oifname "{bridge}" iifname != "{bridge}" reject
  }}
  chain arriving {{
    type filter hook input priority filter; policy accept;
    iifname "{bridge}" ip daddr != {host} reject
    iifname "{bridge}" meta nfproto ipv6 drop
  }}
}}
"""


class _Route(msgspec.Struct):
    dst: str
    dev: str = ""


async def raise_bridge(addresses: Addresses) -> None:
    """The bridge with this machine's address on it, forwarding among its own nodes only. Mends one that is half there."""
    await _refuse_overlap(addresses)
    bridge, host = addresses.bridge, addresses.host
    await ask(["nft", "-f", "-"], say=_FENCE.format(bridge=bridge, host=host))
    if not (_CONF / bridge).exists():
        # An address of its own: otherwise it takes a cable's, and changes it when that cable goes.
        own = f"02:dd:00:00:00:{addresses.slot:02x}"
        await ask(["ip", "link", "add", bridge, "address", own, "type", "bridge"])
    await ask(
        ["ip", "-batch", "-"],
        say=f"addr replace {host}/{addresses.nodes.prefixlen} dev {bridge}\nlink set {bridge} up\n",
    )
    # Forwarding is switched on for packets that come from this bridge: the machine itself does not become a router.
    (_CONF / bridge / "forwarding").write_text("1")
    # Pods of two nodes reach each other through the same link, so the kernel would advise a shorter route each time.
    (_CONF / bridge / "send_redirects").write_text("0")


async def lower_bridge(addresses: Addresses) -> None:
    """Takes the routes with it. What is gone already is no error."""
    if (_CONF / addresses.bridge).exists():
        await ask(["ip", "link", "delete", addresses.bridge])
    tables = await ask(["nft", "list", "tables", "inet"])
    if f"table inet {addresses.bridge}" in tables.splitlines():
        await ask(["nft", "delete", "table", "inet", addresses.bridge])


async def _refuse_overlap(addresses: Addresses) -> None:
    routes = msgspec.convert(json.loads(await ask(["ip", "-json", "-4", "route"]) or "[]"), list[_Route])
    for route in routes:
        elsewhere = route.dst != "default" and route.dev != addresses.bridge
        if elsewhere and addresses.block.overlaps(IPv4Network(route.dst, strict=False)):
            raise Conflict(
                "network.block_taken",
                f"This machine already routes {route.dst} ({route.dev}), which lies in the cluster's {addresses.block}.",
                hint="Remove what holds the route (neorion drydock down, ip route), or do without real nodes: leave --nodes out.",
            )
