"""Distributed servers: the objects of all ranks, and one state of the whole."""

from dataclasses import replace as changed
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from neorion.devservers.decide import (
    HOME_DELETE_AFTER,
    ActivitySource,
    Decision,
    Observed,
    ProbeReading,
    decide,
    together,
)
from neorion.devservers.decide.names import TEMPLATE_LABEL
from neorion.devservers.model import (
    Backend,
    DevServerFlavorSpec,
    DevServerSpec,
    Distributed,
    Lifecycle,
    Mode,
    OnExpire,
    Phase,
    RankHomes,
)
from neorion.devservers.model.flavor import Topology
from neorion.devservers.model.kube_types import ServerDeployment, ServerStatefulSet
from neorion.devservers.testing import FLAVOR, SETTINGS, a_claim, a_flavor, a_pod, a_server
from neorion.devservers.testing.builders import CREATED
from neorion.keel.kube import Condition
from neorion.keel.kube.core import PersistentVolumeClaim, Pod, PodStatus

HOUR = timedelta(hours=1)
GANG = Distributed(world_size=4, backend=Backend.GLOO)
LIFE = Lifecycle(auto_shutdown=False)
KEY = "ssh-ed25519 AAAA"


def spec(distributed: Distributed = GANG, **fields: Any) -> DevServerSpec:
    return DevServerSpec(
        flavor="cpu-small", mode=Mode.DISTRIBUTED, distributed=distributed, lifecycle=LIFE, **fields
    )


def homes(count: int = 4) -> tuple[PersistentVolumeClaim, ...]:
    made = a_claim()
    names = (f"home-mydev-{rank}" for rank in range(count))
    return tuple(replace(made, meta=replace(made.meta, name=name)) for name in names)


def rank(number: int, template: str, status: PodStatus | None = None) -> Pod:
    pod = a_pod(status=status)
    labels = {TEMPLATE_LABEL: template}
    meta = replace(pod.meta, name=f"mydev-{number}", labels=labels)
    return replace(pod, meta=meta, spec=replace(pod.spec, node_name=pod.spec.node_name and f"node{number}"))


def seen(wanted: DevServerSpec, pods: tuple[Pod, ...] = (), **more: Any) -> Observed:
    body: ServerDeployment | None = ServerStatefulSet() if pods else None
    kept = homes()
    return Observed(a_server(wanted, **more), a_flavor(), kept[0], body, pods, kept_homes=kept)


def one(decision: Decision, kind: str, name: str = "mydev") -> dict[str, Any]:
    [found] = [made for made in decision.objects if made["kind"] == kind and made["metadata"]["name"] == name]
    return found


def template_of(wanted: DevServerSpec) -> str:
    body = one(decide(seen(wanted), SETTINGS, CREATED), "StatefulSet")
    return body["spec"]["template"]["metadata"]["labels"][TEMPLATE_LABEL]


def environment(wanted: DevServerSpec) -> dict[str, str]:
    body = one(decide(seen(wanted), SETTINGS, CREATED), "StatefulSet")
    [container] = body["spec"]["template"]["spec"]["containers"]
    return {item["name"]: item.get("value", "") for item in container["env"]}


def gang(wanted: DevServerSpec | None = None, **status: PodStatus) -> tuple[Pod, ...]:
    """Four ranks that are ready, but for those of which something else is said, as in r2=..."""
    template = template_of(wanted or spec())
    return tuple(rank(number, template, status.get(f"r{number}")) for number in range(4))


WAITING = PodStatus(phase="Pending")


