"""The lists of attacks and faults agree with the markers of the tests."""

from pathlib import Path

import pytest

from tools.attacks import ATTACKS, FAULTS, BrokenList, Catalog, entries, page

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


ROOT = Path(__file__).parents[2]
LIST = Catalog("attack", "guard", 0)


def tree(folder: Path, listed: str) -> Path:
    place = folder / "tests" / "attacks"
    place.mkdir(parents=True)
    (place / "attacks.yaml").write_text(listed)
    (place / "test_one.py").write_text(TEST)
    (place / "test_whole.py").write_text(WHOLE)
    return folder


def test_markers_and_references_are_found(tmp_path: Path) -> None:
    listed = "Group:\n  known:\n    attack: A.\n    guard: G.\n    tests: [tests/attacks/test_one.py::test_other]\n"
    (found,) = entries(tree(tmp_path, listed), LIST)
    assert found.tests == (
        "tests/attacks/test_one.py::test_one",
        "tests/attacks/test_whole.py::test_whole",
        "tests/attacks/test_one.py::test_other",
    )
    assert "|  | A. | G. | `tests/attacks/test_one.py::test_one`<br>" in page([found], LIST)


@pytest.mark.parametrize(
    ("listed", "says"),
    [
        ("G: {other: {attack: A., open: Why.}}", "markers without one entry"),
        ("G: {known: {attack: A.}, other: {attack: A.}}", "no test carries it out"),
        ("G: {known: {attack: A., tests: [tests/attacks/test_one.py::test_gone]}}", "does not exist"),
        ("G: {known: {attack: A., tests: [tests/gone.py::test_one]}}", "does not exist"),
        ("G: {known: {attack: A., guards: typo}}", "unknown field"),
    ],
)
def test_a_list_that_drifts_is_an_error(tmp_path: Path, listed: str, says: str) -> None:
    with pytest.raises(BrokenList, match=says):
        entries(tree(tmp_path, listed), LIST)


def test_a_number_stands_for_the_one_entry_that_has_it(tmp_path: Path) -> None:
    folder = tree(tmp_path, "G: {known: {attack: A.}, named: {number: 1, attack: B.}, 2: {attack: C.}}")
    numbered = "import pytest\n@pytest.mark.attack(1, 2)\ndef test_two(): ...\n"
    (folder / "tests" / "attacks" / "test_two.py").write_text(numbered)
    _, named, second = entries(folder, Catalog("attack", "guard", 2))
    assert named.tests == second.tests == ("tests/attacks/test_two.py::test_two",)
    assert [named.number, second.number] == [1, 2]


def test_a_number_of_several_entries_must_be_a_name(tmp_path: Path) -> None:
    listed = "G: {known: {attack: A.}, one: {number: 1, attack: B.}, two: {number: 1, attack: C.}}"
    folder = tree(tmp_path, listed)
    marked = "import pytest\n@pytest.mark.attack(1)\ndef test_two(): ...\n"
    (folder / "tests" / "attacks" / "test_two.py").write_text(marked)
    with pytest.raises(BrokenList, match="use one of one, two"):
        entries(folder, LIST)


def test_every_number_has_an_entry(tmp_path: Path) -> None:
    with pytest.raises(BrokenList, match="numbers without an entry"):
        entries(tree(tmp_path, "G: {known: {number: 2, attack: A.}}"), Catalog("attack", "guard", 3))


@pytest.mark.parametrize("catalog", [ATTACKS, FAULTS])
def test_the_lists_of_the_project_agree_with_its_tests(catalog: Catalog) -> None:
    found = entries(Path(__file__).parents[2], catalog)
    assert {one.number for one in found} - {None} == set(range(1, catalog.rows + 1))


def test_an_attack_without_a_test_has_a_reason(tmp_path: Path) -> None:
    listed = "G: {known: {attack: A.}, gone: {attack: A., open: Not yet.}}"
    assert [one.answer for one in entries(tree(tmp_path, listed), LIST)] == ["", "**Open:** Not yet."]


@pytest.mark.parametrize("system", ["iris", "navarch", "devservers", "conformance"])
def test_each_guide_leads_to_its_threat_model(system: str) -> None:
    guide = ROOT / "docs" / "guides" / f"{system}.md"
    model = f"../security/{system}.md"
    assert f"]({model})" in guide.read_text()
    assert (guide.parent / model).exists()
