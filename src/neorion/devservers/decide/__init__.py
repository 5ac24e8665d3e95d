"""The rules of devservers: which objects a server needs, what its state is, when it stops.

Pure functions of what was observed and the time. Nothing here reads a clock or the cluster. Names load when first used: a
command line needs few of them.
"""

from typing import TYPE_CHECKING

from neorion.keel.base import lazy_exports

if TYPE_CHECKING:
    from neorion.devservers.decide.cost import accrued, rate
    from neorion.devservers.decide.decision import (
        FINALIZER,
        Decision,
        DeleteServer,
        Edit,
        EventNote,
        Observed,
        RevertFlavor,
        StartServer,
        StopServer,
    )
    from neorion.devservers.decide.flavor_change import ClusterFacts
    from neorion.devservers.decide.idle_detection import (
        FRESH,
        ActivityHistory,
        ActivitySignal,
        ActivitySnapshot,
        ActivitySource,
        ProbeReading,
        failed_probe,
        next_history,
        together,
    )
    from neorion.devservers.decide.lifetime import expiry
    from neorion.devservers.decide.manifests import Manifest, OperatorSettings, OwnerIdentity, host_key_secret
    from neorion.devservers.decide.names import (
        HOME_DELETE_AFTER,
        HOME_LABEL,
        SCRIPTS_LABEL,
        SERVER_LABEL,
        STOPPED_BECAUSE,
        home_name,
        host_key_name,
        rank_name,
        service_name,
    )
    from neorion.devservers.decide.per_user_limit import flavors_of, max_per_user, servers_before
    from neorion.devservers.decide.probe import PROBE, PROBE_OUTPUT_MAX, SSH_PORT, read
    from neorion.devservers.decide.probe_schedule import next_probe
    from neorion.devservers.decide.rejected_writes import pod_refusal
    from neorion.devservers.decide.server import decide, needs_cluster_facts
    from neorion.devservers.decide.ssh import host_key_may_be_gone, wants_host_key

__all__ = [
    "FINALIZER",
    "FRESH",
    "HOME_DELETE_AFTER",
    "HOME_LABEL",
    "PROBE",
    "PROBE_OUTPUT_MAX",
    "SCRIPTS_LABEL",
    "SERVER_LABEL",
    "SSH_PORT",
    "STOPPED_BECAUSE",
    "ActivityHistory",
    "ActivitySignal",
    "ActivitySnapshot",
    "ActivitySource",
    "ClusterFacts",
    "Decision",
    "DeleteServer",
    "Edit",
    "EventNote",
    "Manifest",
    "Observed",
    "OperatorSettings",
    "OwnerIdentity",
    "ProbeReading",
    "RevertFlavor",
    "StartServer",
    "StopServer",
    "accrued",
    "decide",
    "expiry",
    "failed_probe",
    "flavors_of",
    "home_name",
    "host_key_may_be_gone",
    "host_key_name",
    "host_key_secret",
    "max_per_user",
    "needs_cluster_facts",
    "next_history",
    "next_probe",
    "pod_refusal",
    "rank_name",
    "rate",
    "read",
    "servers_before",
    "service_name",
    "together",
    "wants_host_key",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "cost": ("accrued", "rate"),
        "decision": (
            "FINALIZER",
            "Decision",
            "Edit",
            "RevertFlavor",
            "EventNote",
            "Observed",
            "DeleteServer",
            "StopServer",
            "StartServer",
        ),
        "idle_detection": (
            "FRESH",
            "ActivitySnapshot",
            "ProbeReading",
            "ActivityHistory",
            "ActivitySignal",
            "ActivitySource",
            "next_history",
            "failed_probe",
            "together",
        ),
        "lifetime": ("expiry",),
        "probe_schedule": ("next_probe",),
        "flavor_change": ("ClusterFacts",),
        "names": (
            "HOME_DELETE_AFTER",
            "HOME_LABEL",
            "SCRIPTS_LABEL",
            "SERVER_LABEL",
            "STOPPED_BECAUSE",
            "home_name",
            "host_key_name",
            "rank_name",
            "service_name",
        ),
        "manifests": ("OwnerIdentity", "Manifest", "OperatorSettings", "host_key_secret"),
        "probe": (
            "PROBE",
            "SSH_PORT",
            "PROBE_OUTPUT_MAX",
            "read",
        ),
        "per_user_limit": (
            "servers_before",
            "flavors_of",
            "max_per_user",
        ),
        "rejected_writes": ("pod_refusal",),
        "server": (
            "decide",
            "needs_cluster_facts",
        ),
        "ssh": (
            "host_key_may_be_gone",
            "wants_host_key",
        ),
    },
)
