"""What a change of flavor takes: nothing, new amounts for the running pod, or another pod."""

from typing import Any

import pytest
from msgspec.structs import replace

from neorion.devservers.decide.resize import Change, change
from neorion.devservers.model import DevServerFlavorSpec, Resources
from neorion.devservers.testing import a_pod
from neorion.keel.kube.core import Pod
from neorion.keel.kube.core.pods import Resources as PodResources

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
        ({"requests": SMALL}, {"requests": SMALL}, {"requests": SMALL}, Change.NONE),
        ({"requests": SMALL}, {"requests": LARGE}, {"requests": SMALL}, Change.IN_PLACE),
        ({"requests": {"cpu": "1000m"}}, {"requests": {"cpu": 1}}, {}, Change.NONE),
        # Kubernetes requests whatever is only limited.
        ({"requests": SMALL, "limits": SMALL}, {"limits": SMALL}, {"limits": SMALL}, Change.NONE),
        ({"requests": SMALL, "limits": SMALL}, {"limits": LARGE}, {"limits": SMALL}, Change.IN_PLACE),
        ({"requests": SMALL, "limits": LARGE}, {"limits": LARGE}, {"limits": LARGE}, Change.RECREATE),
        # Limits that a LimitRange gave are not ours to change.
        ({"requests": SMALL, "limits": LARGE}, {"requests": SMALL}, {"requests": SMALL}, Change.NONE),
        # Limits that the last flavor gave are, and a running pod cannot lose them.
        (
            {"requests": SMALL, "limits": LARGE},
            {"requests": SMALL},
            {"requests": SMALL, "limits": LARGE},
            Change.RECREATE,
        ),
        (
            {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}},
            {"limits": {"nvidia.com/gpu": 2}, "requests": {"nvidia.com/gpu": 2}},
            {},
            Change.RECREATE,
        ),
    ],
)
def test_a_pod_that_has_one_thing_and_should_have_another(
    has: dict[str, Any], wants: dict[str, Any], applied: dict[str, Any], takes: Change
):
    assert change(pod(**has), flavor(**wants), PodResources(**applied)) is takes
