"""The driver's library that does not need a driver."""

from pathlib import Path

import pytest

from tests.navarch.nvml.stand_in import build


@pytest.fixture(scope="session")
def nvml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("nvml"))
