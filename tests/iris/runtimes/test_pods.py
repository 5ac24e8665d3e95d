"""Pods of attempts as they are sent to the API server, and how those end whose runner never answered."""

import pytest

from neorion.iris.adapters.runtimes.container import verdict
from neorion.iris.adapters.runtimes.container.engine import ContainerSpec, ContainerState, ContainerStatus
from neorion.iris.adapters.runtimes.container.gang import Gang, led_from
from neorion.iris.adapters.runtimes.kubernetes.manifest import pod_manifest
from neorion.iris.adapters.runtimes.kubernetes.settings import PodSettings
from neorion.iris.model import AttemptId, ExitKind, Resources

SETTINGS = PodSettings("jobs", "worker-1", "task:1")
VARIABLES = {
    "IRIS_GANG_ID": "a-0",
    "WORLD_SIZE": "2",
    "RANK": "1",
    "MASTER_ADDR": "node-7",
    "MASTER_PORT": "23000",
}


def test_a_task_of_a_gang_has_a_name_by_which_the_others_find_it():
    gang = Gang.of(VARIABLES)
    assert gang == Gang("a-0", 2)
    pod = pod_manifest(ContainerSpec(AttemptId("a-1"), Resources(), (), {}, gang), SETTINGS)
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("iris-a-1", "iris-gangs")
    assert pod["metadata"]["labels"].items() >= {"iris-gang-member": "true", "iris-gang": "a-0"}.items()


def test_a_task_without_a_gang_has_no_name():
    assert Gang.of({}) is None
    pod = pod_manifest(ContainerSpec(AttemptId("a-1"), Resources(), (), {}), SETTINGS)
    assert "subdomain" not in pod["spec"]
    assert "iris-gang-member" not in pod["metadata"]["labels"]


def test_the_leader_of_a_gang_is_found_at_its_pod():
    moved = led_from({**VARIABLES, "PET_MASTER_ADDR": "node-7"}, "iris-a-0.iris-gangs")
    assert (moved["MASTER_ADDR"], moved["PET_MASTER_ADDR"]) == ("iris-a-0.iris-gangs", "iris-a-0.iris-gangs")
    assert (moved["MASTER_PORT"], moved["RANK"]) == ("23000", "1")


@pytest.mark.parametrize(
    ("code", "leased", "kind"),
    [
        (1, False, ExitKind.NOT_STARTED),
        (127, False, ExitKind.NOT_STARTED),
        (137, False, ExitKind.LOST),
        (0, False, ExitKind.LOST),
        (1, True, ExitKind.LOST),
    ],
)
def test_an_image_that_cannot_run_the_runner_is_a_failure_of_the_task(
    code: int, *, leased: bool, kind: ExitKind
):
    words = "No module named 'neorion'"
    status = ContainerStatus(AttemptId("a"), ContainerState.EXITED, None, code, words)
    end = verdict.unreported(status, stop_requested=False, leased=leased)
    assert end.kind is kind
    assert words in end.message
    assert ("iris-task" in end.message) == (kind is ExitKind.NOT_STARTED)
