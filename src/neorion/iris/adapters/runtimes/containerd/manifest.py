"""The sandbox and the container of an attempt, as they are sent to containerd. Pure."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from neorion.iris.adapters.runtimes.container.engine import ContainerSpec
from neorion.iris.adapters.runtimes.container.messages import RUNNER_COMMAND
from neorion.iris.adapters.runtimes.container.settings import (
    ATTEMPT_LABEL,
    WORKER_LABEL,
    EngineSettings,
    HostMount,
)
from neorion.iris.adapters.runtimes.containerd.gen.cri_pb import (
    Capability,
    CDIDevice,
    ContainerConfig,
    ContainerMetadata,
    Device,
    ImageSpec,
    KeyValue,
    LinuxContainerConfig,
    LinuxContainerResources,
    LinuxContainerSecurityContext,
    LinuxPodSandboxConfig,
    LinuxSandboxSecurityContext,
    Mount,
    NamespaceMode,
    NamespaceOption,
    PodSandboxConfig,
    PodSandboxMetadata,
    SecurityProfile,
)
from neorion.iris.adapters.runtimes.containerd.gpus import GpuAccess
from neorion.iris.adapters.runtimes.process.cgroups import cpu_shares
from neorion.iris.model import AttemptId, Resources

# The log of the runner itself, for errors before it has reached its worker.
LOG: Final = "runner.log"
_CONTAINER: Final = "runner"
# Tasks are reached at the machine's address, and see only their own processes.
_NAMESPACES: Final = NamespaceOption(
    network=NamespaceMode.NODE, pid=NamespaceMode.CONTAINER, ipc=NamespaceMode.POD
)
_SECCOMP: Final = SecurityProfile(profile_type=SecurityProfile.ProfileType.RuntimeDefault)


def labels(worker: str, attempt: AttemptId | None = None) -> dict[str, str]:
    """Selects everything of a worker, or of one attempt of it."""
    return {WORKER_LABEL: worker, **({ATTEMPT_LABEL: str(attempt)} if attempt is not None else {})}


def sandbox_config(settings: EngineSettings, attempt: AttemptId, log_folder: Path) -> PodSandboxConfig:
    """The name is the attempt's: containerd refuses a second sandbox of the same name."""
    name = str(attempt)
    return PodSandboxConfig(
        metadata=PodSandboxMetadata(name=name, uid=name, namespace=settings.worker),
        log_directory=str(log_folder),
        labels=labels(settings.worker, attempt),
        linux=LinuxPodSandboxConfig(
            security_context=LinuxSandboxSecurityContext(namespace_options=_NAMESPACES, seccomp=_SECCOMP)
        ),
    )


def container_config(
    settings: EngineSettings, spec: ContainerSpec, mounts: Sequence[HostMount], gpus: GpuAccess
) -> ContainerConfig:
    """Tasks get no capabilities, as in Pods."""
    variables = {**settings.variables(spec), **dict(gpus.variables)}
    return ContainerConfig(
        metadata=ContainerMetadata(name=_CONTAINER),
        image=ImageSpec(image=settings.image),
        command=["python", *RUNNER_COMMAND],
        envs=[KeyValue(key=name, value=value.encode()) for name, value in variables.items()],
        mounts=[_mount(one) for one in (*settings.mounts, *mounts)],
        devices=[Device(container_path=path, host_path=path, permissions="rwm") for path in gpus.devices],
        labels=labels(settings.worker, spec.attempt),
        log_path=LOG,
        linux=LinuxContainerConfig(
            resources=_resources(spec.resources),
            security_context=LinuxContainerSecurityContext(
                capabilities=Capability(drop_capabilities=["ALL"]),
                namespace_options=_NAMESPACES,
                no_new_privs=True,
                seccomp=_SECCOMP,
            ),
        ),
        CDI_devices=[CDIDevice(name=name) for name in gpus.cdi],
    )


def _resources(asked: Resources) -> LinuxContainerResources:
    """Memory is a limit that swap does not widen; cores are a weight."""
    return LinuxContainerResources(
        cpu_shares=cpu_shares(asked.cpu_milli) if asked.cpu_milli else 0,
        memory_limit_in_bytes=asked.memory,
        memory_swap_limit_in_bytes=asked.memory,
    )


def _mount(mount: HostMount) -> Mount:
    return Mount(container_path=str(mount.target), host_path=str(mount.source), readonly=mount.read_only)
