"""Who wants to get into a server that is down hears why, on a cluster in memory."""

from typing import cast

import msgspec
import pytest
from msgspec.structs import replace

from neorion.devservers.client import DevServerApi, container, pod_logs, port_forward
from neorion.devservers.decide import SERVER_LABEL
from neorion.devservers.model import DevServerStatus, Phase
from neorion.devservers.model.kube_types import DEVSERVERS
from neorion.devservers.testing import a_pod, a_server
from neorion.keel.base import Conflict, NotFound
from neorion.keel.clock import SystemClock
from neorion.keel.kube import JsonPatch, PodLogOptions
from neorion.keel.kube.client import Client
from neorion.keel.kube.core import POD, ContainerStatus, PodStatus
from neorion.keel.kube.core.pods import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
)
from neorion.keel.kube.testing import MemoryApi, MemoryCluster

pytestmark = pytest.mark.anyio

NS = "dev-ann"
ENDED = ContainerState(terminated=ContainerStateTerminated(exit_code=3, reason="Error"))
STARVED = ContainerState(terminated=ContainerStateTerminated(exit_code=137, reason="OOMKilled"))
BACKOFF = ContainerState(waiting=ContainerStateWaiting("CrashLoopBackOff"))
NO_SHELL = "The server does not start: its image has no /bin/sh."


def written(status: DevServerStatus | PodStatus) -> JsonPatch:
    return JsonPatch([{"op": "add", "path": "/status", "value": msgspec.to_builtins(status)}])


async def fleet_with(dev: ContainerStatus, message: str | None = None) -> DevServerApi:
    clock = SystemClock()
    api = MemoryApi(MemoryCluster(clock), clock)
    server = a_server()
    await api.create(DEVSERVERS, server)
    status = DevServerStatus(phase=Phase.STARTING, observed_generation=1, message=message)
    await api.patch(DEVSERVERS, "mydev", written(status), NS, "status")
    pod = a_pod()
    labelled = replace(pod, meta=replace(pod.meta, labels={SERVER_LABEL: "mydev"}))
    await api.create(POD, labelled)
    standing = PodStatus(phase="Running", containers=(ContainerStatus(name="aside"), dev))
    await api.patch(POD, "mydev-x", written(standing), NS, "status")
    return DevServerApi(cast("Client", api), NS, clock)


@pytest.mark.parametrize(
    ("state", "last", "message", "sentence"),
    [
        (ENDED, ContainerState(), None, "it ended with exit code 3, and is started again from time to time."),
        (BACKOFF, ENDED, None, "it ended with exit code 3, and is started again from time to time."),
        (BACKOFF, STARVED, None, "it ran out of memory, and is started again from time to time."),
        (BACKOFF, ENDED, NO_SHELL, NO_SHELL),
        (
            ContainerState(waiting=ContainerStateWaiting("ContainerCreating")),
            ContainerState(),
            None,
            "does not run yet.",
        ),
    ],
)
async def test_a_server_that_ends_again_and_again_says_so(
    state: ContainerState, last: ContainerState, message: str | None, sentence: str
):
    fleet = await fleet_with(ContainerStatus(name="dev", state=state, last_state=last), message)
    with pytest.raises(Conflict) as down:
        await container(fleet, "mydev")
    assert down.value.code == "devservers.not_running"
    assert down.value.sentence.endswith(sentence)
    assert "devctl doctor mydev" in down.value.hint
    with pytest.raises(Conflict):
        async with port_forward(fleet, "mydev", 8888):
            pytest.fail("nobody listens there")


async def test_a_server_that_was_started_again_can_be_entered():
    runs = ContainerStatus(
        name="dev", state=ContainerState(running=ContainerStateRunning()), last_state=ENDED
    )
    assert (await container(await fleet_with(runs), "mydev")).pod == "mydev-x"


async def test_who_asks_for_the_last_words_of_a_server_that_never_ended_hears_that_there_are_none():
    running = ContainerState(running=ContainerStateRunning())
    fleet = await fleet_with(ContainerStatus(name="dev", ready=True, state=running))
    with pytest.raises(NotFound) as refused:
        _ = [piece async for piece in pod_logs(fleet, "mydev", PodLogOptions(previous=True))]
    assert refused.value.code == "devservers.no_previous"
