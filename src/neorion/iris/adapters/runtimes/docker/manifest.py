"""The container of an attempt, as it is sent to Docker. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from neorion.iris.adapters.runtimes.container.engine import ContainerSpec
from neorion.iris.adapters.runtimes.container.gpu_variable import NO_GPUS
from neorion.iris.adapters.runtimes.container.messages import RUNNER_COMMAND
from neorion.iris.adapters.runtimes.container.settings import (
    ATTEMPT_LABEL,
    WORKER_LABEL,
    EngineSettings,
    HostMount,
)
from neorion.iris.adapters.runtimes.process.cgroups import PIDS_MAX, cpu_shares
from neorion.iris.model import AttemptId

# Docker's own 64 MiB are too little for work on GPUs.
_SHARED_MEMORY: Final = 8 << 30


def container_name(attempt: AttemptId) -> str:
    """The name that makes a repeated create harmless."""
    return f"iris-{attempt}"


def container_body(settings: EngineSettings, spec: ContainerSpec, record: HostMount) -> Mapping[str, Any]:
    """Tasks get no capabilities, as in Pods. Memory is a limit that swap does not widen; cores are a weight."""
    asked = spec.resources
    variables = {**settings.variables(spec), **({} if spec.gpus else NO_GPUS)}
    return {
        "Image": settings.image,
        "Entrypoint": ["python", *RUNNER_COMMAND],
        "Cmd": [],
        "Env": [f"{name}={value}" for name, value in variables.items()],
        "Labels": {WORKER_LABEL: settings.worker, ATTEMPT_LABEL: str(spec.attempt)},
        "HostConfig": {
            # Tasks are reached at the machine's address.
            "NetworkMode": "host",
            "IpcMode": "private",
            "Memory": asked.memory,
            "MemorySwap": asked.memory,
            "CpuShares": cpu_shares(asked.cpu_milli) if asked.cpu_milli else 0,
            "PidsLimit": PIDS_MAX,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "RestartPolicy": {"Name": "no"},
            # Of the runner itself; the task's goes to the worker.
            "LogConfig": {"Type": "json-file", "Config": {"max-size": "1m", "max-file": "1"}},
            "Mounts": [_mount(one) for one in (*settings.mounts, record)],
            **(_gpus(spec) if spec.gpus else {}),
        },
    }


def _gpus(spec: ContainerSpec) -> Mapping[str, Any]:
    request = {"DeviceIDs": list(spec.gpus), "Capabilities": [["gpu"]]}
    return {"DeviceRequests": [request], "ShmSize": spec.resources.memory or _SHARED_MEMORY}


def _mount(mount: HostMount) -> Mapping[str, Any]:
    return {
        "Type": "bind",
        "Source": str(mount.source),
        "Target": str(mount.target),
        "ReadOnly": mount.read_only,
    }
