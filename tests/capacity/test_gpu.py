"""The vendors' tables: complete, consistent, and harmless where they know nothing."""

import pytest

from neorion.capacity.gpu import CATALOGUE, Remedy, XidClass, gpu_model, shape_of, xid
from neorion.keel.base import NotFound


@pytest.mark.parametrize("code", [8, 11, 13, 31, 32, 43, 45, 63, 68, 69, 92, 94])
def test_an_applications_error_never_asks_for_more_than_its_restart(code: int):
    assert xid(code).remedy.rung <= Remedy.RESTART_WORKLOAD.rung
    assert not xid(code).kind.blames_the_machine
    assert not xid(code).certain


@pytest.mark.parametrize("code", [46, 48, 62, 64, 79, 95, 119, 120, 140, 143, 158, 167])
def test_a_fatal_fault_is_the_machines_and_certain(code: int):
    assert xid(code).kind.blames_the_machine
    assert xid(code).certain
    assert xid(code).remedy.rung >= Remedy.RESET_GPU.rung


def test_only_faults_of_the_machine_ask_for_something_to_be_done_to_it():
    for found in CATALOGUE.values():
        if found.remedy.rung >= Remedy.RESET_GPU.rung:
            assert found.kind.blames_the_machine or found.kind is XidClass.DRIVER, found
        if found.certain:
            assert found.kind.blames_the_machine, found


def test_a_code_that_nobody_knows_is_watched_and_not_acted_upon():
    assert xid(9_999).kind is XidClass.UNKNOWN
    assert xid(9_999).remedy is Remedy.NOTHING


def test_the_ladder_has_an_order_and_an_end():
    assert Remedy.NOTHING.next is Remedy.RESTART_WORKLOAD
    assert Remedy.REBOOT.next is Remedy.REPLACE
    assert Remedy.RMA.next is Remedy.RMA
    assert [remedy for remedy in Remedy if remedy.costs_the_node] == [Remedy.REPLACE, Remedy.RMA]


def test_instance_types_carry_known_models():
    shape = shape_of("gpu_8x_h100_sxm5")
    assert shape is not None
    assert (shape.model, shape.gpus) == (gpu_model("H100"), 8)
    assert shape_of("a type nobody heard of") is None


def test_a_misspelt_model_gets_a_suggestion():
    with pytest.raises(NotFound, match="H10") as unknown:
        gpu_model("H10")
    assert "H100" in unknown.value.hint
