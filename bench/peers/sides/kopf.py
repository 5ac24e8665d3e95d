"""kopf's side of the operator benchmark: one status write for each object, by its leanest handler, without finalizers.

    python -m kopf run --standalone --namespace bench kopf.py

An event handler keeps no progress in annotations, so that each object costs one PATCH, as ours does.
"""

import os

import kopf

ROUND = int(os.environ["BENCH_ROUND"])


@kopf.on.startup()
def configure(settings, **_):
    settings.posting.enabled = False
    settings.scanning.disabled = True


@kopf.on.event("bench.neorion.dev", "v1", "things")
def write(meta, status, patch, **_):
    wanted = {"round": ROUND, "observed": meta["generation"]}
    if {name: status.get(name) for name in wanted} != wanted:
        patch.status.update(wanted)
