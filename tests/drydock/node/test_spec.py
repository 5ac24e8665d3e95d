"""What a node may be asked to be."""

import pytest

from neorion.drydock.node import NodeSpec, Taint, TaintEffect
from neorion.drydock.node.spec import MEMORY_SPARE, HostCapacity, reserved
from neorion.keel.base import Invalid, Quantity

MACHINE = HostCapacity(Quantity.of(8), Quantity.parse("32Gi"))


def test_what_is_not_offered_is_kept_back():
    kept = reserved(NodeSpec(cpus="500m", memory="4Gi"), MACHINE)
    assert Quantity.parse(kept["cpu"]) == Quantity.parse("7500m")
    # The kubelet keeps its spare back by itself.
    assert Quantity.parse(kept["memory"]) + MEMORY_SPARE == Quantity.parse("28Gi")


def test_a_node_without_wishes_is_as_large_as_the_machine():
    assert reserved(NodeSpec(), MACHINE) == {}
    assert reserved(NodeSpec(memory="32Gi"), MACHINE) == {"memory": "0"}


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        (NodeSpec(cpus="9"), "node.too_large"),
        (NodeSpec(cpus="0"), "node.too_large"),
        (NodeSpec(memory="33Gi"), "node.too_large"),
        (NodeSpec(memory="much"), "node.bad_quantity"),
        (NodeSpec(pods=0), "node.bad_size"),
        (NodeSpec(gpus=65), "node.bad_size"),
    ],
)
def test_what_cannot_be_is_refused(spec: NodeSpec, code: str):
    with pytest.raises(Invalid) as refused:
        reserved(spec, MACHINE)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("text", "taint"),
    [
        ("gpu=yes:NoSchedule", Taint("gpu", TaintEffect.NO_SCHEDULE, "yes")),
        ("nvidia.com/gpu:NoExecute", Taint("nvidia.com/gpu", TaintEffect.NO_EXECUTE)),
    ],
)
def test_taints_are_written_as_everywhere(text: str, taint: Taint):
    assert Taint.parse(text) == taint


def test_a_wrong_taint_is_refused_with_the_likely_word():
    with pytest.raises(Invalid) as refused:
        Taint.parse("gpu=yes:NoSchedul")
    assert 'did you mean "NoSchedule"?' in refused.value.hint
