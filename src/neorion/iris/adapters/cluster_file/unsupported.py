"""Refuses settings of a cluster file that this version does not implement, by name."""

from collections.abc import Mapping

from neorion.iris.adapters.cluster_file.convert import runtime
from neorion.iris.adapters.cluster_file.file import ClusterFile
from neorion.iris.adapters.cluster_file.sections import Bootstrap, PlatformModel, RuntimeName
from neorion.keel.base import Invalid
from neorion.keel.telemetry import logger

log = logger(__name__)

_ONE_MACHINE = "has no meaning on one machine, or not this one."
_NOT_YET = "is not supported for worker Pods yet."
# A worker Pod has no privileges, and a kubelet removes what others start in its containerd.
_IN_CLUSTER = (RuntimeName.PROCESS, RuntimeName.KUBERNETES)


def check_served(file: ClusterFile) -> None:
    """Refuse the first setting that would do nothing. Those of the documents' own files are only logged."""
    if file.platform.in_cluster is None:
        _refuse(_set_for_one_machine(file), _ONE_MACHINE)
        # With the platform replaced by local, the documents' files still load and run.
        _warn(file, "docker_image", "worker_port")
    else:
        _refuse(_set_for_pods(file), _NOT_YET)


def _set_for_one_machine(file: ClusterFile) -> Mapping[str, bool]:
    bootstrap, usual = file.defaults.bootstrap, Bootstrap()
    return {
        "platform.label_prefix": file.platform.label_prefix
        != PlatformModel.model_fields["label_prefix"].default,
        **{key: chosen is not RuntimeName.PROCESS for key, chosen in _runtimes(file).items()},
        "defaults.bootstrap.cache_dir": bootstrap.cache_dir != usual.cache_dir,
        "defaults.bootstrap.task_image": bootstrap.task_image != usual.task_image,
    }


def _set_for_pods(file: ClusterFile) -> Mapping[str, bool]:
    bootstrap, runtimes = file.defaults.bootstrap, _runtimes(file)
    return {
        **{f"{key}: {chosen}": chosen not in _IN_CLUSTER for key, chosen in runtimes.items()},
        "defaults.bootstrap.cache_dir": bool(bootstrap.cache_dir),
        "defaults.bootstrap.task_image without runtime: kubernetes": bool(bootstrap.task_image)
        and RuntimeName.KUBERNETES not in runtimes.values(),
    }


def _runtimes(file: ClusterFile) -> Mapping[str, RuntimeName]:
    """The runtime of each scale group, by the key that says it."""
    return {
        f"scale_groups.{name}.runtime" if group.runtime else "defaults.bootstrap.runtime": runtime(
            file, group
        )
        for name, group in file.scale_groups.items()
    }


def _refuse(said: Mapping[str, bool], why: str) -> None:
    for key, is_said in said.items():
        if is_said:
            raise Invalid("iris.unserved", f"{key} {why}", hint="Leave it out of the cluster file.")


def _warn(file: ClusterFile, *keys: str) -> None:
    usual = Bootstrap()
    for key in keys:
        if getattr(file.defaults.bootstrap, key) != getattr(usual, key):
            log.warning("not used on one machine", key=f"defaults.bootstrap.{key}")
