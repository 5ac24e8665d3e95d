"""Setup commands of new machines. They run one after the other, each with its output in the node's history.

Progress is recorded after each command, so that after a restart the next one follows. An interrupted command runs again,
so setup commands must be idempotent.
"""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from neorion.keel.base import Error, Retry
from neorion.navarch.controllers.context import FleetContext
from neorion.navarch.controllers.state_writer import StateWriter
from neorion.navarch.model import Node, NodeId, Origin, PoolSpec
from neorion.navarch.model.setup_template import filled
from neorion.navarch.ports import Bootstrapper, CommandResult, Shell, SshTarget

# Enough to know which command it was; the configuration has the rest.
COMMAND_MAX: Final = 200


def seed_of(secret: str, purchase: str) -> bytes:
    """Seed of a machine's host key: the same for the same purchase, and secret."""
    return hmac.new(secret.encode(), f"host-key/{purchase}".encode(), hashlib.sha256).digest()


class NodeBootstrapper:
    """Bootstraps machines while they boot."""

    def __init__(self, context: FleetContext, writer: StateWriter) -> None:
        self._context = context
        self._state = context.state
        self._writer = writer
        # The last recorded reason for which a machine could not be reached.
        self._recorded: dict[NodeId, str] = {}

    def due(self, node: Node) -> bool:
        spec = self._context.specs.get(node.pool)
        return spec is not None and node.set_up < len(spec.bootstrap.commands) and self._comes(node)

    def forget_gone(self) -> None:
        for node in [one for one in self._recorded if one not in self._state.nodes]:
            del self._recorded[node]

    async def bootstrap(self, node_id: NodeId) -> None:
        node, bootstrapper = self._state.nodes.get(node_id), self._context.backends.bootstrapper
        if node is None or bootstrapper is None or not self.due(node):
            return
        try:
            await self._enter(node, bootstrapper)
        except Error as error:
            if self._recorded.get(node_id) != error.sentence:
                self._recorded[node_id] = error.sentence
                self._writer.record_event(node_id, "setup.waits", error.sentence)
            raise

    async def _enter(self, node: Node, bootstrapper: Bootstrapper) -> None:
        spec = self._context.spec(node.pool)
        async with bootstrapper.enter(await self._ssh_target(node, spec)) as shell:
            if spec.bootstrap.first_contact and not node.host_key:
                await self._pin(node.id, shell)
            values = self._values(node)
            for number in range(node.set_up, len(spec.bootstrap.commands)):
                await self._run(node.id, number, shell, spec, values)

    async def _ssh_target(self, node: Node, spec: PoolSpec) -> SshTarget:
        """SSH address of a node, from its cloud. The private address is tried first."""
        machine = await self._context.backends.providers[node.place.provider].describe(node.machine)
        given = spec.bootstrap
        addresses = dict.fromkeys(one for one in (machine.private_address, machine.address) if one)
        return SshTarget(
            addresses=tuple(addresses),
            port=given.port,
            user=given.user,
            key_path=given.key_path,
            seed=seed_of(self._context.installation.secret, node.purchase),
            host_key=node.host_key,
            first_contact=given.first_contact,
        )

    async def _pin(self, node_id: NodeId, shell: Shell) -> None:
        node = self._current(node_id)
        self._writer.update_node(replace(node, host_key=shell.host_key))
        self._writer.record_event(node_id, "setup.pinned", f"its first host key is trusted: {shell.host_key}")
        await self._context.journal.wait_durable()

    async def _run(
        self, node_id: NodeId, number: int, shell: Shell, spec: PoolSpec, values: Mapping[str, str]
    ) -> None:
        template, total = spec.bootstrap.commands[number], len(spec.bootstrap.commands)
        said = await shell.run(filled(template, values))
        outcome = f"ended with {said.status}" if said.status is not None else f"failed: {said.why}"
        sentence = f"setup command {number + 1} of {total} {outcome}"
        self._writer.record_event(
            node_id,
            "setup.command",
            sentence,
            command=template.strip()[:COMMAND_MAX],
            output=_without(values["Token"], said),
        )
        node = self._current(node_id)
        if said.status != 0:
            raise Retry(
                "navarch.setup_failed",
                f"{sentence[0].upper()}{sentence[1:]} on {node_id}.",
                hint=f"See its output: navarch node history {node_id} -o json.",
            )
        self._writer.update_node(replace(node, set_up=number + 1))
        await self._context.journal.wait_durable()

    def _current(self, node_id: NodeId) -> Node:
        """The node's current record. It may be leaving by now, because commands take minutes."""
        node = self._state.nodes.get(node_id)
        if node is None or node.state.leaving:
            raise Retry("navarch.setup_over", f"{node_id} is being terminated.")
        return node

    def _values(self, node: Node) -> dict[str, str]:
        return {
            "ControlPlane": self._context.address,
            "InstanceType": node.place.instance_type,
            "NodeID": node.id,
            "Pool": node.pool,
            "Provider": node.place.provider,
            "Region": node.place.region,
            "Token": self._context.node_token(node.id),
        }

    def _comes(self, node: Node) -> bool:
        """Reports whether the node is new and was bought by navarch. One that has served is not set up again."""
        ours = node.origin is Origin.BOUGHT and bool(node.machine)
        return ours and node.state.coming and node.served is None


def _without(secret: str, said: CommandResult) -> str:
    return said.output.replace(secret, "…") if secret else said.output
