"""The rules of devservers: which objects a server needs, what its state is, when it stops.

Pure functions of what was observed and the time. Nothing here reads a clock or the cluster. Names load when first used: a
command line needs few of them.
"""

from typing import TYPE_CHECKING

from neorion.keel.base import lazy_exports

if TYPE_CHECKING:
    from neorion.devservers.decide.activity import (
        FRESH,
        ActivityHistory,
        ActivitySignal,
        ActivitySnapshot,
        ActivitySource,
        ProbeReading,
        follow,
        missed,
    )
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
        service_name,
    )
    from neorion.devservers.decide.per_user_limit import ahead, flavors_of, most
    from neorion.devservers.decide.probe import PROBE, SSH_PORT, WORDS_MAX, read
    from neorion.devservers.decide.probe_schedule import next_look
    from neorion.devservers.decide.rejected_writes import pod_refusal
    from neorion.devservers.decide.server import decide, unsure
    from neorion.devservers.decide.ssh import doubts_host_key, wants_host_key

__all__ = [
    "FINALIZER",
    "FRESH",
    "HOME_DELETE_AFTER",
    "HOME_LABEL",
    "PROBE",
    "SCRIPTS_LABEL",
    "SERVER_LABEL",
    "SSH_PORT",
    "STOPPED_BECAUSE",
    "WORDS_MAX",
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
    "ahead",
    "decide",
    "doubts_host_key",
    "expiry",
    "flavors_of",
    "follow",
    "home_name",
    "host_key_name",
    "host_key_secret",
    "missed",
    "most",
    "next_look",
    "pod_refusal",
    "rate",
    "read",
    "service_name",
    "unsure",
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
        "activity": (
            "FRESH",
            "ActivitySnapshot",
            "ProbeReading",
            "ActivityHistory",
            "ActivitySignal",
            "ActivitySource",
            "follow",
            "missed",
        ),
        "lifetime": ("expiry",),
        "probe_schedule": ("next_look",),
        "flavor_change": ("ClusterFacts",),
        "names": (
            "HOME_DELETE_AFTER",
            "HOME_LABEL",
            "SCRIPTS_LABEL",
            "SERVER_LABEL",
            "STOPPED_BECAUSE",
            "home_name",
            "host_key_name",
            "service_name",
        ),
        "manifests": ("OwnerIdentity", "Manifest", "OperatorSettings", "host_key_secret"),
        "probe": (
            "PROBE",
            "SSH_PORT",
            "WORDS_MAX",
            "read",
        ),
        "per_user_limit": (
            "ahead",
            "flavors_of",
            "most",
        ),
        "rejected_writes": ("pod_refusal",),
        "server": (
            "decide",
            "unsure",
        ),
        "ssh": (
            "doubts_host_key",
            "wants_host_key",
        ),
    },
)
