"""Tokens of slices and workers. Each is valid while the controller knows its slice or worker and has not revoked it."""

import hashlib
import hmac

from neorion.iris.model import AttemptId, SliceId, SliceState, WorkerId
from neorion.iris.ports import RotatableSecret
from neorion.iris.state import ClusterState
from neorion.keel.rpc import Principal

# Roles of machines: one may join, the other is a worker.
ROLE_JOIN = "joiner"
WORKER = "worker"
# Principal of the token for machines that were started manually.
MANUAL_JOIN = "by-hand"


class WorkerTokens:
    """Issuer of tokens `worker.ID.PROOF`. The proof is an HMAC of the id, so no token is stored.

    Without a secret there are no tokens, and every caller is accepted. Machines that were started manually share one
    token until they have joined and have their own.
    """

    def __init__(self, secret: str, cluster: ClusterState, by_hand: RotatableSecret | None = None) -> None:
        self._secret = secret.encode()
        self._cluster = cluster
        self._by_hand = by_hand

    def slice_token(self, piece: SliceId) -> str:
        """Token with which a machine of this slice may join, and nothing else."""
        return self._token("slice", piece)

    def worker_token(self, worker: WorkerId) -> str:
        return self._token("worker", worker)

    def report_key(self, attempt: AttemptId) -> str:
        """Key that authenticates a worker's reports about an attempt. It is sent with the start order."""
        return self._token("report", attempt).rpartition(".")[2]

    def check_report(self, attempt: AttemptId, key: str) -> bool:
        return hmac.compare_digest(self.report_key(attempt).encode(), key.encode("utf-8", "surrogatepass"))

    def rotate_manual_token(self) -> None:
        """Rotates the join token for manually started machines. Workers that have joined keep their own token."""
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
