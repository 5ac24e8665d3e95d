"""kopf's side of the operator benchmark as its guide teaches it: handlers of changes and of deletion, default settings.

    python -m kopf run --standalone --namespace bench kopf_taught.py

Each object costs a finalizer, a status with what was last handled in an annotation, and the Events that kopf tells of it.
"""

import os

import kopf

THINGS = ("bench.neorion.dev", "v1", "things")
ROUND = int(os.environ["BENCH_ROUND"])


@kopf.on.resume(*THINGS)
@kopf.on.create(*THINGS)
@kopf.on.update(*THINGS)
def write(meta, patch, **_):
    patch.status.update({"round": ROUND, "observed": meta["generation"]})


@kopf.on.delete(*THINGS)
def gone(name, logger, **_):
    logger.info("%s is gone", name)
