"""Authentication: operators, viewers, machines that join, and nodes.

A node's token is derived from the installation's secret, the node's id and the time at which it expires. Nothing is stored
for it, and it is valid for that node alone.
"""

import hashlib
import hmac
from dataclasses import dataclass
from typing import Final

from neorion.keel.base import Denied, Duration, Invalid
from neorion.keel.clock import Clock
from neorion.keel.rpc import Principal, TokenAuthenticator, caller
from neorion.navarch.model import NodeId

OPERATOR: Final = "operator"
VIEWER: Final = "viewer"
JOIN: Final = "join"
NODE: Final = "node"
_PREFIX: Final = "nv1"
# An agent asks for another when half of it is over. It outlives a night without a control plane.
TOKEN_LIFE: Final = Duration.of(hours=24)
# Of a large fleet each node's; some megabytes.
_KNOWN_MAX: Final = 20_000


@dataclass(frozen=True, slots=True)
class SharedTokens:
    """The tokens that callers are given: one for each role. Without a token a role has no callers."""

    operator: str
    join: str = ""
    viewer: str = ""


class NodeTokenAuthenticator:
    """An authenticator of shared tokens and of nodes' own."""

    def __init__(self, secret: str, clock: Clock, shared: SharedTokens) -> None:
        self._secret = secret.encode()
        self._clock = clock
        self._tokens = TokenAuthenticator(_owners(shared))
        # The owner and the expiry of tokens that were checked: every heartbeat brings one.
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


def _owners(shared: SharedTokens) -> dict[str, Principal]:
    given = (
        (shared.operator, Principal("operator", frozenset({OPERATOR, JOIN}))),
        (shared.join, Principal("agent", frozenset({JOIN}))),
        (shared.viewer, Principal("viewer", frozenset({VIEWER}))),
    )
    owners: dict[str, Principal] = {}
    for token, principal in given:
        if token in owners:
            raise Invalid(
                "navarch.same_token",
                f"The {owners[token].name} and the {principal.name} have the same token.",
                hint="Give each role a token of its own.",
            )
        if token or not owners:
            owners[token] = principal
    return owners


def secret_digest(secret: str) -> str:
    """Stored hash of a machine's own secret; empty without a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest() if secret else ""


def calling_node() -> NodeId:
    """The node of the caller's token."""
    return NodeId(caller().name)


def check_is_node(node: NodeId | None) -> bool:
    """Reports whether the caller has the node's own token. None is an unknown machine.

    A node may not register as another node or as a new one. A caller without a node may register as any.
    """
    who = caller()
    if NODE in who.roles and who.name != node:
        other = node or "an unknown machine"
        raise Denied(
            "navarch.other_node",
            f"This token speaks for {who.name}, not for {other}.",
            hint="Start the agent with the token for joining.",
        )
    return NODE in who.roles
