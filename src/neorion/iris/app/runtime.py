"""The runtime that a worker's command line asks for, opened for as long as the worker runs."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec.structs import replace

from neorion.iris.adapters.cluster_file import RuntimeName
from neorion.iris.adapters.runtimes.kubernetes.settings import (
    POD_NAME_ENV,
    POD_UID_ENV,
    PodOwner,
    PodSettings,
)
from neorion.iris.adapters.runtimes.process.runtime import ProcessRuntime
from neorion.iris.ports import Runtime
from neorion.keel.base import Invalid
from neorion.keel.clock import Clock, Rng


@dataclass(frozen=True, slots=True)
class RuntimeChoice:
    """What the command line says of the runtime. `host` is where runners in containers reach this worker."""

    name: RuntimeName
    host: str
    task_pods: PodSettings | None = None

    def check(self) -> None:
        """Refuses a choice that lacks something, before anything is begun."""
        if self.name is RuntimeName.KUBERNETES and self.task_pods is None:
            raise Invalid(
                "iris.no_task_pods",
                "The runtime kubernetes needs to know how Pods are made.",
                hint="Give --task-pods, or let a scale group with runtime: kubernetes start the worker.",
            )
        if self.name not in (RuntimeName.PROCESS, RuntimeName.KUBERNETES):
            raise Invalid(
                "iris.unserved",
                f"The runtime {self.name} is not supported yet.",
                hint="Use --runtime process or --runtime kubernetes.",
            )


def task_pods(text: str, env: Mapping[str, str]) -> PodSettings | None:
    """Pods of attempts belong to the worker's own Pod, which the environment names."""
    if not text:
        return None
    try:
        settings = msgspec.json.decode(text, type=PodSettings)
    except msgspec.DecodeError as error:
        raise Invalid(
            "iris.bad_task_pods", f"The text of --task-pods is not valid: {error}.", hint="Write JSON."
        ) from None
    name, uid = env.get(POD_NAME_ENV, ""), env.get(POD_UID_ENV, "")
    if not name or not uid:
        return settings
    return replace(settings, worker=uid, owner=PodOwner(name, uid))


@asynccontextmanager
async def open_runtime(
    choice: RuntimeChoice, folder: Path, clock: Clock, rng: Rng
) -> AsyncGenerator[Runtime]:
    if choice.name is RuntimeName.KUBERNETES and choice.task_pods is not None:
        # Not on machines that run tasks themselves.
        from neorion.iris.adapters.runtimes.container.runner_server import RunnerAddress  # noqa: PLC0415 -- see above
        from neorion.iris.adapters.runtimes.container.runtime import ContainerRuntime  # noqa: PLC0415 -- see above
        from neorion.iris.adapters.runtimes.kubernetes import PodEngine  # noqa: PLC0415 -- see above
        from neorion.keel.kube.client import connect, find_cluster  # noqa: PLC0415 -- see above

        address = RunnerAddress("0.0.0.0", choice.host)  # noqa: S104 -- runners show tokens
        async with connect(find_cluster(None), "iris", clock, rng) as api:
            engine = PodEngine(choice.task_pods, api, clock, rng)
            async with ContainerRuntime(folder / "containers", engine, address, clock, rng) as containers:
                yield containers
        return
    async with ProcessRuntime(folder / "runtime", clock) as processes:
        yield processes
