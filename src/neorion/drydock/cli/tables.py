"""Table of clusters."""

from typing import Final

from neorion.drydock.status import ClusterStatus
from neorion.keel.cli.kit import Column, Table, Tone

STATUS: Final[Table[ClusterStatus]] = Table(
    (
        Column("NAME", lambda it: it.name),
        Column("SERVER", lambda it: it.server),
        Column("NODES", lambda it: it.nodes),
        Column("MEMORY", lambda it: it.memory, priority=2),
        Column("KUBECONFIG", lambda it: it.kubeconfig, wide=True),
        Column("RUNNING", lambda it: it.running, wide=True),
        Column("DOWN", lambda it: it.missing, tone=lambda it: Tone.BAD if it.missing else None),
    ),
    name=lambda it: it.name,
    empty="No clusters. Create one: neorion drydock up",
)
