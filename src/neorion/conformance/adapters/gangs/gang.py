"""A gang of pods, and what the check needs of a gang scheduler."""

from dataclasses import dataclass, field
from typing import Final, Protocol

from neorion.conformance.adapters.kinds import JOB, Json
from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.decide.nodes import NodeSupply

# On every pod of a gang; its value is the gang's name.
GANG_LABEL: Final = "conformance.neorion.dev/group"


@dataclass(frozen=True, slots=True)
class Gang:
    """So many equal pods that start together or not at all."""

    name: str
    size: int
    spec: Json
    annotations: dict[str, str] = field(default_factory=dict[str, str])


class GangScheduler(Protocol):
    """One way to start pods together. `needs` says what a cluster must have for it."""

    @property
    def name(self) -> str: ...

    @property
    def needs(self) -> str: ...

    @property
    def rights(self) -> tuple[str, ...]: ...

    async def is_served(self, workspace: Workspace) -> bool: ...

    async def prepare(self, workspace: Workspace, node: NodeSupply) -> None:
        """Makes what gangs on this node need beside themselves, for example a queue."""
        ...

    async def start(self, workspace: Workspace, gang: Gang) -> None: ...

    async def delete(self, workspace: Workspace, name: str) -> None: ...


def template_of(gang: Gang, *, labels: dict[str, str] | None = None, **spec: object) -> Json:
    """The template of a gang's pods; `spec` is added to theirs."""
    meta = {"labels": {**(labels or {}), GANG_LABEL: gang.name}, "annotations": gang.annotations}
    return {"metadata": meta, "spec": {**gang.spec, **spec}}


def job_spec(size: int, template: Json, **more: object) -> Json:
    return {"parallelism": size, "completions": size, "backoffLimit": 0, "template": template, **more}


async def delete_job(workspace: Workspace, name: str) -> None:
    await workspace.api.delete(JOB, name, workspace.namespace)
