"""What a file of tests makes once is made once for the whole run, not once for each worker (`--dist loadgroup`)."""

import re
from collections.abc import Sequence

import pytest

_PREFIX = "file-"
_SUFFIX = re.compile(rf"@{_PREFIX}[\w-]+$")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _shares_with_its_file(item):
            item.add_marker(pytest.mark.xdist_group(f"{_PREFIX}{item.path.parent.name}-{item.path.stem}"))


def _shares_with_its_file(item: pytest.Item) -> bool:
    found: dict[str, Sequence[pytest.FixtureDef[object]]] = getattr(
        getattr(item, "_fixtureinfo", None), "name2fixturedefs", {}
    )
    return any(definitions[-1].scope in {"module", "package"} for definitions in found.values())


def plain(nodeid: str) -> str:
    """The name of a test as it is written on the command line: xdist adds the group to it."""
    return _SUFFIX.sub("", nodeid)
