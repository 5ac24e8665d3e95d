"""The console of a user: a small Pod with devctl and kubectl, in which their logins to the bastion run."""

from collections.abc import Mapping
from typing import Final

from neorion.devservers.decide.tenant import Manifest
from neorion.devservers.model.tenancy import CONSOLE, CONSOLE_LABEL, account_name, own_namespace
from neorion.keel.base import Duration
from neorion.keel.kube import condition
from neorion.keel.kube.core import Pod

# Where programs look for the account of their Pod.
_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_HOME: Final = "/home/dev"
_USER_ID: Final = 1000
# The kubelet renews the token when 80 % of this are over.
_TOKEN_S: Final = 3600
IDLE: Final = Duration.of(minutes=30)
# These reasons of a container that waits do not pass by themselves.
_STUCK: Final = frozenset(
    [
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
    ]
)
_OVER: Final = frozenset(["Succeeded", "Failed"])
_ENVIRONMENT: Final = ("LANG=", "LC_")


def console_pod(user: str, image: str, idle: Duration = IDLE) -> Manifest:
    """The Pod runs as the user's account, with a token of an hour. It ends when no session ran in it for `idle`."""
    env = {"HOME": _HOME, "USER": user, "LOGNAME": user, "CONSOLE_IDLE_SECONDS": str(round(idle.seconds))}
    container = {
        "name": CONSOLE,
        "image": image,
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "workingDir": _HOME,
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [
            {"name": "home", "mountPath": _HOME},
            {"name": "account", "mountPath": _ACCOUNT, "readOnly": True},
        ],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": CONSOLE,
            "namespace": own_namespace(user),
            "labels": {CONSOLE_LABEL: user},
        },
        "spec": {
            "serviceAccountName": account_name(user),
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 5,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": _USER_ID,
                "runAsGroup": _USER_ID,
                "fsGroup": _USER_ID,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": [
                {"name": "home", "emptyDir": {"sizeLimit": "1Gi"}},
                {"name": "account", "projected": {"sources": _account_sources()}},
            ],
        },
    }


def _account_sources() -> list[Manifest]:
    return [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": _TOKEN_S}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {
            "downwardAPI": {
                "items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}],
            }
        },
    ]


def is_over(pod: Pod) -> bool:
    """True for a Pod that has ended or is about to: another one takes its name."""
    return pod.status.phase in _OVER or pod.meta.deleted is not None


def is_running(pod: Pod) -> bool:
    ready = condition(pod.status.conditions, "Ready")
    return pod.status.phase == "Running" and ready is not None and ready.holds


def stuck(pod: Pod) -> str:
    """The reason why the Pod does not start, if it does not pass by itself."""
    for one in pod.status.containers:
        waiting = one.state.waiting
        if waiting is not None and waiting.reason in _STUCK:
            return f"{waiting.reason}: {waiting.message}".removesuffix(": ")
    return ""


def unscheduled(pod: Pod) -> str:
    """The scheduler's sentence about a Pod without a node."""
    scheduled = condition(pod.status.conditions, "PodScheduled")
    return "" if scheduled is None or scheduled.holds else scheduled.message


# $1 is shell, command or subsystem, $2 the command or the name of the subsystem.
_START: Final = """
shell=$(command -v bash || command -v sh)
case $1 in
  shell) exec "$shell" -l ;;
  command) exec "$shell" -c "$2" ;;
esac
if [ "$2" = sftp ]; then
  for program in /usr/lib/openssh/sftp-server /usr/libexec/sftp-server /usr/lib/ssh/sftp-server; do
    [ -x "$program" ] && exec "$program"
  done
fi
echo "There is no program for the subsystem $2 here." >&2
exit 127
"""
SESSION_VARIABLE: Final = "DEVSERVER_SESSION"
# One program looks through all processes: two for each of them take minutes on a busy node.
_SIGNAL: Final = f"""
session="{SESSION_VARIABLE}=$1"
if printf 'x\\0' | grep -qzx x 2>/dev/null; then
  found=$(grep -lszx "$session" /proc/[0-9]*/environ)
else
  found=$(for file in /proc/[0-9]*/environ; do
    {{ tr '\\0' '\\n' <"$file" | grep -qx "$session"; }} 2>/dev/null && echo "$file"
  done)
fi
for file in $found; do
  process=${{file#/proc/}}
  kill -s "$2" "${{process%/environ}}" 2>/dev/null
done
exit 0
"""


def session_command(
    session: str, command: str | None, subsystem: str | None, environment: Mapping[str, str]
) -> list[str]:
    """The argv that runs a session in a container. Every process of it carries the session's name in its environment."""
    kept = [
        f"{name}={value}"
        for name, value in environment.items()
        if name == "TERM" or f"{name}=".startswith(_ENVIRONMENT)
    ]
    argv = ["env", f"{SESSION_VARIABLE}={session}", *kept, "/bin/sh", "-c", _START, "sh"]
    if subsystem is not None:
        return [*argv, "subsystem", subsystem]
    return [*argv, "command", command] if command else [*argv, "shell"]


def signal_command(session: str, signal: str) -> list[str]:
    """The argv that sends a signal to every process of a session."""
    return ["/bin/sh", "-c", _SIGNAL, "sh", session, signal]
