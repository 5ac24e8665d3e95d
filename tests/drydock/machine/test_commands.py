"""Calls to other programs, and what is said when they fail."""

from pathlib import Path

import pytest

from neorion.drydock.machine import ask, find, raise_inotify_limit
from neorion.keel.base import NotFound, Terminal

pytestmark = pytest.mark.anyio


async def test_a_program_hears_and_answers():
    assert await ask(["tr", "a", "b"], say="a-a") == "b-b"


async def test_its_last_words_become_the_error():
    with pytest.raises(Terminal, match="sh ended with 3: no luck") as failed:
        await ask(["sh", "-c", "echo no luck >&2; exit 3"])
    assert failed.value.hint.startswith("The command was: sh -c")


async def test_a_missing_program_says_what_to_install():
    with pytest.raises(NotFound, match="no-such-program is not on this machine") as missing:
        await ask(["no-such-program"])
    assert "make system" in missing.value.hint
    with pytest.raises(NotFound, match="no-such-program"):
        find("no-such-program")


@pytest.mark.parametrize(("before", "after"), [("128\n", "1024"), ("8192\n", "8192\n")])
def test_the_limit_is_raised_and_never_lowered(tmp_path: Path, before: str, after: str):
    limit = tmp_path / "max_user_instances"
    limit.write_text(before)
    raise_inotify_limit(limit)
    assert limit.read_text() == after
