"""A shell that was taught our commands completes them."""

import subprocess
import sys
from pathlib import Path


def test_bash_completes_the_commands_of_iris():
    script = """
        eval "$(iris completion bash)"
        COMP_WORDS=(iris cluster st) COMP_CWORD=2
        _iris_completion iris
        complete -p iris
        echo "${COMPREPLY[@]}"
    """
    env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.splitlines() == [
        "complete -o nosort -F _iris_completion iris",
        "status start stop",
    ]
