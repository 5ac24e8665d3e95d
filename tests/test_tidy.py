"""The house rules, on the whole project; and each rule on a planted violation, so that none is blind."""

from pathlib import Path

import pytest

from tools import tidy
from tools.tidy import Source

ROOT = Path(__file__).parent.parent
SOURCES = tidy.read(ROOT)
# Modules over the soft limit, with the size they may not exceed.
LARGE: dict[str, int] = {
    "tests/contracts/kube_control.py": 401,
    "tests/devservers/decide/test_server.py": 408,
    "tests/kube/test_devservers_guards.py": 401,
}

LONG = "def f():\n" + "    pass\n" * 60
MANY = "def f(a, b, c, d, e, g, h):\n    pass\n"


@pytest.mark.parametrize("rule", tidy.RULES, ids=lambda rule: rule.__name__)
def test_the_project_keeps_the_rule(rule: "tidy.Callable[[Source], tidy.Iterator[str]]"):
    assert [violation for source in SOURCES for violation in rule(source)] == []


def test_no_module_is_larger_than_it_may_be():
    assert list(tidy.large_modules(SOURCES, LARGE)) == []


@pytest.mark.parametrize(
    ("rule", "path", "text", "says"),
    [
        (tidy.function_size, "src/neorion/a.py", LONG, "61 lines"),
        (tidy.function_size, "src/neorion/a.py", MANY, "7 arguments"),
        (tidy.package_docstring, "src/neorion/a/__init__.py", "", "what must not"),
        (tidy.package_docstring, "src/neorion/a/__init__.py", '"""Only what."""', "what must not"),
        (tidy.calls_at_home, "src/neorion/iris/a.py", "import time\ntime.time()\n", "time.time"),
        (tidy.calls_at_home, "src/neorion/iris/a.py", "from uuid import uuid4\nuuid4()\n", "uuid4"),
        (
            tidy.calls_at_home,
            "src/neorion/iris/a.py",
            "async def f(loop):\n    loop.create_task(g())\n",
            ".create_task",
        ),
        (tidy.calls_at_home, "src/neorion/iris/a.py", "random.random()\n", "random.random"),
        (tidy.calls_at_home, "src/neorion/iris/a.py", "datetime.datetime.now()\n", "datetime.now"),
        (tidy.calls_at_home, "tests/test_a.py", "import time\ntime.sleep(1)\n", "time.sleep"),
        (
            tidy.calls_at_home,
            "tests/test_a.py",
            "async def f():\n    await asyncio.sleep(1)\n",
            "asyncio.sleep",
        ),
        (tidy.reasons, "src/neorion/a.py", "x = 1  # no" + "qa: E501\n", "reason"),
        (tidy.reasons, "src/neorion/a.py", "# TO" + "DO: later\n", "unfinished"),
        (tidy.skips, "tests/test_a.py", "@pytest.mark.skip\ndef test_a(): ...\n", "mark.skip"),
        (tidy.skips, "tests/test_a.py", "pytest.skip('x')\n", "pytest.skip"),
    ],
)
def test_a_planted_violation_is_caught(
    rule: "tidy.Callable[[Source], tidy.Iterator[str]]", path: str, text: str, says: str
):
    (violation,) = rule(Source(path, text))
    assert says in violation


@pytest.mark.parametrize(
    ("size", "listed", "says"),
    [
        (401, {}, "400 at most"),
        (801, {"a.py": 900}, "800 at most"),
        (500, {"a.py": 450}, "may only shrink"),
        (300, {"a.py": 450}, "take it off"),
    ],
)
def test_the_list_of_large_modules_may_only_shrink(size: int, listed: dict[str, int], says: str):
    (violation,) = tidy.large_modules([Source("a.py", "\n" * size)], listed)
    assert says in violation


def test_a_listed_module_that_has_not_grown_is_let_be():
    assert list(tidy.large_modules([Source("a.py", "\n" * 450)], {"a.py": 450})) == []


def test_reading_time_in_a_test_is_not_sleeping():
    assert list(tidy.calls_at_home(Source("tests/test_a.py", "time.monotonic()\n"))) == []
