"""Who calls: an operator with the installation's token, an agent that wants to join, or a node that speaks for itself.

A node's token is made of the installation's secret, the node's id and the time until which it is good, so nothing has to be
kept for it, and it is good for that node alone.
"""

import hashlib
import hmac
from typing import Final

from neorion.keel.base import Denied, Duration
from neorion.keel.clock import Clock
from neorion.keel.rpc import Principal, TokenAuthenticator, caller
from neorion.navarch.model import NodeId

OPERATOR: Final = "operator"
JOIN: Final = "join"
NODE: Final = "node"
_PREFIX: Final = "nv1"
# An agent asks for another when half of it is over. It outlives a night without a control plane.
TOKEN_LIFE: Final = Duration.of(hours=24)
# Of a large fleet each node's; some megabytes.
_KNOWN_MAX: Final = 20_000


class NodeTokenAuthenticator:
    """Tells whose token it is."""

    def __init__(self, secret: str, clock: Clock, operator: str, join: str = "") -> None:
        self._secret = secret.encode()
        self._clock = clock
        owners = {operator: Principal("operator", frozenset({OPERATOR, JOIN}))}
        if join:
            owners[join] = Principal("agent", frozenset({JOIN}))
        self._tokens = TokenAuthenticator(owners)
        # Whose token it is and until when, of those that were checked: every heartbeat brings one.
        self._known: dict[str, tuple[Principal, int]] = {}

    def token_of(self, node: NodeId) -> str:
        claim = f"{node}.{(self._clock.now() + TOKEN_LIFE).ns // 10**9}"
        return f"{_PREFIX}.{claim}.{self._sign(claim)}"

    async def authenticate(self, token: str) -> Principal | None:
        known = self._known.get(token)
        if known is not None:
            return known[0] if self._clock.now().ns < known[1] else None
        return self._node(token) or await self._tokens.authenticate(token)

    def _node(self, token: str) -> Principal | None:
        prefix, _, rest = token.partition(".")
        claim, _, signature = rest.rpartition(".")
        if prefix != _PREFIX or not claim or not signature.isascii():
            return None
        if not hmac.compare_digest(self._sign(claim), signature):
            return None
        node, _, until = claim.rpartition(".")
        ends = int(until) * 10**9
        if self._clock.now().ns >= ends:
            return None
        if len(self._known) >= _KNOWN_MAX:
            self._known.clear()
        known = Principal(node, frozenset({NODE, JOIN}))
        self._known[token] = known, ends
        return known

    def _sign(self, claim: str) -> str:
        return hmac.digest(self._secret, f"node/{claim}".encode("utf-8", "surrogatepass"), "sha256").hex()


def secret_digest(secret: str) -> str:
    """What is kept of a machine's own secret; nothing of none."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest() if secret else ""


def calling_node() -> NodeId:
    """The node that the caller's token speaks for."""
    return NodeId(caller().name)


def check_is_node(node: NodeId | None) -> bool:
    """Whether it comes with the node's own token; None is a machine that nobody knows.

    A node may register neither as another nor a new one; who has no node yet may be any.
    """
    who = caller()
    if NODE in who.roles and who.name != node:
        other = node or "a machine that nobody knows"
        raise Denied(
            "navarch.other_node",
            f"This token speaks for {who.name}, not for {other}.",
            hint="Start the agent with the token for joining.",
        )
    return NODE in who.roles
