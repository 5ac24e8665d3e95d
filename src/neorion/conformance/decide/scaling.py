"""Judgements about scaling: of pods by a metric, and of nodes by pending pods."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from neorion.conformance.model import Assertion

Json = Mapping[str, Any]


def desired(current: int, value: float, target: float, most: int) -> int:
    """The arithmetic that the HorizontalPodAutoscaler documents."""
    ratio = value / target
    return current if abs(ratio - 1) <= 0.1 else min(most, math.ceil(current * ratio))


def metric_is(items: Sequence[Json], expected: str) -> Assertion:
    values = [str(item.get("value", "")) for item in items]
    return Assertion(
        "the metric is served as it was set",
        values == [expected],
        f"Served: {', '.join(values) or 'nothing'}.",
    )


def scaled_to(name: str, replicas: int, expected: int, seconds: float) -> Assertion:
    return Assertion(
        name, replicas == expected, f"{replicas} replicas after {seconds:.1f} s, {expected} expected."
    )


def stays_at(name: str, seen: Sequence[int], expected: int, seconds: float) -> Assertion:
    """No other number of replicas in a whole window."""
    others = sorted(set(seen) - {expected})
    words = f"Seen: {', '.join(map(str, others))}" if others else f"Always {expected}"
    return Assertion(name, not others, f"{words} replicas in {seconds:g} s.")


def hold_accelerators(pods: Sequence[Json], count: int, held: int) -> Assertion:
    return Assertion(
        "each new pod holds an accelerator",
        held == count == len(pods),
        f"{held} of {len(pods)} pods are bound with an accelerator.",
    )


def is_placed(name: str, pod: Json, node: str) -> Assertion:
    found = str(pod["spec"].get("nodeName", ""))
    return Assertion(name, found == node, f"The pod is on {found or 'no node'}, {node} has the devices.")


def grew_for(pod_node: str, uid: str, before: Collection[str], seconds: float) -> Assertion:
    """The pod runs on a node that was not there before. Nodes are known by uid, because names come back."""
    held = bool(pod_node) and bool(uid) and uid not in before
    where = (
        f"The pod is on {pod_node}, a {'new' if held else 'known'} node"
        if pod_node
        else "The pod has no node"
    )
    return Assertion("a pending pod gets a new node", held, f"{where} after {seconds:.1f} s.")


def shrank_back(left: Collection[str], seconds: float) -> Assertion:
    return Assertion(
        "an idle node goes", not left, f"{len(left)} new nodes are left {seconds:.1f} s after the pods went."
    )


def untouched(before: Collection[str], after: Collection[str]) -> Assertion:
    gone = set(before) - set(after)
    return Assertion("the other nodes stay", not gone, f"{len(gone)} of {len(before)} nodes are gone.")
