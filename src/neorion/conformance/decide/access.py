"""Judgements about who can reach an accelerator, from what a probe in each container saw."""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from neorion.conformance.model import Assertion

_DEVICE: Final = re.compile(r"^device (\S+) ([0-9a-f]+:[0-9a-f]+)$", re.MULTILINE)
_VISIBLE: Final = re.compile(r"^visible (\S*)$", re.MULTILINE)
_OPENED: Final = re.compile(r"^opened ([0-9a-f]+:[0-9a-f]+)$", re.MULTILINE)
# The last line of a probe.
DONE: Final = "probe done"
# /dev/null, which device emulators hand out: every container may open it.
NULL: Final = "1:3"


class Sight(Struct, frozen=True):
    """The sight of one container: its device files, the ids its runtime named, and device numbers that it could open."""

    devices: dict[str, str]
    ids: tuple[str, ...]
    opened: tuple[str, ...]


def probe_script(glob: str, visible: str, numbers: tuple[str, ...] = ()) -> str:
    """A script for any shell. It prints what it sees and tries to open `numbers` by nodes that it makes itself."""
    lines = [
        f'for each in {glob}; do if [ -c "$each" ]; then echo "device $each $(stat -c %t:%T "$each")"; fi; done',
        f'echo "visible ${{{visible}:-}}"' if visible else 'echo "visible "',
    ]
    for number in numbers:
        major, minor = (int(part, 16) for part in number.split(":"))
        lines.append(
            f"mknod /tmp/node c {major} {minor} 2>/dev/null && head -c 0 /tmp/node >/dev/null 2>&1 "
            f"&& (exec 3</tmp/node) 2>/dev/null && echo 'opened {number}'; rm -f /tmp/node"
        )
    return "\n".join([*lines, f"echo '{DONE}'", "sleep 3600"])


def sight_of(log: str) -> Sight | None:
    """None while the probe has not finished."""
    if DONE not in log:
        return None
    found = _VISIBLE.search(log)
    ids = tuple(
        each
        for each in (found[1].split(",") if found else ())
        if each and each not in {"all", "none", "void"}
    )
    return Sight(dict(_DEVICE.findall(log)), ids, tuple(_OPENED.findall(log)))


def sees_exactly(name: str, sight: Sight | None, count: int) -> Assertion:
    """The container sees so many device files, not one more."""
    seen = sorted(sight.devices) if sight is not None else []
    words = (
        f"The container sees {', '.join(seen) or 'no device'}."
        if sight is not None
        else "The probe did not finish."
    )
    return Assertion(name, sight is not None and len(seen) == count, words)


def ids_agree(sight: Sight | None, count: int) -> Assertion:
    ids = sight.ids if sight is not None else ()
    return Assertion(
        "the runtime names as many devices as were asked for",
        len(ids) == count,
        f"It names {', '.join(ids) or 'none'}.",
    )


def disjoint(first: Sight | None, second: Sight | None) -> Assertion:
    one, two = (set(each.ids) if each is not None else set[str]() for each in (first, second))
    shared = sorted(one & two)
    held = bool(one) and bool(two) and not shared
    return Assertion(
        "two pods have different devices",
        held,
        f"Shared: {', '.join(shared) or 'none'}; {sorted(one)} and {sorted(two)}.",
    )


def cannot_open(sight: Sight | None, numbers: Mapping[str, str]) -> Assertion:
    opened = [each for each in (sight.opened if sight is not None else ()) if each in numbers.values()]
    return Assertion(
        "a device number alone opens nothing",
        sight is not None and not opened,
        f"Opened without a grant: {', '.join(opened) or 'none'}.",
    )
