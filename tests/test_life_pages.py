"""Pages that walk through the modules name modules that exist."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ROOT / "src" / "neorion"
_MODULE = re.compile(r"`((?:[a-z_]+/)*[a-z_]+\.py)`")


def missing(text: str) -> Iterator[str]:
    """Yield the named modules that are neither below the package nor below the checkout."""
    for path in _MODULE.findall(text):
        if not (PACKAGES / path).is_file() and not (ROOT / path).is_file():
            yield path


def test_every_module_that_a_walk_names_exists():
    pages = sorted((ROOT / "docs").glob("life-of-a-*.md"))
    assert len(pages) >= 3
    assert {page.name: found for page in pages if (found := list(missing(page.read_text())))} == {}


def test_a_module_that_does_not_exist_is_found():
    assert list(missing("In `programs.py` and `keel/no_module.py`.")) == ["keel/no_module.py"]
