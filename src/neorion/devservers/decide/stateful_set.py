"""Objects of a distributed server: a StatefulSet of ranks that find each other by the names of a headless Service.

torchrun reads every variable that begins with `PET_`, so that it needs no options in a rank.
"""

import json
from hashlib import sha256
from typing import Final

from neorion.devservers.decide.manifests import (
    Manifest,
    OperatorSettings,
    OwnerIdentity,
    add_queue,
    owned,
    pod_spec,
    scripts,
    service,
    ssh_keys,
)
from neorion.devservers.decide.names import (
    RANK_LABEL,
    SCRIPTS_LABEL,
    SERVER_LABEL,
    TEMPLATE_LABEL,
    rank_name,
    ranks_name,
)
from neorion.devservers.decide.probe import SSH_PORT
from neorion.devservers.decide.sshd_injection import RUN_AT
from neorion.devservers.model import Backend, DevServerFlavorSpec, DevServerSpec, Distributed
from neorion.devservers.model.flavor import Topology

# Where a rank finds the host file and the settings of SSH to the other ranks.
RANKS_AT: Final = "/opt/devserver/ranks"
HOSTFILE: Final = f"{RANKS_AT}/hostfile"
RANK_SSH: Final = "/opt/devserver/bin/rank-ssh"
# The operator makes every claim before the StatefulSet can. This size stands there because a template of claims cannot
# change, and has to have one.
_TEMPLATE_SIZE: Final = "1Gi"


def distributed_objects(
    server: OwnerIdentity,
    spec: DevServerSpec,
    distributed: Distributed,
    settings: OperatorSettings,
    keys: tuple[str, str | None],
) -> tuple[Manifest, ...]:
    """Everything but the homes and the StatefulSet. `keys` are the user's, and the public host key of the server."""
    user_keys, host_key = keys
    # All ranks have the same host key, and log in to each other with it. It leads nowhere else.
    own = f"{host_key} ranks-of-{server.name}\n" if host_key else ""
    access = (ssh_keys(server, spec, user_keys + own),) if settings.tools_image else ()
    return (
        scripts(server.namespace),
        *access,
        _ranks(server, distributed, host_key),
        _headless_service(server, distributed),
        service(server, spec, settings),
    )


def stateful_set(
    server: OwnerIdentity,
    spec: DevServerSpec,
    distributed: Distributed,
    flavor: DevServerFlavorSpec,
    settings: OperatorSettings,
) -> Manifest:
    """All ranks start together, and none is replaced because of another template: the operator restarts all at once."""
    pod = pod_spec(server, spec, flavor, settings)
    container = pod["containers"][0]
    container["env"] += _environment(server, distributed)
    container["volumeMounts"].append({"name": "ranks", "mountPath": RANKS_AT, "readOnly": True})
    pod["volumes"].append({"name": "ranks", "configMap": {"name": ranks_name(server.name)}})
    if flavor.topology is not None:
        pod["affinity"] = _affinity(server, flavor.topology)
    wanted: Manifest = {
        "replicas": distributed.nodes if spec.running else 0,
        "serviceName": server.name,
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},
        "revisionHistoryLimit": 1,
        "selector": {"matchLabels": {SERVER_LABEL: server.name}},
        "template": {"metadata": {"labels": {SERVER_LABEL: server.name}}, "spec": pod},
    }
    if distributed.has_rank_homes:
        pod["volumes"] = [one for one in pod["volumes"] if one["name"] != "home"]
        wanted["persistentVolumeClaimRetentionPolicy"] = {"whenDeleted": "Retain", "whenScaled": "Retain"}
        size = {"requests": {"storage": _TEMPLATE_SIZE}}
        claim = {"accessModes": ["ReadWriteOnce"], "resources": size}
        wanted["volumeClaimTemplates"] = [{"metadata": {"name": "home"}, "spec": claim}]
    body = owned(server, "apps/v1", "StatefulSet", server.name, {"spec": wanted})
    add_queue(body, spec, flavor)
    return body


