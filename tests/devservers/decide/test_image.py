"""The image a server runs: named by its user, by its flavor, or else by whoever runs the cluster."""

from dataclasses import replace as changed

import pytest
from msgspec.structs import replace

from neorion.devservers.decide import Observed, decide
from neorion.devservers.decide.resize import ResizeMode
from neorion.devservers.model import DevServerFlavorSpec, DevServerSpec, Lifecycle
from neorion.devservers.model.kube_types import (
    PodTemplate,
    PodTemplatePodSpec,
    ServerDeployment,
    ServerDeploymentSpec,
)
from neorion.devservers.testing import FLAVOR, SETTINGS, a_claim, a_flavor, a_pod, a_server
from neorion.devservers.testing.builders import CREATED
from neorion.keel.kube.core import Container, PodStatus
from neorion.keel.kube.core.pods import ContainerState, ContainerStateWaiting, ContainerStatus

STANDING = Container("dev", "old-default", a_pod().spec.containers[0].resources)
BODY = ServerDeployment(
    spec=ServerDeploymentSpec(replicas=1, template=PodTemplate(PodTemplatePodSpec((STANDING,))))
)
LATER = changed(SETTINGS, default_image="new-default")
NO_IMAGE = PodStatus(
    containers=(
        ContainerStatus(name="dev", state=ContainerState(waiting=ContainerStateWaiting("ImagePullBackOff"))),
    )
)


def image(
    flavor: DevServerFlavorSpec = FLAVOR, pod: PodStatus | None = None, named: str | None = None
) -> str:
    """What is applied to a server that stands, after the operator's file has named another default."""
    spec = DevServerSpec(flavor="cpu-small", image=named, lifecycle=Lifecycle(auto_shutdown=False))
    seen = Observed(a_server(spec), a_flavor(flavor), a_claim(), BODY, (a_pod(status=pod),))
    [made] = [one for one in decide(seen, LATER, CREATED).objects if one["kind"] == "Deployment"]
    return made["spec"]["template"]["spec"]["containers"][0]["image"]


def test_another_default_image_does_not_restart_what_runs():
    assert image() == "old-default"


def test_it_counts_from_the_next_start_whatever_that_is_for():
    assert image(replace(FLAVOR, node_selector={"zone": "b"})) == "new-default"
    seen = Observed(a_server(), a_flavor(), a_claim(), BODY)
    made = decide(seen, LATER, CREATED).objects[-1]
    assert made["spec"]["template"]["spec"]["containers"][0]["image"] == "new-default"


def test_a_default_that_could_not_be_pulled_is_replaced_at_once():
    assert image(pod=NO_IMAGE) == "new-default"


def test_an_image_that_somebody_names_is_taken_at_once():
    assert image(named="mine") == "mine"
    assert image(replace(FLAVOR, image="theirs")) == "theirs"


@pytest.mark.parametrize(("named", "takes"), [(None, ResizeMode.RECREATE), ("mine", ResizeMode.NONE)])
def test_a_flavors_own_image_takes_another_pod_where_the_server_names_none(
    named: str | None, takes: ResizeMode
):
    server = a_server(DevServerSpec(flavor="cpu-small", image=named))
    theirs = a_flavor(replace(FLAVOR, image="theirs"))
    assert Observed(server, theirs, body=BODY, pods=(a_pod(),)).change is takes
    standing = Container("dev", "theirs", STANDING.resources)
    body = ServerDeployment(
        spec=ServerDeploymentSpec(replicas=1, template=PodTemplate(PodTemplatePodSpec((standing,))))
    )
    assert Observed(server, theirs, body=body, pods=(a_pod(),)).change is ResizeMode.NONE
