"""Deploys the enforcer of a cluster: its rights, and its process."""

import sys
from typing import Final

from neorion.drydock.api import Api, Object
from neorion.drydock.host import Component
from neorion.drydock.layout import Layout
from neorion.drydock.pki import Pki, Subject

_WHO: Final = "netpol"
_USER: Final = "drydock:netpol"


def policy_part(layout: Layout, pki: Pki) -> Component:
    pki.issue(_WHO, Subject(_USER))
    kubeconfig = layout.kubeconfig_of(_WHO)
    pki.kubeconfig(kubeconfig, _WHO, layout.server)
    module = ("-P", "-m", "neorion.drydock.netpol")
    return Component(_WHO, (sys.executable, *module, str(kubeconfig), str(layout.folder), str(layout.slot)))


async def publish_policy_rights(api: Api) -> None:
    group = "rbac.authorization.k8s.io"
    watched = [("", ["namespaces", "nodes", "pods"]), ("networking.k8s.io", ["networkpolicies"])]
    role: Object = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": _USER},
        "rules": [{"apiGroups": [of], "resources": what, "verbs": ["list", "watch"]} for of, what in watched],
    }
    binding: Object = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": _USER},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": _USER},
        "subjects": [{"apiGroup": group, "kind": "User", "name": _USER}],
    }
    await api.apply(f"/apis/{group}/v1/clusterroles/{_USER}", role)
    await api.apply(f"/apis/{group}/v1/clusterrolebindings/{_USER}", binding)