def sign_template(body: Manifest) -> str:
    """Labels the Pods of a StatefulSet with a hash of their template, by which a Pod of an older one is known."""
    template = body["spec"]["template"]
    signature = sha256(json.dumps(template["spec"], sort_keys=True).encode()).hexdigest()[:10]
    template["metadata"]["labels"][TEMPLATE_LABEL] = signature
    return signature


def _environment(server: OwnerIdentity, distributed: Distributed) -> list[Manifest]:
    """The user's settings first: what the ranks need to find each other cannot be set in them."""
    first = f"{rank_name(server.name, 0)}.{server.name}"
    given = dict(distributed.nccl_settings)
    if distributed.backend is Backend.MPI:
        given |= {"OMPI_MCA_plm_rsh_agent": RANK_SSH, "OMPI_MCA_orte_default_hostfile": HOSTFILE}
        given |= {"PRTE_MCA_plm_ssh_agent": RANK_SSH, "PRTE_MCA_prte_default_hostfile": HOSTFILE}
    given |= {
        "DEVSERVER_BACKEND": distributed.backend.value,
        "PET_NNODES": str(distributed.nodes),
        "PET_NPROC_PER_NODE": str(distributed.nprocs_per_node),
        "PET_MASTER_ADDR": first,
        "PET_MASTER_PORT": str(distributed.port),
        "PET_MAX_RESTARTS": str(distributed.max_restarts),
    }
    if distributed.min_nodes is not None:
        given |= {
            "PET_NNODES": f"{distributed.min_nodes}:{distributed.nodes}",
            "PET_RDZV_BACKEND": "c10d",
            "PET_RDZV_ENDPOINT": f"{first}:{distributed.port}",
            "PET_RDZV_ID": server.name,
        }
    rank = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{RANK_LABEL}']"}}
    return [
        *({"name": name, "value": value} for name, value in given.items()),
        {"name": "PET_NODE_RANK", "valueFrom": rank},
    ]


def _ranks(server: OwnerIdentity, distributed: Distributed, host_key: str | None) -> Manifest:
    """Files about the other ranks: a host file for mpirun and DeepSpeed, and settings of SSH."""
    slots = distributed.nprocs_per_node
    hosts = [f"{rank_name(server.name, rank)}.{server.name}" for rank in range(distributed.nodes)]
    data = {
        "hostfile": "".join(f"{host} slots={slots}\n" for host in hosts),
        "ssh_config": _SSH_CONFIG.format(name=server.name),
        "known_hosts": f"{server.name} {host_key}\n" if host_key else "",
    }
    body = owned(server, "v1", "ConfigMap", ranks_name(server.name), {"data": data})
    body["metadata"]["labels"][SCRIPTS_LABEL] = "true"
    return body


def _headless_service(server: OwnerIdentity, distributed: Distributed) -> Manifest:
    """Names for ranks, also for those that are not ready: they meet before they are."""
    wanted: Manifest = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {SERVER_LABEL: server.name},
        "ports": [{"name": "rendezvous", "port": distributed.port, "targetPort": distributed.port}],
    }
    return owned(server, "v1", "Service", server.name, {"spec": wanted})


def _affinity(server: OwnerIdentity, topology: Topology) -> Manifest:
    """Keeps the ranks within one value of a node label."""
    term = {"labelSelector": {"matchLabels": {SERVER_LABEL: server.name}}, "topologyKey": topology.key}
    if topology.required:
        return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    weighted = {"weight": 100, "podAffinityTerm": term}
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}


_SSH_CONFIG: Final = f"""Host {{name}}-*
  User dev
  Port {SSH_PORT}
  HostKeyAlias {{name}}
  IdentityFile {RUN_AT}/host_key
  IdentitiesOnly yes
  UserKnownHostsFile {RANKS_AT}/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  BatchMode yes
  LogLevel ERROR
"""
