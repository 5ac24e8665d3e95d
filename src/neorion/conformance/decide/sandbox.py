"""Judgements about sandboxes, from what a probe sees of the kernel, in a sandbox and outside of one."""

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from neorion.conformance.model import Assertion

Json = Mapping[str, Any]

# The last line of a probe.
DONE: Final = "probe done"
_FACT: Final = re.compile(r"^(version|boot|interfaces) (.*)$", re.MULTILINE)


class Kernel(Struct, frozen=True):
    """The facts about its kernel that one container sees. A fact that it cannot read is empty."""

    version: str = ""
    boot: str = ""
    interfaces: tuple[str, ...] = ()


def probe_script() -> str:
    """A script for any shell."""
    return "\n".join(
        (
            'echo "version $(cat /proc/version)"',
            'echo "boot $(cat /proc/sys/kernel/random/boot_id 2>/dev/null)"',
            'echo "interfaces $(ls /sys/class/net 2>/dev/null | tr "\\n" " ")"',
            f"echo '{DONE}'",
            "sleep 3600",
        )
    )


def kernel_of(log: str) -> Kernel | None:
    """None while the probe has not finished."""
    if DONE not in log:
        return None
    facts = dict(_FACT.findall(log))
    interfaces = tuple(facts.get("interfaces", "").split())
    return Kernel(facts.get("version", "").strip(), facts.get("boot", "").strip(), interfaces)


def is_isolated(kernel: Kernel | None, node: Json) -> Assertion:
    """The container sees another kernel than that of its node, as the node's own kubelet states it."""
    info = node.get("status", {}).get("nodeInfo", {})
    release, boot = str(info.get("kernelVersion", "")), str(info.get("bootID", ""))
    seen = kernel or Kernel()
    same = [
        name
        for name, is_same in (
            ("the kernel's release", bool(release) and f" {release} " in f"{seen.version} "),
            ("the boot id", bool(boot) and seen.boot == boot),
        )
        if is_same
    ]
    held = bool(seen.version) and bool(release) and not same
    words = f"It sees {' and '.join(same)} of the node." if same else "It sees nothing of the node's kernel."
    detail = f"{words} {seen.version[:80]}".strip() if kernel is not None else "The probe did not finish."
    return Assertion("a sandboxed container sees a kernel of its own", held, detail)


def has_no_host_network(kernel: Kernel | None) -> Assertion:
    """The container has the interfaces of its pod alone: the loopback one and at most one more."""
    found = [each for each in (kernel.interfaces if kernel is not None else ()) if each != "lo"]
    return Assertion(
        "a sandboxed container has the interfaces of its pod alone",
        kernel is not None and len(found) <= 1,
        f"It sees {', '.join(found) or 'no interface'} beside the loopback one.",
    )
