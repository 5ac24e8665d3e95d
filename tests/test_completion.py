"""A shell that was taught our commands completes them."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("program", "typed", "offered"),
    [
        ("iris", "cluster st", "status start stop"),
        ("navarch", "pool p", "pause"),
        ("devctl", "ex", "extend exec"),
        ("neorion", "drydock st", "status"),
    ],
)
def test_bash_completes_the_commands_of_each_program(program: str, typed: str, offered: str):
    script = f"""
        eval "$({program} completion bash)"
        COMP_WORDS=({program} {typed}) COMP_CWORD={len(typed.split())}
        _{program}_completion {program}
        complete -p {program}
        echo "${{COMPREPLY[@]}}"
    """
    env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.splitlines() == [f"complete -o nosort -F _{program}_completion {program}", offered]
