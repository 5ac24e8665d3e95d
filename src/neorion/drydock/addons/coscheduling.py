"""A second scheduler with the plugin Coscheduling: it places the pods of a PodGroup together or not at all."""

import json
from typing import Final

from neorion.drydock.addons.definitions import publish_definitions
from neorion.drydock.addons.rbac import granted, user
from neorion.drydock.api import Object
from neorion.drydock.cluster import Cluster
from neorion.drydock.host import Component
from neorion.drydock.layout import LOOPBACK, PortOffset

NAME: Final = "coscheduling"
# As in the chart of its makers. Pods ask for it by `schedulerName`.
SCHEDULER: Final = "scheduler-plugins-scheduler"
PROGRAMS: Final = ("coscheduling-scheduler",)
_USER: Final = "system:kube-scheduler"
_PERMIT_S: Final = 10


async def start(cluster: Cluster) -> None:
    """Returns when it listens. It has the identity and the rights of the cluster's own scheduler."""
    layout = cluster.layout
    program = cluster.shelf.path(PROGRAMS[0])
    await publish_definitions(cluster, json.loads((program.parent / "manifests.json").read_text()))
    config = layout.data("coscheduling.json")
    kubeconfig = layout.kubeconfig_of("scheduler")
    config.write_text(json.dumps(_configuration(str(kubeconfig))))
    async with cluster.api() as api:
        for path, body in _rights():
            await api.apply(path, body)
    port = layout.port(PortOffset.COSCHEDULING)
    flags = {
        "config": config,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "bind-address": LOOPBACK,
        "secure-port": port,
    }
    part = Component(NAME, (str(program), *(f"--{flag}={value}" for flag, value in flags.items())))
    await cluster.ensure(part)
    await cluster.reachable(part, port)


def _configuration(kubeconfig: str) -> Object:
    plugins = {
        "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
        # A profile has one order of its queue.
        "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
    }
    arguments = {"permitWaitingTimeSeconds": _PERMIT_S}
    profile = {
        "schedulerName": SCHEDULER,
        "plugins": plugins,
        "pluginConfig": [{"name": "Coscheduling", "args": arguments}],
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": kubeconfig, "qps": 500, "burst": 1000},
        "profiles": [profile],
    }


def _rights() -> list[tuple[str, Object]]:
    """Beyond those of the cluster's own scheduler."""
    rule = {
        "apiGroups": ["scheduling.x-k8s.io"],
        "resources": ["podgroups", "podgroups/status", "elasticquotas"],
        "verbs": ["get", "list", "watch", "patch", "update"],
    }
    return granted(f"drydock:{NAME}", user(_USER), [rule])
