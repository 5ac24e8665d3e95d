"""The code blocks of the documentation run as they stand."""

from pathlib import Path

import pytest

from tests.install.blocks import Block, Reader, blocks_of, mistakes
from tests.install.conftest import Environment

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {str(page.relative_to(DOCS)): blocks_of(page) for page in sorted(DOCS.rglob("*.md"))}
# The pages of users run on what `pip install 'neorion[server]'` gives, the others in this checkout.
FOR_USERS = ("guides/cluster-file.md", "guides/iris-cli.md", "guides/iris.md")
OTHERS = [
    page for page, blocks in PAGES.items() if page not in FOR_USERS and any(block.runs for block in blocks)
]


def test_every_block_has_a_language_and_a_valid_mark():
    pages = [
        *(
            (ROOT / name, blocks_of(ROOT / name))
            for name in ("README.md", "CONTRIBUTING.md", "examples/README.md")
        ),
        *((DOCS / page, PAGES[page]) for page in PAGES),
    ]
    assert [mistake for _, blocks in pages for block in blocks for mistake in mistakes(block)] == []
    overlooked = [page for page, blocks in pages if page.read_text().count("```") != 2 * len(blocks)]
    assert overlooked == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", FOR_USERS)
def test_the_blocks_of_a_page_for_users_run(page: str, server: Environment, tmp_path: Path):
    Reader(tmp_path, server.bin).follow(PAGES[page])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", OTHERS)
def test_the_blocks_of_a_page_run(page: str, tmp_path: Path):
    Reader(tmp_path, PYTHONPATH=str(ROOT)).follow(PAGES[page])


@pytest.mark.parametrize(
    ("language", "text", "mark", "value", "wrong"),
    [
        ("", "ls\n", "", "", "language"),
        ("sh", "if\n", "needs", "cluster", "syntax"),
        ("sh", "ls\n", "needs", "luck", "valid mark"),
        ("yaml", "a: [\n", "fragment", "", "expected"),
        ("yaml", "a: 1\n", "", "", "needs a mark"),
        ("python", "1 +\n", "", "", "invalid syntax"),
    ],
)
def test_a_planted_mistake_is_found(language: str, text: str, mark: str, value: str, wrong: str):
    (found,) = mistakes(Block("page.md", 1, language, text, mark, value))
    assert wrong in found


@pytest.mark.parametrize(
    "block",
    [
        Block("page.md", 1, "python", "assert 1 == 2\n"),
        Block("page.md", 1, "python", "def test_a(): assert 1 == 2\n"),
        Block("page.md", 1, "sh", "false\ntrue\n"),
        Block("page.md", 1, "yaml", "pools: 1\n", "run", "navarch validate"),
    ],
)
def test_a_block_that_fails_is_told(block: Block, tmp_path: Path):
    with pytest.raises(AssertionError, match=r"failed with 1:\n>>> page\.md:1\n"):
        Reader(tmp_path).follow([block])
