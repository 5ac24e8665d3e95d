"""The real nodes of a cluster: one folder each, with a record in it."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Final

import msgspec

from neorion.drydock.host import locked
from neorion.drydock.layout import Layout
from neorion.drydock.network import NODES_MAX
from neorion.drydock.node.spec import NodeSpec
from neorion.keel.base import Conflict, Invalid, NoCapacity, NotFound, did_you_mean, is_name

_RECORD: Final = "node.json"


class _Record(msgspec.Struct, frozen=True):
    index: int
    spec: NodeSpec


@dataclass(frozen=True, slots=True)
class Node:
    """A real node, running or not."""

    layout: Layout
    name: str
    index: int
    spec: NodeSpec

    @property
    def folder(self) -> Path:
        return nodes_folder(self.layout) / self.name

    @property
    def part(self) -> str:
        """The node's name among the cluster's processes and logs."""
        return f"node-{self.name}"

    @property
    def cgroup(self) -> str:
        return f"{cluster_cgroup(self.layout)}/{self.name}"

    @property
    def address(self) -> IPv4Address:
        return self.layout.addresses.node(self.index)

    @property
    def pods(self) -> IPv4Network:
        return self.layout.addresses.pods_of(self.index)


def nodes_folder(layout: Layout) -> Path:
    return layout.folder / "nodes"


def cluster_cgroup(layout: Layout) -> str:
    """The cluster's control group. Named by slot, so that no two clusters of a machine share it."""
    return layout.addresses.bridge


def nodes(layout: Layout) -> list[Node]:
    """The nodes in the order of their addresses."""
    found = (_read(layout, path.name) for path in nodes_folder(layout).glob("*") if path.is_dir())
    return sorted((node for node in found if node is not None), key=lambda node: node.index)


def find(layout: Layout, name: str) -> Node:
    node = _read(layout, name)
    if node is None:
        known = [node.name for node in nodes(layout)]
        raise NotFound(
            "node.unknown",
            f'The cluster has no real node "{name}".',
            hint=did_you_mean(name, known) or "Add one: neorion drydock node add.",
        )
    return node


async def claim(layout: Layout, name: str, spec: NodeSpec) -> Node:
    """Assigns a folder and an address to a new node."""
    if not is_name(name):
        raise Invalid(
            "node.bad_name",
            f'"{name[:100]}" cannot be a node\'s name.',
            hint="Use small letters, digits and hyphens.",
        )
    async with locked(nodes_folder(layout)):
        taken = {node.index: node.name for node in nodes(layout)}
        if name in taken.values():
            raise Conflict(
                "node.exists",
                f'The cluster already has a node "{name}".',
                hint="Choose another name, or remove it first.",
            )
        index = next((index for index in range(1, NODES_MAX + 1) if index not in taken), None)
        if index is None:
            raise NoCapacity(
                "node.full",
                f"The cluster has {NODES_MAX} nodes, and room for no more.",
                hint="Remove one first.",
            )
        node = Node(layout, name, index, spec)
        node.folder.mkdir(mode=0o700, exist_ok=True)
        partial = node.folder / f"{_RECORD}.part"
        partial.write_bytes(msgspec.json.encode(_Record(index, spec)))
        partial.replace(node.folder / _RECORD)
        return node


def _read(layout: Layout, name: str) -> Node | None:
    try:
        content = (nodes_folder(layout) / name / _RECORD).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    record = msgspec.json.decode(content, type=_Record)
    return Node(layout, name, record.index, record.spec)
