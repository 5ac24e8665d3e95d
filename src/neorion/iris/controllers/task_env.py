"""Environment variables of a task: its identity, its ports and GPUs, and the ranks of a gang."""

from neorion.iris.model import PriorityBand
from neorion.iris.model.record import Attempt
from neorion.iris.model.tokens import task_token
from neorion.iris.ports import GANG_ENV
from neorion.iris.state import ClusterState


def variables_of(cluster: ClusterState, attempt: Attempt) -> dict[str, str]:
    job = cluster.jobs[attempt.job]
    spec = job.spec
    worker = cluster.workers[attempt.worker]
    variables = {
        "IRIS_JOB_ID": job.id,
        "IRIS_JOB_NAME": spec.name,
        "IRIS_TASK_INDEX": str(attempt.index),
        "IRIS_NUM_TASKS": str(spec.replicas),
        "IRIS_ATTEMPT_UID": attempt.id,
        "IRIS_ATTEMPT_NUMBER": str(attempt.number),
        "IRIS_WORKER_ID": worker.id,
        "IRIS_VM_ADDRESS": worker.host,
        "IRIS_PRIORITY": PriorityBand(spec.band).name.lower(),
        "IRIS_TOKEN": task_token(attempt.id, attempt.secret),
    }
    variables.update(
        {
            f"IRIS_PORT_{name.upper()}": str(port)
            for name, port in zip(spec.ports, attempt.ports, strict=False)
        }
    )
    if attempt.gpus:
        variables["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, attempt.gpus))
    if spec.placement.gang:
        variables.update(_ranks(cluster, attempt))
    return variables


def _ranks(cluster: ClusterState, attempt: Attempt) -> dict[str, str]:
    """Rank, world size and rendezvous address, under the names that torchrun and similar programs read."""
    spec = cluster.jobs[attempt.job].spec
    host, _, port = attempt.rendezvous.rpartition(":")
    rank, world = str(attempt.index), str(spec.replicas)
    return {
        GANG_ENV: cluster.tasks[attempt.job][0].attempt,
        "RANK": rank,
        "WORLD_SIZE": world,
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": host,
        "MASTER_PORT": port,
        "PET_NNODES": world,
        "PET_NODE_RANK": rank,
        "PET_MASTER_ADDR": host,
        "PET_MASTER_PORT": port,
    }
