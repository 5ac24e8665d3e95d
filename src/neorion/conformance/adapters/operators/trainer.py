"""Kubeflow Trainer: TrainJobs become JobSets."""

from collections.abc import Sequence

from neorion.conformance.adapters.groups import served
from neorion.conformance.adapters.kinds import JOB_SET, TRAIN_JOB, TRAINING_RUNTIME, Json
from neorion.conformance.adapters.operators.operator import Edit
from neorion.conformance.adapters.pods import MOMENT, ON_SIMULATED, pod_spec
from neorion.conformance.adapters.workspace import Workspace


class Trainer:
    """The operator of training jobs."""

    name = "trainer"
    needs = "Kubeflow Trainer (trainer.kubeflow.org/v1alpha1) with JobSet"
    rights = (
        "create trainingruntimes.trainer.kubeflow.org",
        "create trainjobs.trainer.kubeflow.org",
        "patch trainjobs.trainer.kubeflow.org",
        "delete trainjobs.trainer.kubeflow.org",
        "watch trainjobs.trainer.kubeflow.org",
        "create jobsets.jobset.x-k8s.io",
        "delete jobsets.jobset.x-k8s.io",
        "watch jobsets.jobset.x-k8s.io",
    )
    definitions = tuple(
        f"{plural}.trainer.kubeflow.org"
        for plural in ("clustertrainingruntimes", "trainingruntimes", "trainjobs")
    )
    webhook = "validator.trainingruntime.trainer.kubeflow.org"
    guarded = TRAINING_RUNTIME
    owner = TRAIN_JOB
    child = JOB_SET
    end = (TRAIN_JOB, "Complete")

    def body(self, workspace: Workspace, *, wrong: bool) -> Json:
        """The trainer of a runtime has one replica: it grows by its number of nodes."""
        return {
            "spec": {"mlPolicy": {"numNodes": 1}, "template": {"spec": _jobs(workspace, 2 if wrong else 1)}}
        }

    async def is_served(self, workspace: Workspace) -> bool:
        return await served(workspace, TRAIN_JOB)

    async def prepare(self, workspace: Workspace) -> None:
        await workspace.create(TRAINING_RUNTIME, "runtime", self.body(workspace, wrong=False))

    async def make_waiting(self, workspace: Workspace, name: str) -> Json:
        """A TrainJob that is suspended."""
        return await _make_job(workspace, name, suspend=True)

    async def make_fitting(self, workspace: Workspace, name: str) -> Json:
        return await _make_job(workspace, name, suspend=False)

    async def make_unmanaged(self, workspace: Workspace, name: str) -> Json:
        """A JobSet that belongs to no TrainJob."""
        return await workspace.create(JOB_SET, name, {"spec": {"suspend": True, **_jobs(workspace, 1)}})

    async def edits(self, workspace: Workspace) -> Sequence[Edit]:
        """A suspended TrainJob goes on."""
        await _make_job(workspace, "edited", suspend=True)
        change = {"spec": {"suspend": False}}
        return [
            Edit("a suspended job is reported", TRAIN_JOB, "edited", {}, "Suspended", "True"),
            Edit("an edit is reconciled", TRAIN_JOB, "edited", change, "Suspended", "False"),
        ]


def _jobs(workspace: Workspace, replicas: int) -> Json:
    """The Jobs of a runtime, with the names that the operator looks for."""
    spec = pod_spec(workspace, None, 0, MOMENT)
    spec["containers"][0]["name"] = "node"
    spec["tolerations"] = ON_SIMULATED
    metadata = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
    template = {"metadata": metadata, "spec": {"backoffLimit": 0, "template": {"spec": spec}}}
    return {"replicatedJobs": [{"name": "node", "replicas": replicas, "template": template}]}


async def _make_job(workspace: Workspace, name: str, *, suspend: bool) -> Json:
    reference = {"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": "runtime"}
    body = {"spec": {"runtimeRef": reference, "suspend": suspend}}
    return await workspace.create(TRAIN_JOB, name, body)
