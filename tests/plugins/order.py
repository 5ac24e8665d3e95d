"""Begins the longest files of tests first where each file stays in one worker, so that no worker ends long after the others."""

from typing import Any, Final

import pytest
from xdist.scheduler import LoadFileScheduling  # pyright: ignore[reportMissingTypeStubs] -- it has none

# From 200 to 30 s each. xdist alone goes by the number of tests, and some of these have one.
LONGEST: Final = (
    "tests/conformance/kube/test_platforms.py",
    "tests/kube/test_devservers_install.py",
    "tests/node/test_devservers_install.py",
    "tests/kube/test_navarch_patterns.py",
    "tests/kube/test_devserver_chaos.py",
    "tests/kube/test_devservers_uninstall.py",
    "tests/node/test_life.py",
    "tests/node/test_devserver_idle.py",
    "tests/kube/test_devservers_queue.py",
)


class LongestFirst(LoadFileScheduling):
    """After the longest files, those with the most tests."""

    def _assign_work_unit(self, node: Any) -> None:
        longest = next((file for file in LONGEST if file in self.workqueue), None)
        if longest is not None:
            self.workqueue.move_to_end(longest, last=False)
        super()._assign_work_unit(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LongestFirst | None:
    return LongestFirst(config, log) if config.getoption("dist") == "loadfile" else None
