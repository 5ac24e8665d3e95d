"""Tokens of slices and workers. Each speaks for one of them, for as long as the controller knows it and has not revoked it."""

import hashlib
import hmac

from neorion.iris.model import AttemptId, SliceId, SliceState, WorkerId
from neorion.iris.ports import RotatableSecret
from neorion.iris.state import ClusterState
from neorion.keel.rpc import Principal

# Roles beside those of people: who may become a worker, and who is one.
ROLE_JOIN = "joiner"
WORKER = "worker"
# Who joins with the token for machines that were started by hand.
MANUAL_JOIN = "by-hand"


class WorkerTokens:
    """Makes and knows tokens: `worker.ID.PROOF`. The proof follows from the id and a secret, so nothing needs to be kept.

    Without a secret there are none: whoever reaches the port is believed. Machines started by hand share one token, until they
    have joined and have their own.
    """

    def __init__(self, secret: str, cluster: ClusterState, by_hand: RotatableSecret | None = None) -> None:
        self._secret = secret.encode()
        self._cluster = cluster
        self._by_hand = by_hand

    def slice_token(self, piece: SliceId) -> str:
        """With it a machine of this slice may join, and do nothing else."""
        return self._token("slice", piece)

    def worker_token(self, worker: WorkerId) -> str:
        return self._token("worker", worker)

    def report_key(self, attempt: AttemptId) -> str:
        """The key that proves a worker's reports about an attempt. It comes with the attempt's order."""
        return self._token("report", attempt).rpartition(".")[2]

    def check_report(self, attempt: AttemptId, key: str) -> bool:
        return hmac.compare_digest(self.report_key(attempt).encode(), key.encode("utf-8", "surrogatepass"))

    def rotate_manual_token(self) -> None:
        """What machines were started with is worth nothing any more; those that have joined go on."""
        if self._by_hand is not None:
            self._by_hand.renew()

    async def authenticate(self, token: str) -> Principal | None:
        if self._by_hand is not None and hmac.compare_digest(self._by_hand.value.encode(), token.encode()):
            return Principal(MANUAL_JOIN, frozenset({ROLE_JOIN}))
        kind, _, rest = token.partition(".")
        name, _, _ = rest.rpartition(".")
        if not self._secret or not hmac.compare_digest(self._token(kind, name).encode(), token.encode()):
            return None
        match kind:
            case "worker" if (worker := self._cluster.workers.get(WorkerId(name))) and not worker.revoked:
                return Principal(name, frozenset({WORKER}))
            case "slice" if (piece := self._cluster.slices.get(SliceId(name))) and not piece.revoked:
                alive = piece.state not in (SliceState.DELETING, SliceState.FAILED)
                return Principal(name, frozenset({ROLE_JOIN})) if alive else None
            case _:
                return None

    def _token(self, kind: str, name: str) -> str:
        if not self._secret:
            return ""
        proof = hmac.new(self._secret, f"{kind}.{name}".encode("utf-8", "surrogatepass"), hashlib.sha256)
        return f"{kind}.{name}.{proof.hexdigest()}"
