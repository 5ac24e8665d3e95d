"""The list of attacks says what the tests do: neither may change without the other."""

from pathlib import Path

import pytest

from tools.attacks import BrokenList, attacks, page

TEST = """
import pytest

@pytest.mark.attack("known")
@pytest.mark.parametrize("one", [1])
async def test_one(one): ...

def test_other(): ...
"""
WHOLE = (
    "import pytest\npytestmark = [pytest.mark.anyio, pytest.mark.attack('known')]\ndef test_whole(): ...\n"
)


def tree(folder: Path, listed: str) -> Path:
    place = folder / "tests" / "attacks"
    place.mkdir(parents=True)
    (place / "attacks.yaml").write_text(listed)
    (place / "test_one.py").write_text(TEST)
    (place / "test_whole.py").write_text(WHOLE)
    return folder


def test_markers_and_references_are_found(tmp_path: Path) -> None:
    listed = "Group:\n  known:\n    attack: A.\n    guard: G.\n    tests: [tests/attacks/test_one.py::test_other]\n"
    (found,) = attacks(tree(tmp_path, listed))
    assert found.tests == (
        "tests/attacks/test_one.py::test_one",
        "tests/attacks/test_whole.py::test_whole",
        "tests/attacks/test_one.py::test_other",
    )
    assert "| A. | G. | `tests/attacks/test_one.py::test_one`<br>" in page([found])


@pytest.mark.parametrize(
    ("listed", "says"),
    [
        ("G: {other: {attack: A., open: Why.}}", "markers without an attack"),
        ("G: {known: {attack: A.}, other: {attack: A.}}", "no test carries it out"),
        ("G: {known: {attack: A., tests: [tests/attacks/test_one.py::test_gone]}}", "there is no test"),
        ("G: {known: {attack: A., tests: [tests/gone.py::test_one]}}", "there is no test"),
        ("G: {known: {attack: A., guards: typo}}", "unknown field"),
    ],
)
def test_a_list_that_drifts_is_an_error(tmp_path: Path, listed: str, says: str) -> None:
    with pytest.raises(BrokenList, match=says):
        attacks(tree(tmp_path, listed))


def test_an_attack_without_a_test_has_a_reason(tmp_path: Path) -> None:
    listed = "G: {known: {attack: A.}, gone: {attack: A., open: Not yet.}}"
    assert [one.guard for one in attacks(tree(tmp_path, listed))] == ["", "**Open.** Not yet."]
