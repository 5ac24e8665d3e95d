"""Who calls: an operator with the installation's token, an agent that wants to join, or a node that speaks for itself.

A node's token is made of the installation's secret and the node's id, so nothing has to be kept for it, and it is good for
that node alone.
"""

import hmac
from typing import Final

from neorion.keel.base import Denied
from neorion.keel.rpc import Principal, Tokens, caller
from neorion.navarch.model import NodeId

OPERATOR: Final = "operator"
JOIN: Final = "join"
NODE: Final = "node"
_PREFIX: Final = "nv1"


class Keys:
    """Tells whose token it is."""

    def __init__(self, secret: str, operator: str, join: str = "") -> None:
        self._secret = secret.encode()
        owners = {operator: Principal("operator", frozenset({OPERATOR, JOIN}))}
        if join:
            owners[join] = Principal("agent", frozenset({JOIN}))
        self._tokens = Tokens(owners)

    def token_of(self, node: NodeId) -> str:
        return f"{_PREFIX}.{node}.{self._sign(node)}"

    async def authenticate(self, token: str) -> Principal | None:
        prefix, _, rest = token.partition(".")
        node, _, signature = rest.partition(".")
        if prefix == _PREFIX and signature.isascii() and hmac.compare_digest(self._sign(node), signature):
            return Principal(node, frozenset({NODE, JOIN}))
        return await self._tokens.authenticate(token)

    def _sign(self, node: str) -> str:
        return hmac.digest(self._secret, f"node/{node}".encode("utf-8", "surrogatepass"), "sha256").hex()


def speaking_node() -> NodeId:
    """The node that the caller's token speaks for."""
    return NodeId(caller().name)


def check_speaks_for(node: NodeId) -> None:
    """A node may not register as another; an agent that has no node yet may be any."""
    who = caller()
    if NODE in who.roles and who.name != node:
        raise Denied(
            "navarch.other_node",
            f"This token speaks for {who.name}, not for {node}.",
            hint="start the agent with the token for joining",
        )
