"""The programs that are installed, as a shell starts them."""

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROGRAMS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]

# In the place of what every program loads first: tells that it is being loaded, and is never done.
ENDLESS = """
import os
os.write(int(os.environ["LOADING"]), b"!")
os.read(int(os.environ["NEVER"]), 1)
"""


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_ctrl_c_while_a_program_loads_ends_it_without_a_word(program: str, tmp_path: Path):
    (tmp_path / "click.py").write_text(ENDLESS)
    module, _, function = PROGRAMS[program].partition(":")
    loading, tells = os.pipe()
    never, held = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", f"from {module} import {function}; {function}()"],
        env=os.environ | {"PYTHONPATH": str(tmp_path), "LOADING": str(tells), "NEVER": str(never)},
        pass_fds=(tells, never),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        os.close(tells)
        assert os.read(loading, 1) == b"!"
        process.send_signal(signal.SIGINT)
        # As a shell tells it: 130.
        assert (process.communicate()[0], process.returncode) == (b"", -signal.SIGINT)
    for end in (loading, never, held):
        os.close(end)
