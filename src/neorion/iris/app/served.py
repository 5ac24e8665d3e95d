"""What a cluster file may ask for and this version does not do: refused by name, never passed over in silence."""

from neorion.iris.adapters.cluster_file import ClusterFile, RuntimeName, runtime
from neorion.iris.adapters.cluster_file.sections import Bootstrap, LocalPlatform, Platform
from neorion.keel.base import Invalid
from neorion.keel.telemetry import logger

log = logger(__name__)


def check_served(file: ClusterFile) -> LocalPlatform:
    """The file's local platform. What is said for images and Pods is not used on one machine, and the log says so."""
    local = file.platform.local
    if local is None:
        raise Invalid(
            "iris.platform",
            f"This version runs clusters of the platform local, not {file.arm}.",
            hint="replace the platform, controller and slice_template sections by local ones to try the file here",
        )
    bootstrap, usual = file.defaults.bootstrap, Bootstrap()
    refused = {
        "platform.label_prefix": file.platform.label_prefix != Platform.model_fields["label_prefix"].default,
        "defaults.bootstrap.runtime": runtime(file) is not RuntimeName.PROCESS,
        "defaults.bootstrap.cache_dir": bootstrap.cache_dir != usual.cache_dir,
        "defaults.bootstrap.task_image": bootstrap.task_image != usual.task_image,
    }
    for key, said in refused.items():
        if said:
            raise Invalid(
                "iris.unserved",
                f"{key} has no meaning on one machine, or not this one.",
                hint="leave it out of the cluster file",
            )
    # The documents' own files say these; with the platform replaced by local they still load and run.
    for key in ("docker_image", "worker_port"):
        if getattr(bootstrap, key) != getattr(usual, key):
            log.warning("not used on one machine", key=f"defaults.bootstrap.{key}")
    return local
