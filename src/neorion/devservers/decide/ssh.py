"""SSH into any image: what its pod needs so that a server of ours runs in it beside the user's own programs.

A container that runs first copies sshd, its libraries and its loader into the pod, so that nothing of the image is used
or changed. The host key comes from a Secret and stays for the server's life; the users' keys come from a ConfigMap, which
the kubelet keeps up to date in the running pod.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from neorion.devservers.decide.decision import Observed
from neorion.devservers.decide.manifests import OperatorSettings
from neorion.devservers.decide.probe import SSH_PORT
from neorion.devservers.decide.progress import ConditionStep, began
from neorion.devservers.decide.sshd_injection import TOOLS
from neorion.devservers.model import ConditionType
from neorion.keel.kube import condition
from neorion.keel.kube.core import Pod

# A loaded node starts sshd within seconds. After this the server's log has the reason.
PATIENCE = timedelta(minutes=1)
# A pod that has its node and no container after this may wait for a Secret that is gone; or for a large image.
MOUNT_PATIENCE = timedelta(seconds=30)


def wants_host_key(seen: Observed, settings: OperatorSettings) -> bool:
    """Reports whether the server needs a host key before its other objects are created."""
    server = seen.server
    wanted = bool(settings.tools_image) and server.spec.enable_ssh and server.spec.running
    return wanted and server.meta.deleted is None and server.status.ssh_host_key is None


def host_key_may_be_gone(seen: Observed, settings: OperatorSettings, now: datetime) -> bool:
    """Reports whether to check that the host key exists: before a restart, and when the server does not come up."""
    server = seen.server
    wanted = bool(settings.tools_image) and server.spec.enable_ssh and server.spec.running
    if not wanted or server.meta.deleted is not None or server.status.ssh_host_key is None:
        return False
    if seen.pod is None:
        return seen.body is not None and seen.body.spec.replicas == 0
    overdue = mount_deadline(seen.pod)
    return overdue is not None and overdue <= now


def mount_deadline(pod: Pod | None) -> datetime | None:
    """When a pod that has sshd and its node should have begun with its first container; None once it has."""
    if pod is None or not has_sshd(pod) or not pod.spec.node_name:
        return None
    if any(one.state.running or one.state.terminated for one in pod.status.init_containers):
        return None
    placed = condition(pod.status.conditions, "PodScheduled")
    since = placed.changed if placed is not None and placed.holds else None
    return datetime.fromisoformat(since) + MOUNT_PATIENCE if since else None


def with_sshd(settings: OperatorSettings, seen: Observed) -> OperatorSettings:
    """With the tools that this server gets. A pod that stands keeps those it has: other tools are another pod."""
    server = seen.server
    if not server.spec.enable_ssh or server.status.ssh_host_key is None:
        return replace(settings, tools_image="")
    if seen.pod is None or seen.body is None:
        return settings
    standing = (one.image for one in seen.body.spec.template.spec.init_containers if one.name == TOOLS)
    return replace(settings, tools_image=next(standing, ""))


def has_sshd(pod: Pod | None) -> bool:
    return pod is not None and any(one.name == TOOLS for one in pod.spec.init_containers)


def ssh_steps(pod: Pod | None, now: datetime, *, ready: bool) -> tuple[ConditionStep, ...]:
    """Condition SSH. A server with sshd is ready when sshd answers, so that a user can log in at once."""
    kind = ConditionType.SSH
    if pod is None or not has_sshd(pod):
        return ()
    if ready:
        return (ConditionStep(kind, True, "Listening"),)
    overdue = ssh_deadline(pod)
    if overdue is None or now < overdue:
        return (ConditionStep(kind, None, "Starting"),)
    silent = f"Its SSH server does not answer on port {SSH_PORT}; what it says stands in the server's log."
    return (ConditionStep(kind, False, "NoAnswer", silent),)


def ssh_deadline(pod: Pod | None) -> datetime | None:
    """When sshd should have answered."""
    started = began(pod) if pod is not None and has_sshd(pod) else None
    return started + PATIENCE if started else None
