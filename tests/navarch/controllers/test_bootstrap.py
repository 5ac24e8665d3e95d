"""Setting machines up beside everything else."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from neorion.navarch.controllers import effect_runner
from neorion.navarch.model import NodeState
from neorion.navarch.model.spec import Bootstrap
from neorion.navarch.ports import CommandResult, Shell, SshTarget
from neorion.navarch.testing import spec
from tests.navarch.plane import running

pytestmark = pytest.mark.anyio


class Endless:
    """A machine on which the first command never ends."""

    host_key = "a key"

    async def run(self, command: str) -> CommandResult:
        del command
        await anyio.sleep_forever()
        raise AssertionError


class Patient:
    """Enters every machine, and stays as long as its commands take."""

    def startup(self, seed: bytes) -> str:
        return seed.hex()

    @asynccontextmanager
    async def enter(self, door: SshTarget) -> AsyncGenerator[Shell]:
        del door
        yield Endless()


async def test_nobody_waits_for_setup_commands_of_other_machines(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(effect_runner, "AT_ONCE_MAX", 1)
    async with running(spec(2, bootstrap=Bootstrap(("train --for ever",))), bootstrapper=Patient()) as it:

        async def bought() -> bool:
            return len(it.nodes(NodeState.BOOTING)) == 2

        await it.until(bought)
        first, _ = it.nodes()
        it.plane.fleet.writer.transition_node(first, NodeState.TERMINATING, "a test does not want it")

        async def gone() -> bool:
            return first.id not in it.plane.fleet.context.state.nodes

        await it.until(gone)
