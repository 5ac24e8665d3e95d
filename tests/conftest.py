"""What every test may count on: one async backend, and parts of the machine asked for by name."""

import os

import pytest

from tools import system


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips what this machine cannot run, and says which package would change that."""
    known = system.packages()
    for mark in item.iter_markers("needs"):
        for program in mark.args:
            if program == "root":
                if os.geteuid() != 0:
                    pytest.skip("this needs the rights of root")
                continue
            if program not in known:
                pytest.fail(f'needs("{program}"): not in tools/system-packages.txt')
            if system.find(program) is None:
                pytest.skip(f"{program} is not installed (Debian package {known[program]})")
