"""Refuses settings of a cluster file that this version does not implement, by name."""

from collections.abc import Mapping

from neorion.iris.adapters.cluster_file.convert import runtime
from neorion.iris.adapters.cluster_file.file import ClusterFile
from neorion.iris.adapters.cluster_file.sections import ON_MACHINE, Bootstrap, PlatformModel, RuntimeName
from neorion.keel.base import Invalid
from neorion.keel.telemetry import logger

log = logger(__name__)

_ONE_MACHINE = "has no meaning on one machine, or not this one."
_NOT_YET = "is not supported for worker Pods yet."
_NOT_IN_PODS = "cannot run in worker Pods. They have no privileges, and a kubelet removes what others start."
_NEEDS_PODS = "needs worker Pods, and workers here are processes of this machine."
_NEEDS_IMAGE = "needs defaults.bootstrap.task_image."
_CONTAINERS_ONLY = "is for runtime: containerd and runtime: docker."
_LEAVE_OUT = "Leave it out of the cluster file."


def check_served(file: ClusterFile) -> None:
    """Refuse the first setting that would do nothing. Those of the documents' own files are only logged."""
    if file.platform.in_cluster is None:
        _refuse(_set_for_one_machine(file), _ONE_MACHINE)
        _refuse(
            _runtimes_of(file, RuntimeName.KUBERNETES), _NEEDS_PODS, "Choose process, containerd or docker."
        )
        in_containers = _runtimes_of(file, *ON_MACHINE)
        if not file.defaults.bootstrap.task_image:
            _refuse(in_containers, _NEEDS_IMAGE, "Name an image with neorion in it.")
        if not in_containers:
            _refuse(_set_for_containers(file), _CONTAINERS_ONLY)
        # With the platform replaced by local, the documents' files still load and run.
        _warn(file, "docker_image", "worker_port")
    else:
        _refuse(_runtimes_of(file, *ON_MACHINE), _NOT_IN_PODS, "Choose process or kubernetes.")
        _refuse(_set_for_pods(file), _NOT_YET)


def _set_for_one_machine(file: ClusterFile) -> Mapping[str, bool]:
    bootstrap, usual = file.defaults.bootstrap, Bootstrap()
    return {
        "platform.label_prefix": file.platform.label_prefix
        != PlatformModel.model_fields["label_prefix"].default,
        "defaults.bootstrap.cache_dir": bootstrap.cache_dir != usual.cache_dir,
    }


def _set_for_containers(file: ClusterFile) -> Mapping[str, bool]:
    bootstrap = file.defaults.bootstrap
    return {
        "defaults.bootstrap.task_image": bool(bootstrap.task_image),
        "defaults.bootstrap.task_mounts": bool(bootstrap.task_mounts),
        "defaults.bootstrap.runtime_socket": bool(bootstrap.runtime_socket),
    }


def _set_for_pods(file: ClusterFile) -> Mapping[str, bool]:
    bootstrap, runtimes = file.defaults.bootstrap, _runtimes(file)
    return {
        "defaults.bootstrap.cache_dir": bool(bootstrap.cache_dir),
        "defaults.bootstrap.task_mounts": bool(bootstrap.task_mounts),
        "defaults.bootstrap.runtime_socket": bool(bootstrap.runtime_socket),
        "defaults.bootstrap.task_image without runtime: kubernetes": bool(bootstrap.task_image)
        and RuntimeName.KUBERNETES not in runtimes.values(),
    }


def _runtimes_of(file: ClusterFile, *names: RuntimeName) -> Mapping[str, bool]:
    """The settings that choose one of these runtimes."""
    return {f"{key}: {chosen}": True for key, chosen in _runtimes(file).items() if chosen in names}


def _runtimes(file: ClusterFile) -> Mapping[str, RuntimeName]:
    """The runtime of each scale group, by the key that says it."""
    return {
        f"scale_groups.{name}.runtime" if group.runtime else "defaults.bootstrap.runtime": runtime(
            file, group
        )
        for name, group in file.scale_groups.items()
    }


def _refuse(settings: Mapping[str, bool], why: str, hint: str = _LEAVE_OUT) -> None:
    for key, is_set in settings.items():
        if is_set:
            raise Invalid("iris.unserved", f"{key} {why}", hint=hint)


def _warn(file: ClusterFile, *keys: str) -> None:
    usual = Bootstrap()
    for key in keys:
        if getattr(file.defaults.bootstrap, key) != getattr(usual, key):
            log.warning("not used on one machine", key=f"defaults.bootstrap.{key}")
