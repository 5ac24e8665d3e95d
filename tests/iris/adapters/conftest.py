"""A platform of real processes, opened again and again, and an ear for what its workers say."""

import sys
from collections.abc import AsyncGenerator, Generator
from dataclasses import replace
from pathlib import Path

import pytest

from neorion.iris.adapters.platforms.fault_injection import FaultProfile
from neorion.iris.adapters.platforms.local import LocalPlatform
from neorion.keel.base import Duration
from tests.iris.adapters.local_rig import STANDIN, Ear, Open, settings
from tests.iris.manual_clock import ManualClock


@pytest.fixture
def ear(tmp_path: Path) -> Generator[Ear]:
    made = Ear(tmp_path / "fifo")
    yield made
    made.close()


@pytest.fixture
async def reopen(tmp_path: Path, ear: Ear) -> AsyncGenerator[Open, None]:
    """Opens the platform, again and again; at the end nothing is left of it."""

    def opened(play: str = "serve", clock: ManualClock | None = None, **more: FaultProfile) -> LocalPlatform:
        command = [sys.executable, "-ISE", str(STANDIN), play, str(ear.path)]
        return LocalPlatform(settings(tmp_path, more), lambda _: command, clock or ManualClock())

    yield opened
    # Without grace: some stand-ins ignore the order to end, and no clock moves any more.
    at_once = replace(settings(tmp_path), grace=Duration(0))
    async with LocalPlatform(at_once, lambda _: ["true"], ManualClock()) as platform:
        await platform.shutdown()
