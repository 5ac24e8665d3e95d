"""Warm Pods hold the machines of a flavor, and are the first to go."""

from typing import Any

from msgspec.structs import replace

from neorion.devservers.decide.warm_pods import WARM_LABEL, warm_deployments, warm_label
from neorion.devservers.model import DevServerFlavorSpec, Toleration
from neorion.devservers.model.flavor import WarmPods
from neorion.devservers.testing import FLAVOR, SETTINGS, a_flavor


def made(*warm: WarmPods, **spec: Any) -> list[dict[str, Any]]:
    wanted: DevServerFlavorSpec = replace(FLAVOR, warm=warm, **spec)
    return list(warm_deployments(a_flavor(wanted), SETTINGS))


def container(deployment: dict[str, Any]) -> dict[str, Any]:
    [found] = deployment["spec"]["template"]["spec"]["containers"]
    return found


def test_there_is_a_deployment_for_each_image():
    default, torch = made(WarmPods(size=2), WarmPods(size=1, image="torch:1"))
    assert (default["spec"]["replicas"], container(default)["image"]) == (2, SETTINGS.default_image)
    assert (torch["spec"]["replicas"], container(torch)["image"]) == (1, "torch:1")
    assert default["metadata"]["name"] != torch["metadata"]["name"]
    assert {one["metadata"]["labels"][WARM_LABEL] for one in (default, torch)} == {warm_label("cpu-small")}
    [owner] = default["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("DevServerFlavor", "cpu-small")


def test_a_warm_pod_takes_the_machine_that_a_server_would():
    toleration = Toleration(key="nvidia.com/gpu", operator="Exists")
    [one] = made(WarmPods(size=1), node_selector={"zone": "a"}, tolerations=(toleration,), image="own:1")
    pod = one["spec"]["template"]["spec"]
    assert container(one)["resources"]["requests"] == {"cpu": "1", "memory": "2Gi"}
    assert container(one)["image"] == "own:1"
    assert (pod["nodeSelector"], pod["tolerations"][0]["key"]) == ({"zone": "a"}, "nvidia.com/gpu")


def test_a_warm_pod_goes_at_once_and_has_no_rights():
    [one] = made(WarmPods(size=1))
    pod = one["spec"]["template"]["spec"]
    assert (pod["priorityClassName"], pod["terminationGracePeriodSeconds"]) == ("devservers-warm", 0)
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True


def test_without_a_size_there_are_none():
    assert made() == made(WarmPods(size=0)) == []
