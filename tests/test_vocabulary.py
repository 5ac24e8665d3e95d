"""The words of the project, and each rule on a planted violation, so that none is blind."""

from pathlib import Path

import pytest

from tools import tidy, vocabulary
from tools.tidy import Source

ROOT = Path(__file__).parent.parent
LIST = Path(__file__).parent / "vocabulary_allowed.txt"
A = "src/neorion/iris/a.py"


def test_no_violation_is_new_and_no_entry_of_the_list_is_stale():
    found = vocabulary.violations(tidy.read(ROOT))
    differences = vocabulary.compared(found, vocabulary.listed(LIST.read_text()))
    assert differences == [], (
        "once an entry is mended: python -m tests.test_vocabulary > tests/vocabulary_allowed.txt"
    )


@pytest.mark.parametrize(
    ("rule", "path", "text", "what"),
    [
        (vocabulary.names, "src/neorion/iris/deck.py", "", "deck"),
        (vocabulary.names, A, "class LogShelf: ...\n", "LogShelf"),
        (vocabulary.names, A, "def _told_names(): ...\n", "_told_names"),
        (vocabulary.names, A, "class B:\n    async def ask_inside(self): ...\n", "ask_inside"),
        (vocabulary.prose, A, '"""A list that nobody reads."""\n', ""),
        (vocabulary.prose, A, "x = 1  # somebody sets it later\n", ""),
        (vocabulary.messages, A, 'raise Invalid("a.b", f"Nobody knows {a}.")\n', ""),
        (vocabulary.docstrings, A, 'def f():\n    """What a task returns."""\n', ""),
        (vocabulary.docstrings, A, 'class B:\n    """How: by force."""\n', ""),
        (vocabulary.helps, A, 'click.option("--a", help="Whether it waits.")\n', ""),
        (vocabulary.helps, A, 'app.mount("a", "b:c", help="List flavors")\n', ""),
        (vocabulary.helps, A, 'click.option("--a", help="Fail if this is no name.")\n', ""),
        (vocabulary.helps, A, '@app.command()\ndef f():\n    """list flavors."""\n', ""),
        (vocabulary.hints, A, 'raise Invalid("a.b", "No.", hint="try again")\n', ""),
        (vocabulary.hints, A, 'raise Invalid("a.b", "No.", hint=f"Use {a}. Or wait.")\n', ""),
    ],
)
def test_a_planted_violation_is_caught(
    rule: "vocabulary.Callable[[Source], vocabulary.Iterator[vocabulary.Violation]]",
    path: str,
    text: str,
    what: str,
):
    (violation,) = rule(Source(path, text))
    assert (violation.path, violation.what) == (path, what)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (vocabulary.names, "class Replacement: ...\ndef placement(): ...\ndef stages(): ...\n"),
        (vocabulary.prose, "# No body is read here.\n"),
        (vocabulary.messages, '"""Of nobody in a docstring."""\nUSER = "nobody"\n'),
        (vocabulary.docstrings, '"""Whatsoever."""\n'),
        (vocabulary.helps, 'click.option("--a", help="List flavors (default: all).")\n'),
        (vocabulary.helps, 'click.option("--a", help="Fail if the name is no longer valid.")\n'),
        (vocabulary.hints, 'raise Invalid("a.b", "No.", hint=f"Use {a}.")\nf(hint=hint)\n'),
    ],
)
def test_plain_words_pass(
    rule: "vocabulary.Callable[[Source], vocabulary.Iterator[vocabulary.Violation]]", text: str
):
    assert list(rule(Source(A, text))) == []


def test_guides_contain_no_banned_word():
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
    pages += sorted((ROOT / "docs" / "guides").glob("*.md"))
    sources = [Source(str(page.relative_to(ROOT)), page.read_text()) for page in pages]
    assert list(vocabulary.guides(sources)) == []
    assert list(vocabulary.guides([Source("a.md", "Nobody knows.")])) == [
        vocabulary.Violation("guide", "a.md")
    ]


def test_a_class_name_that_stands_for_two_things_in_one_system_is_caught():
    one, two = (
        Source(A, "class Job: ...\n"),
        Source("src/neorion/iris/b.py", "class Job: ...\nclass _Own: ...\n"),
    )
    other = Source("src/neorion/navarch/a.py", "class Job: ...\nclass _Own: ...\n")
    (violation,) = vocabulary.duplicate_classes([one, two, other])
    assert str(violation) == "duplicate src/neorion/iris Job"


def test_the_list_may_only_shrink():
    allowed = vocabulary.listed("2 prose a.py\n1 name b.py deck\n")
    assert vocabulary.compared(vocabulary.Counter({"prose a.py": 2, "name b.py deck": 1}), allowed) == []
    assert vocabulary.compared(vocabulary.Counter({"prose a.py": 3}), allowed) == [
        "3 times, 2 allowed: prose a.py",
        "lower it to 0: name b.py deck",
    ]
    assert vocabulary.listed(vocabulary.as_list(allowed)) == allowed


if __name__ == "__main__":
    print(vocabulary.as_list(vocabulary.violations(tidy.read(ROOT))), end="")  # noqa: T201 -- this is how the list is made
