"""The README, followed line by line in an empty folder by someone who has only Python."""

import os
import sys
from pathlib import Path

import pytest

from tests.install.blocks import Reader, blocks_of

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.timeout(400)
@pytest.mark.usefixtures("package_index")
def test_the_readme_can_be_followed(wheel: Path, tmp_path: Path):
    blocks = blocks_of(README)
    assert {block.language for block in blocks if block.runs} == {"python", "sh"}
    # Here pip finds the wheel. Downloads are kept from run to run.
    cache = os.environ.get("PIP_CACHE_DIR", str(Path.home() / ".cache/pip"))
    python = Path(sys.base_prefix) / "bin"
    Reader(tmp_path, python, PIP_FIND_LINKS=str(wheel.parent), PIP_CACHE_DIR=cache).follow(blocks)
