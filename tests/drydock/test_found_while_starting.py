"""A process is found by its mark at every moment, also while it becomes another program."""

from pathlib import Path

import pytest

from neorion.drydock.host import Component, end, running, start

pytestmark = pytest.mark.anyio


async def test_a_process_that_becomes_another_program_is_never_overlooked(tmp_path: Path):
    script = tmp_path / "restless"
    script.write_text('exec /bin/sh "$0"\n')
    start(tmp_path, Component("restless", ("/bin/sh", str(script))), tmp_path / "log")
    try:
        seen = [len(running(tmp_path)) for _ in range(200)]
    finally:
        await end(tmp_path)
    assert set(seen) == {1}
    assert running(tmp_path) == []
