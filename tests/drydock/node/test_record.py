"""Which nodes there are, and who gets which address."""

from pathlib import Path

import anyio
import pytest

from neorion.drydock.layout import Layout
from neorion.drydock.node import NodeSpec, find, nodes
from neorion.drydock.node.record import claim
from neorion.keel.base import Conflict, Invalid, NotFound

pytestmark = pytest.mark.anyio


async def test_nodes_that_come_at_once_take_different_addresses(tmp_path: Path):
    layout = Layout(tmp_path, 3)
    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(claim, layout, f"node{number}", NodeSpec(gpus=number))
    known = nodes(layout)
    assert [node.index for node in known] == list(range(1, 9))
    assert all(node.spec.gpus == int(node.name.removeprefix("node")) for node in known)
    assert len({node.address for node in known}) == 8


async def test_an_address_is_given_again_when_its_node_is_gone(tmp_path: Path):
    layout = Layout(tmp_path, 0)
    first, second = await claim(layout, "a", NodeSpec()), await claim(layout, "b", NodeSpec())
    for path in first.folder.iterdir():
        path.unlink()
    first.folder.rmdir()
    assert (await claim(layout, "c", NodeSpec())).index == first.index
    assert find(layout, "b") == second


async def test_wrong_names_are_refused(tmp_path: Path):
    layout = Layout(tmp_path, 0)
    await claim(layout, "node1", NodeSpec())
    with pytest.raises(Conflict, match="already has a node"):
        await claim(layout, "node1", NodeSpec())
    with pytest.raises(Invalid, match="cannot be a node's name"):
        await claim(layout, "../x", NodeSpec())
    with pytest.raises(NotFound) as unknown:
        find(layout, "nod1")
    assert unknown.value.hint == 'did you mean "node1"?'
