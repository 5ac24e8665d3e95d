"""The runtime that a worker's command line asks for, opened for as long as the worker runs."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import msgspec
from msgspec.structs import replace

from neorion.iris.adapters.cluster_file import RuntimeName
from neorion.iris.adapters.runtimes.container.runner_server import RunnerAddress
from neorion.iris.adapters.runtimes.container.runtime import ContainerRuntime
from neorion.iris.adapters.runtimes.container.settings import EngineName, EngineSettings, HostMount
from neorion.iris.adapters.runtimes.kubernetes.settings import (
    POD_NAME_ENV,
    POD_UID_ENV,
    PodOwner,
    PodSettings,
)
from neorion.iris.adapters.runtimes.machine_engines import containers_folder, open_engine
from neorion.iris.adapters.runtimes.process.runtime import ProcessRuntime
from neorion.iris.ports import MACHINE_ENV, Runtime
from neorion.keel.base import Invalid
from neorion.keel.clock import Clock, Rng


@dataclass(frozen=True, slots=True)
class RuntimeChoice:
    """The runtime as the command line gives it. Runners in Pods reach this worker at `host`."""

    name: RuntimeName
    host: str
    task_pods: PodSettings | None = None
    containers: EngineSettings | None = None

    def check(self) -> None:
        """Refuses a choice that lacks something, before anything is begun."""
        if self.name is RuntimeName.KUBERNETES and self.task_pods is None:
            raise Invalid(
                "iris.no_task_pods",
                "The runtime kubernetes needs to know how Pods are made.",
                hint="Give --task-pods, or let a scale group with runtime: kubernetes start the worker.",
            )
        if self.containers is not None and not self.containers.image:
            raise Invalid(
                "iris.no_task_image",
                f"The runtime {self.name} needs an image for tasks.",
                hint="Give --task-image.",
            )


class ContainerOptions(TypedDict):
    """The options of a worker that say how its containers are made."""

    runtime: str
    runtime_socket: Path | None
    task_image: str
    task_mounts: Sequence[str]


def task_containers(options: ContainerOptions, folder: Path, env: Mapping[str, str]) -> EngineSettings | None:
    """The settings of containers on this machine; None where tasks are not in any."""
    if options["runtime"] not in set(EngineName):
        return None
    engine = EngineName(options["runtime"])
    return EngineSettings(
        containers_folder(folder.absolute()),
        engine,
        options["runtime_socket"] or engine.usual_socket,
        options["task_image"],
        tuple(HostMount.parse(text) for text in options["task_mounts"]),
        env.get(MACHINE_ENV, ""),
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
        from neorion.iris.adapters.runtimes.kubernetes import PodEngine  # noqa: PLC0415 -- only in a cluster
        from neorion.keel.kube.client import connect, find_cluster  # noqa: PLC0415 -- as above

        address = RunnerAddress("0.0.0.0", choice.host)  # noqa: S104 -- runners show tokens
        async with connect(find_cluster(None), "iris", clock, rng) as api:
            engine = PodEngine(choice.task_pods, api, clock, rng)
            async with ContainerRuntime(containers_folder(folder), engine, address, clock, rng) as pods:
                yield pods
        return
    if choice.containers is not None:
        async with (
            open_engine(choice.containers, clock) as engine,
            ContainerRuntime(choice.containers.folder, engine, RunnerAddress(), clock, rng) as containers,
        ):
            yield containers
        return
    async with ProcessRuntime(folder / "runtime", clock) as processes:
        yield processes