def test_all_ranks_start_together_behind_names_that_are_known_before_they_are_ready():
    decision = decide(seen(spec()), SETTINGS, CREATED)
    body, service = one(decision, "StatefulSet"), one(decision, "Service")
    assert body["spec"]["replicas"] == 4
    assert body["spec"]["podManagementPolicy"] == "Parallel"
    assert body["spec"]["serviceName"] == service["metadata"]["name"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    first = one(decision, "Service", "mydev-ssh")["spec"]["selector"]
    assert first["apps.kubernetes.io/pod-index"] == "0"
    assert not [made for made in decision.objects if made["kind"] == "Deployment"]


def test_each_rank_has_a_home_that_nothing_deletes_with_the_server():
    decision = decide(seen(spec()), SETTINGS, CREATED)
    claims = [made for made in decision.objects if made["kind"] == "PersistentVolumeClaim"]
    assert [made["metadata"]["name"] for made in claims] == [f"home-mydev-{rank}" for rank in range(4)]
    assert all("ownerReferences" not in made["metadata"] for made in claims)
    kept = one(decision, "StatefulSet")["spec"]["persistentVolumeClaimRetentionPolicy"]
    assert kept == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    gone = decide(seen(spec(), deleted=CREATED.isoformat()), SETTINGS, CREATED)
    marked = [made["metadata"] for made in gone.objects]
    assert [made["name"] for made in marked] == [f"home-mydev-{rank}" for rank in range(4)]
    assert all(HOME_DELETE_AFTER in made["annotations"] for made in marked)


def test_a_shared_home_is_one_claim_that_all_ranks_mount():
    decision = decide(seen(spec(replace(GANG, homes=RankHomes.SHARED))), SETTINGS, CREATED)
    [claim] = [made for made in decision.objects if made["kind"] == "PersistentVolumeClaim"]
    assert claim["metadata"]["name"] == "mydev-home"
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    body = one(decision, "StatefulSet")["spec"]
    assert "volumeClaimTemplates" not in body
    volumes = {item["name"]: item for item in body["template"]["spec"]["volumes"]}
    assert volumes["home"]["persistentVolumeClaim"]["claimName"] == "mydev-home"


def test_torchrun_finds_in_the_environment_all_it_needs():
    distributed = Distributed(
        world_size=8, nprocs_per_node=2, backend=Backend.GLOO, max_restarts=3, port=29505
    )
    given = environment(spec(distributed))
    assert given["PET_NNODES"] == "4"
    assert given["PET_NPROC_PER_NODE"] == "2"
    assert given["PET_MASTER_ADDR"] == "mydev-0.mydev"
    assert given["PET_MASTER_PORT"] == "29505"
    assert given["PET_MAX_RESTARTS"] == "3"
    assert given["DEVSERVER_BACKEND"] == "gloo"
    assert "PET_RDZV_BACKEND" not in given
    # torchrun sets these for each process.
    assert not {"RANK", "WORLD_SIZE", "LOCAL_RANK"} & given.keys()


def test_with_a_least_number_of_nodes_the_rendezvous_is_elastic():
    given = environment(spec(replace(GANG, min_nodes=2)))
    assert given["PET_NNODES"] == "2:4"
    assert given["PET_RDZV_BACKEND"] == "c10d"
    assert given["PET_RDZV_ENDPOINT"] == "mydev-0.mydev:29500"
    assert given["PET_RDZV_ID"] == "mydev"


def test_settings_of_nccl_reach_every_rank():
    given = environment(spec(replace(GANG, nccl_settings={"NCCL_DEBUG": "INFO"})))
    assert given["NCCL_DEBUG"] == "INFO"


def test_mpi_has_a_host_file_and_logs_in_by_the_way_of_the_ranks():
    wanted = spec(replace(GANG, backend=Backend.MPI, world_size=8, nprocs_per_node=2))
    hosts = one(decide(seen(wanted), SETTINGS, CREATED), "ConfigMap", "mydev-ranks")["data"]["hostfile"]
    assert hosts.splitlines() == [f"mydev-{rank}.mydev slots=2" for rank in range(4)]
    assert environment(wanted)["OMPI_MCA_plm_rsh_agent"] == "/opt/devserver/bin/rank-ssh"


def test_ranks_log_in_to_each_other_with_the_key_that_they_alone_have():
    settings = changed(SETTINGS, tools_image="tools")
    there = seen(spec())
    there = changed(
        there, server=replace(there.server, status=replace(there.server.status, ssh_host_key=KEY))
    )
    decision = decide(there, settings, CREATED)
    keys = one(decision, "ConfigMap", "mydev-ssh-keys")["data"]["authorized_keys"]
    known = one(decision, "ConfigMap", "mydev-ranks")["data"]["known_hosts"]
    assert keys == f"{KEY} ranks-of-mydev\n"
    assert known == f"mydev {KEY}\n"
    alone = changed(there, server=replace(there.server, spec=DevServerSpec(flavor="cpu-small")))
    standalone = one(decide(alone, settings, CREATED), "ConfigMap", "mydev-ssh-keys")
    assert standalone["data"]["authorized_keys"] == ""


@pytest.mark.parametrize("required", [True, False])
def test_a_flavor_keeps_the_ranks_within_one_zone(*, required: bool):
    flavor: DevServerFlavorSpec = replace(FLAVOR, topology=Topology(key="zone", required=required))
    there = changed(seen(spec()), flavor=a_flavor(flavor))
    pod = one(decide(there, SETTINGS, CREATED), "StatefulSet")["spec"]["template"]["spec"]
    [rule] = pod["affinity"]["podAffinity"].values()
    term = rule[0] if required else rule[0]["podAffinityTerm"]
    assert term["topologyKey"] == "zone"


def test_the_whole_runs_when_its_last_rank_does():
    done = decide(seen(spec(), gang()), SETTINGS, CREATED).status
    assert done.phase is Phase.RUNNING
    assert [item.node for item in done.ranks] == [f"node{rank}" for rank in range(4)]
    assert all(item.ready for item in done.ranks)
    late = decide(seen(spec(), gang(r2=WAITING)), SETTINGS, CREATED).status
    assert late.phase is Phase.PENDING
    assert [item.ready for item in late.ranks] == [True, True, False, True]
    missing = decide(seen(spec(), gang()[:3]), SETTINGS, CREATED).status
    assert not missing.ready


def test_what_is_in_the_way_of_one_rank_is_reported_with_its_number():
    condition: Any = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3"}
    stuck = PodStatus(phase="Pending", conditions=(Condition(**condition),))
    told = decide(seen(spec(), gang(r3=stuck)), SETTINGS, CREATED).status
    assert told.message == "Rank 3: No node has room: 0/3."


def test_a_lost_rank_is_reported_once_and_the_others_stay():
    first = decide(seen(spec(), gang()), SETTINGS, CREATED).status
    after = decide(seen(spec(), gang()[:3], status=first), SETTINGS, CREATED)
    assert [note.reason for note in after.notes if note.reason == "RankLost"] == ["RankLost"]
    assert one(after, "StatefulSet")["spec"]["replicas"] == 4
    again = decide(seen(spec(), gang()[:3], status=after.status), SETTINGS, CREATED)
    assert not [note for note in again.notes if note.reason == "RankLost"]


def test_another_template_ends_all_ranks_before_the_first_of_the_new_one():
    wanted = spec(replace(GANG, nccl_settings={"NCCL_DEBUG": "INFO"}))
    body = one(decide(seen(wanted, gang()), SETTINGS, CREATED), "StatefulSet")
    assert body["spec"]["replicas"] == 0
    last = decide(seen(wanted, gang()[2:3]), SETTINGS, CREATED)
    assert one(last, "StatefulSet")["spec"]["replicas"] == 0
    empty = decide(seen(wanted), SETTINGS, CREATED)
    assert one(empty, "StatefulSet")["spec"]["replicas"] == 4


def test_more_cpu_reaches_all_ranks_without_a_restart():
    more = {"cpu": "2", "memory": "4Gi"}
    flavor = replace(FLAVOR, resources=replace(FLAVOR.resources, requests=more, limits=more | {"cpu": "4"}))
    there = changed(seen(spec(), gang()), flavor=a_flavor(flavor))
    body = ServerStatefulSet()
    pod = there.working_pods[0]
    template = replace(
        body.spec.template, spec=replace(body.spec.template.spec, containers=pod.spec.containers)
    )
    there = changed(there, body=replace(body, spec=replace(body.spec, template=template)))
    decision = decide(there, SETTINGS, CREATED)
    assert decision.resize is not None
    assert decision.resize["requests"]["cpu"] == "2"


@pytest.mark.parametrize("on_expire", list(OnExpire))
def test_the_whole_stops_when_its_time_is_over(on_expire: OnExpire):
    life = replace(LIFE, time_to_live="1h", on_expire=on_expire)
    wanted = replace(spec(), lifecycle=life)
    decision = decide(seen(wanted, gang()), SETTINGS, CREATED + HOUR)
    assert decision.edit is not None
    stopped = replace(wanted, running=False)
    body = one(decide(seen(stopped, gang()), SETTINGS, CREATED + HOUR), "StatefulSet")
    assert body["spec"]["replicas"] == 0


def test_a_distributed_server_costs_as_much_as_its_machines():
    assert (cost := decide(seen(spec(), gang()), SETTINGS, CREATED).status.cost) is not None
    assert cost.per_hour == "4"
    assert cost.stopped_per_hour == "0.4"


def test_it_is_in_use_while_one_rank_is():
    minute, hour = timedelta(minutes=1), HOUR
    readings = [
        ProbeReading(((ActivitySource.SESSION, hour),), cpu=minute),
        ProbeReading(((ActivitySource.SESSION, minute),), cpu=2 * minute),
    ]
    assert together(readings) == ProbeReading(((ActivitySource.SESSION, minute),), cpu=3 * minute)
    blind = ProbeReading(unknown=frozenset({ActivitySource.GPU}))
    assert together([*readings, blind]).unknown == {ActivitySource.GPU}
    assert together([*readings, blind]).cpu is None
