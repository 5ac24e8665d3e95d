"""What a change of flavor takes: nothing, new amounts for the running pod, or another pod."""

from typing import Any

import pytest
from msgspec.structs import replace

from neorion.devservers.decide.names import SHM_VOLUME
from neorion.devservers.decide.resize import ResizeMode, change
from neorion.devservers.model import DevServerFlavorSpec, Resources
from neorion.devservers.testing import a_pod
from neorion.keel.kube import Condition
from neorion.keel.kube.core import Pod
from neorion.keel.kube.core.pods import ResourceRequirements as PodResources
from neorion.keel.kube.core.pods import Volume

SMALL = {"cpu": "1", "memory": "2Gi"}
LARGE = {"cpu": "2", "memory": "4Gi"}


def flavor(**resources: Any) -> DevServerFlavorSpec:
    return DevServerFlavorSpec(resources=Resources(**resources))


def pod(**resources: Any) -> Pod:
    """One that has these, wherever they came from."""
    made = a_pod()
    container = replace(made.spec.containers[0], resources=PodResources(**resources))
    return replace(made, spec=replace(made.spec, containers=(container,)))


@pytest.mark.parametrize(
    ("has", "wants", "applied", "takes"),
    [
        ({"requests": SMALL}, {"requests": SMALL}, {"requests": SMALL}, ResizeMode.NONE),
        ({"requests": SMALL}, {"requests": LARGE}, {"requests": SMALL}, ResizeMode.IN_PLACE),
        ({"requests": {"cpu": "1000m"}}, {"requests": {"cpu": 1}}, {}, ResizeMode.NONE),
        # Kubernetes requests whatever is only limited.
        ({"requests": SMALL, "limits": SMALL}, {"limits": SMALL}, {"limits": SMALL}, ResizeMode.NONE),
        ({"requests": SMALL, "limits": SMALL}, {"limits": LARGE}, {"limits": SMALL}, ResizeMode.IN_PLACE),
        ({"requests": SMALL, "limits": LARGE}, {"limits": LARGE}, {"limits": LARGE}, ResizeMode.RECREATE),
        # Limits that a LimitRange gave are not ours to change.
        ({"requests": SMALL, "limits": LARGE}, {"requests": SMALL}, {"requests": SMALL}, ResizeMode.NONE),
        # Limits that the last flavor gave are, and a running pod cannot lose them.
        (
            {"requests": SMALL, "limits": LARGE},
            {"requests": SMALL},
            {"requests": SMALL, "limits": LARGE},
            ResizeMode.RECREATE,
        ),
        (
            {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}},
            {"limits": {"nvidia.com/gpu": 2}, "requests": {"nvidia.com/gpu": 2}},
            {},
            ResizeMode.RECREATE,
        ),
    ],
)
def test_a_pod_that_has_one_thing_and_should_have_another(
    has: dict[str, Any], wants: dict[str, Any], applied: dict[str, Any], takes: ResizeMode
):
    assert change(pod(**has), flavor(**wants), PodResources(**applied)) is takes


def answered(made: Pod, reason: str, generation: int) -> Pod:
    """What its kubelet said to a wish it could not grant."""
    told = Condition(type="PodResizePending", status="True", reason=reason, observed_generation=generation)
    meta = replace(made.meta, generation=2)
    return replace(made, meta=meta, status=replace(made.status, conditions=(told,)))


@pytest.mark.parametrize(
    ("reason", "generation", "wants", "takes"),
    [
        ("Infeasible", 2, SMALL, ResizeMode.RECREATE),
        ("Infeasible", 0, SMALL, ResizeMode.RECREATE),
        ("Deferred", 2, SMALL, ResizeMode.NONE),
        # Said to the wish before this one.
        ("Infeasible", 1, SMALL, ResizeMode.NONE),
        # The way back from there is not barred by it.
        ("Infeasible", 2, LARGE, ResizeMode.IN_PLACE),
    ],
)
def test_a_node_that_can_never_give_what_was_asked_takes_another_pod(
    reason: str, generation: int, wants: dict[str, str], takes: ResizeMode
):
    asked = answered(pod(requests=SMALL), reason, generation)
    assert change(asked, flavor(requests=wants), PodResources(requests=SMALL)) is takes


@pytest.mark.parametrize(
    ("has", "wants", "takes"),
    [
        ({"medium": "Memory"}, None, ResizeMode.NONE),
        ({"medium": "Memory", "sizeLimit": "1Gi"}, "1024Mi", ResizeMode.NONE),
        ({"medium": "Memory", "sizeLimit": "1Gi"}, "2Gi", ResizeMode.RECREATE),
        ({"medium": "Memory", "sizeLimit": "1Gi"}, None, ResizeMode.RECREATE),
        ({"medium": "Memory"}, "1Gi", ResizeMode.RECREATE),
    ],
)
def test_other_shared_memory_takes_another_pod(has: dict[str, object], wants: str | None, takes: ResizeMode):
    made = pod(requests=SMALL)
    shared = replace(made, spec=replace(made.spec, volumes=(Volume(SHM_VOLUME, has),)))
    wanted = replace(flavor(requests=SMALL), shm=wants)
    assert change(shared, wanted, PodResources(requests=SMALL)) is takes
