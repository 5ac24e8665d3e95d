"""Adds sshd to the pod of any image. The module `ssh` decides when."""

from typing import Any

from neorion.devservers.decide.probe import SSH_PORT

# The container that brings the tools.
TOOLS = "tools"
TOOLS_AT = "/opt/devserver/tools"
# The host key and the users' keys; and what sshd writes for itself.
KEYS_AT = "/opt/devserver/ssh"
RUN_AT = "/opt/devserver/run"
HOST_KEY = "host_key"
AUTHORIZED_KEYS = "authorized_keys"
# Enough to copy a few files; the same in both, so that no pod leaves its class of service for it.
_COPYING = {"cpu": "50m", "memory": "64Mi"}

# The server is ready once sshd has answered, and is not asked again. Without an answer it is not killed either: what it
# says stands in its log, and `devctl exec` still works. A day of seconds.
_NEVER_GIVE_UP = 86_400

Manifest = dict[str, Any]


def add_sshd(pod: Manifest, image: str, keys: str, host_key: str) -> None:
    """Adds sshd to a pod whose first container is the server."""
    server = pod["containers"][0]
    pod["initContainers"] = [
        {
            "name": TOOLS,
            "image": image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["cp", "-a", "/tools/.", TOOLS_AT],
            "resources": {"requests": dict(_COPYING), "limits": dict(_COPYING)},
            "volumeMounts": [{"name": TOOLS, "mountPath": TOOLS_AT}],
            "securityContext": dict(server["securityContext"]),
        }
    ]
    sources = [
        {"configMap": {"name": keys, "items": [{"key": AUTHORIZED_KEYS, "path": AUTHORIZED_KEYS}]}},
        {"secret": {"name": host_key, "items": [{"key": HOST_KEY, "path": HOST_KEY}]}},
    ]
    pod["volumes"] += [
        {"name": TOOLS, "emptyDir": {}},
        {"name": "ssh-run", "emptyDir": {}},
        {"name": "ssh", "projected": {"sources": sources}},
    ]
    server["volumeMounts"] += [
        {"name": TOOLS, "mountPath": TOOLS_AT, "readOnly": True},
        {"name": "ssh-run", "mountPath": RUN_AT},
        {"name": "ssh", "mountPath": KEYS_AT, "readOnly": True},
    ]
    server["command"][-1] = f"{TOOLS_AT}/sshd.sh & {server['command'][-1]}"
    # A port is named once: a user may have listed this one too.
    others = [one for one in server.get("ports", []) if one["containerPort"] != SSH_PORT]
    server["ports"] = [*others, {"name": "ssh", "containerPort": SSH_PORT}]
    server["startupProbe"] = {
        "tcpSocket": {"port": SSH_PORT},
        "periodSeconds": 1,
        "failureThreshold": _NEVER_GIVE_UP,
    }
