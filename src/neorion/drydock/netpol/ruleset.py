"""The rules of one node as nftables reads them. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

from neorion.drydock.netpol.decide import Allowed, PodRules

TABLE: Final = "inet network-policies"
_ALL_PORTS: Final = (0, 65_535)


def ruleset(rules: Sequence[PodRules], pods: str) -> str:
    """Replaces the table of a node whose pods have addresses in `pods`. Without rules it restricts nothing.

    Packets of both directions pass `forward`; those to the node itself pass `input`. Packets that the node sends are
    its kubelet's probes, which no policy restricts.
    """
    lines = [f"table {TABLE}", f"delete table {TABLE}"]
    if not rules:
        return "\n".join([*lines, ""])
    egress = [one for one in rules if one.egress is not None]
    ingress = [one for one in rules if one.ingress is not None]
    lines.append(f"table {TABLE} {{")
    for name, held, side in (("to", egress, "daddr"), ("from", ingress, "saddr")):
        for one in held:
            allowed = (one.egress if name == "to" else one.ingress) or ()
            lines += _chain(f"{name}-{one.address}", (_rule(each, side) for each in allowed))
    restricted = "\n".join(filter(None, (_jumps("saddr", "to", egress), _jumps("daddr", "from", ingress))))
    lines += [
        _base("forward", f"{_NO_OTHER.format(pods=pods)}\n{restricted}"),
        _base("input", f"{_NO_OTHER.format(pods=pods)}\n{_jumps('saddr', 'to', egress)}"),
        "}",
        "",
    ]
    return "\n".join(lines)


# Policies here know IPv4 alone, and a pod that borrows an address would borrow its rights.
_NO_OTHER: Final = """\
    iifname "pods0" meta nfproto ipv6 drop
    iifname "pods0" ip saddr != {pods} drop"""


def _base(hook: str, body: str) -> str:
    return (
        f"  chain {hook} {{\n    type filter hook {hook} priority filter; policy accept;\n"
        f"    ct state established,related accept\n{body}\n  }}"
    )


def _jumps(side: str, name: str, held: Sequence[PodRules]) -> str:
    if not held:
        return ""
    pairs = ", ".join(f"{one.address} : jump {name}-{one.address}" for one in held)
    return f"    ip {side} vmap {{ {pairs} }}"


def _chain(name: str, rules: Iterator[str]) -> list[str]:
    """Returns where a rule allows the packet, because the other end has rules of its own."""
    return [f"  chain {name} {{", *(f"    {rule} return" for rule in rules), "    reject", "  }"]


def _rule(allowed: Allowed, side: str) -> str:
    words = [f"ip {side} {{ {', '.join(allowed.addresses)} }}"] if allowed.addresses else []
    if allowed.excluded:
        words.append(f"ip {side} != {{ {', '.join(allowed.excluded)} }}")
    low, high = allowed.ports
    if allowed.protocol and allowed.ports == _ALL_PORTS:
        words.append(f"meta l4proto {allowed.protocol.lower()}")
    elif allowed.protocol:
        words.append(f"{allowed.protocol.lower()} dport {low if low == high else f'{low}-{high}'}")
    return " ".join(words)
