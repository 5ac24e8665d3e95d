import pytest
from msgspec.structs import replace

from neorion.devservers.decide import Observed, decide
from neorion.devservers.model import ConditionType
from neorion.devservers.testing import SETTINGS, a_claim, a_flavor, a_pod, a_server
from neorion.devservers.testing.build import CREATED
from neorion.keel.kube import Condition
from neorion.keel.kube.core import PodStatus
from neorion.keel.kube.core.basics import ClaimStatus


def test_a_home_that_is_being_made_is_no_lack_of_room():
    told = "0/4 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    waits = Condition(type="PodScheduled", status="False", reason="Unschedulable", message=told)
    pod = a_pod(status=PodStatus(phase="Pending", conditions=(waits,)))
    seen = Observed(server=a_server(), flavor=a_flavor(), home=a_claim(), pods=(pod,))
    decision = decide(seen, SETTINGS, CREATED)
    assert decision.status.message is None
    assert decision.notes == ()


@pytest.mark.parametrize(("phase", "holds"), [("Pending", "True"), ("Lost", "False")])
def test_a_pod_that_has_a_node_has_its_volume_though_word_of_that_comes_later(phase: str, holds: str):
    home = replace(a_claim(), status=ClaimStatus(phase=phase))
    seen = Observed(server=a_server(), flavor=a_flavor(), home=home, pods=(a_pod(),))
    told = decide(seen, SETTINGS, CREATED).status.conditions
    assert [one.status for one in told if one.type is ConditionType.VOLUME] == [holds]
