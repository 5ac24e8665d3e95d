"""The platform that a cluster file asks for, opened for as long as a controller runs."""

import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from neorion.iris.adapters.cluster_file import ClusterFile, behaviours, container_flags, kubernetes_settings
from neorion.iris.adapters.cluster_file.sections import LocalPlatformModel as LocalSection
from neorion.iris.adapters.platforms.kubernetes import KubernetesPlatform, check_cluster
from neorion.iris.adapters.platforms.local import Launch, LocalMachine, LocalPlatform, LocalSettings
from neorion.iris.adapters.runtimes.machine_engines import remove_containers
from neorion.iris.ports import Platform
from neorion.keel.clock import Clock, Rng


@dataclass(frozen=True, slots=True)
class LocalWorkers:
    """Folder of this machine's slices, the controller's address, and the command that starts a worker."""

    folder: Path
    address: str
    launch: Launch


@asynccontextmanager
async def open_platform(
    file: ClusterFile, local: LocalWorkers, clock: Clock, rng: Rng
) -> AsyncGenerator[Platform]:
    """Opens the platform of a cluster file. Closing it does not change the slices."""
    if (cluster := file.platform.in_cluster) is not None:
        from neorion.keel.kube.client import connect, find_cluster  # noqa: PLC0415 -- not on one machine

        kubeconfig = Path(cluster.kubeconfig_path).expanduser() if cluster.kubeconfig_path else None
        settings = kubernetes_settings(file)
        async with connect(find_cluster(kubeconfig), "iris", clock, rng) as api:
            await check_cluster(api, settings)
            async with KubernetesPlatform(settings, api, clock, rng) as platform:
                yield platform
        return
    section = file.platform.local or LocalSection()
    settings = LocalSettings(
        local.folder,
        local.address,
        {**_variables(), **file.defaults.bootstrap.env_vars},
        behaviours(file),
        section.stop_grace,
    )

    async def cleanup(machine: LocalMachine) -> None:
        await remove_containers(machine.folder, clock)

    def launch(machine: LocalMachine) -> Sequence[str]:
        return [*local.launch(machine), *container_flags(file, machine.group)]

    async with LocalPlatform(settings, launch, clock, cleanup) as platform:
        yield platform


def _variables() -> dict[str, str]:
    """Environment variables that a worker inherits; none of them is a secret."""
    inherited = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV")
    return {name: os.environ[name] for name in inherited if name in os.environ}
