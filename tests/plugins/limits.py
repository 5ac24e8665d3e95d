"""Time limits of tests: which each file has, and a struck one told as TIMEOUT, whatever the test made of it."""

import signal
import time
from collections.abc import Generator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

# The first test that asks for a cluster also waits until it is made.
CLUSTER_S = 300
# A simulation computes all the time: on a busy machine it takes many times as long as on a quiet one.
SIMULATION_S = 600
SIMULATIONS = Path(__file__).parent.parent / "sim"
CLUSTER_FIXTURES = {"cluster", "own_cluster"}
# The limit that struck in a test, in seconds, until it is reported.
_STRUCK = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--limit-factor", type=float, default=1, help="Multiply the time limit of each test by this."
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cpu(seconds): the most CPU time that this test may take")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    factor = float(str(config.getoption("limit_factor")))
    usual: float | None = config.getoption("timeout")
    for item in items:
        own = item.get_closest_marker("timeout")
        limit: float = own.args[0] if own else usual or _limit(item) or float(config.getini("timeout") or 0)
        item.add_marker(pytest.mark.timeout(limit * factor), append=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """A test of how much there is to compute is measured by its own CPU time: real time is the machine's."""
    began = time.process_time()
    yield
    used = time.process_time() - began
    mark = item.get_closest_marker("cpu")
    if mark and used > mark.args[0]:
        pytest.fail(f"It took {used:.1f} s of CPU time, more than {mark.args[0]} s.")


def _limit(item: pytest.Item) -> float:
    """The limit of a test that has none of its own, if it is not the usual one."""
    if item.path.is_relative_to(SIMULATIONS):
        return SIMULATION_S
    return CLUSTER_S if CLUSTER_FIXTURES & set(getattr(item, "fixturenames", ())) else 0


@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> Generator[None, Any, Any]:
    """Remembers that the limit struck: asyncio and `except BaseException` may swallow what it raises."""
    done = yield
    strike = signal.getsignal(signal.SIGALRM)
    if settings.method == "signal" and callable(strike):

        def remember(number: int, frame: FrameType | None) -> None:
            item.stash[_STRUCK] = settings.timeout
            strike(number, frame)

        signal.signal(signal.SIGALRM, remember)
    return done


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    struck = item.stash.get(_STRUCK, None)
    if struck is not None:
        del item.stash[_STRUCK]
        _tell(report, f"TIMEOUT: the limit of {struck:g} s struck.")
    return report


def _tell(report: pytest.TestReport, sentence: str) -> None:
    """Puts the sentence where the summary takes its line from, and before the traceback."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if report.outcome != "failed" or crash is None:
        report.longrepr = f"{sentence}\n{report.longrepr or 'The test went on and passed.'}"
    else:
        crash.message = f"{sentence} {crash.message}"
        report.sections.insert(0, ("Time limit", sentence))
    report.outcome = "failed"
    report.user_properties.append(("timeout", True))
