"""The settings of attempts' Pods."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

# The worker whose attempt a Pod runs, and the attempt.
WORKER_LABEL: Final = "iris-worker-uid"
ATTEMPT_LABEL: Final = "iris-attempt"
# The Service without an address that gives the Pods of gangs their names, and the label by which it finds them.
GANG_SERVICE: Final = "iris-gangs"
GANG_MEMBER_LABEL: Final = "iris-gang-member"
# The first attempt of the gang.
GANG_LABEL: Final = "iris-gang"
# By these a worker knows its own Pod.
POD_NAME_ENV: Final = "IRIS_POD_NAME"
POD_UID_ENV: Final = "IRIS_POD_UID"
# May make, watch and delete Pods of its namespace, and nothing else.
TASK_PODS_ACCOUNT: Final = "iris-task-pods"


class PodOwner(Struct, frozen=True):
    """The worker's own Pod. When it is deleted, Kubernetes deletes the Pods of its attempts."""

    name: str
    uid: str


class PodSettings(Struct, frozen=True):
    """The common settings of one worker's Pods. The image needs the Python that `python` names, with neorion installed.

    `volumes` and `mounts` are in the words of the Pod API.
    """

    namespace: str
    worker: str
    image: str
    python: str = "python"
    owner: PodOwner | None = None
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    node_selector: Mapping[str, str] = field(default_factory=dict[str, str])
    tolerations: tuple[Mapping[str, Any], ...] = ()
    pull_secrets: tuple[str, ...] = ()
    devices: Mapping[str, str] = field(default_factory=dict[str, str])
    volumes: tuple[Mapping[str, Any], ...] = ()
    mounts: tuple[Mapping[str, Any], ...] = ()
