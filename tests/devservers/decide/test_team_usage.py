"""Quota of teams: dev servers and jobs of iris counted together, with what they cost."""

from decimal import Decimal
from typing import Any

import msgspec

from neorion.devservers.decide.names import SERVER_LABEL
from neorion.devservers.decide.team_usage import (
    CPU_HOUR,
    GPU_HOUR,
    HolderKind,
    QuotaObjects,
    TeamUsage,
    usage_of_teams,
)
from neorion.devservers.model import Cost, DevServerStatus
from neorion.devservers.model.kueue import ClusterQueue, LocalQueue, ResourceFlavor, Workload
from neorion.devservers.testing import a_server
from neorion.devservers.testing.builders import CREATED
from neorion.keel.base import Quantity

GPU = "nvidia.com/gpu"
HELD = [{"type": kind, "status": "True"} for kind in ("QuotaReserved", "Admitted")]


def team(name: str, gpus: int, cohort: str = "all") -> Any:
    amounts = [{"name": GPU, "nominalQuota": gpus}, {"name": "cpu", "nominalQuota": "16"}]
    group = {"coveredResources": [GPU, "cpu"], "flavors": [{"name": "a100", "resources": amounts}]}
    spec = {"cohortName": cohort, "resourceGroups": [group]}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, ClusterQueue)


def workload(name: str, of: str, gpus: int = 0, **meta: Any) -> Any:
    """One that holds quota, or waits for it where it has no GPUs."""
    usage = {GPU: str(gpus), "cpu": "2500m"}
    assigned = {"name": "main", "count": 2, "flavors": dict.fromkeys(usage, "a100"), "resourceUsage": usage}
    admission = {"clusterQueue": of, "podSetAssignments": [assigned]}
    body = {
        "metadata": {"name": name, "namespace": f"dev-{of}", **meta},
        "spec": {"queueName": "team"},
        "status": {"admission": admission, "conditions": HELD} if gpus else {},
    }
    return msgspec.convert(body, Workload)


def owned_by(kind: str, name: str) -> dict[str, Any]:
    return {"ownerReferences": [{"apiVersion": "v1", "kind": kind, "name": name, "uid": "u"}]}


def usages(*workloads: Any, prices: dict[str, str] | None = None) -> dict[str, TeamUsage]:
    queues = [
        msgspec.convert(
            {"metadata": {"name": "team", "namespace": f"dev-{one}"}, "spec": {"clusterQueue": one}},
            LocalQueue,
        )
        for one in ("ann", "bob")
    ]
    metadata = {"name": "a100", "annotations": prices or {}}
    cost = Cost(as_of=CREATED, per_hour="3", stopped_per_hour="0", running=True)
    seen = QuotaObjects(
        teams=(team("bob", 4), team("ann", 4)),
        queues=queues,
        workloads=workloads,
        flavors=(msgspec.convert({"metadata": metadata}, ResourceFlavor),),
        servers=(a_server(status=DevServerStatus(cost=cost)),),
    )
    return {one.team: one for one in usage_of_teams(seen)}


SERVER = workload("devserver-mydev-1", "ann", 2, labels={SERVER_LABEL: "mydev"})
JOB = workload("pod-1", "ann", 3, **owned_by("Pod", "iris-j1.0"))
BATCH = workload("job-1", "ann", 1, **owned_by("Job", "train"))


def test_servers_jobs_and_others_are_counted_together():
    ann = usages(SERVER, JOB, BATCH, workload("later", "ann"), workload("elsewhere", "bob"))["ann"]
    assert [(one.kind, one.name, one.machines) for one in ann.holders] == [
        (HolderKind.SERVER, "mydev", 2),
        (HolderKind.JOB, "iris-j1.0", 2),
        (HolderKind.OTHER, "train", 2),
    ]
    assert ann.waiting == 1
    gpus, cpu = ann.resources[GPU], ann.resources["cpu"]
    assert (gpus.used, gpus.quota, gpus.borrowed) == (Quantity.of(6), Quantity.of(4), Quantity.of(2))
    assert (str(cpu.used), str(cpu.borrowed)) == ("7500m", "0")


def test_a_team_without_anything_is_shown_with_its_quota():
    bob = usages(SERVER)["bob"]
    assert (bob.holders, bob.waiting, bob.per_hour) == ((), 0, Decimal(0))
    assert bob.resources[GPU].quota == Quantity.of(4)


def test_a_server_costs_what_its_flavor_says_and_a_job_what_its_nodes_do():
    ann = usages(SERVER, JOB, prices={GPU_HOUR: "2", CPU_HOUR: "0.1"})["ann"]
    # 3 for the server; three GPUs and two and a half CPUs for the job.
    assert [one.per_hour for one in ann.holders] == [Decimal(3), Decimal("6.25")]
    assert (ann.per_hour, ann.unpriced) == (Decimal("9.25"), 0)


def test_what_has_no_price_is_told_and_not_taken_for_free():
    ann = usages(SERVER, JOB, BATCH)["ann"]
    assert (ann.per_hour, ann.unpriced) == (Decimal(3), 2)


def test_quota_that_was_taken_away_is_nobodys():
    lost = workload("devserver-mydev-1", "ann", 2)
    evicted = [*HELD, {"type": "Evicted", "status": "True"}]
    body = msgspec.convert(
        {
            "metadata": {"name": "lost", "namespace": "dev-ann"},
            "status": {"conditions": evicted, "admission": {"clusterQueue": "ann"}},
        },
        Workload,
    )
    assert len(usages(lost, body)["ann"].holders) == 1
