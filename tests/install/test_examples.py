"""Each example runs as it stands, on what `pip install 'neorion[server]'` gives."""

from pathlib import Path

import pytest

from tests.install.conftest import Environment

EXAMPLES = Path(__file__).parents[2] / "examples"
# The end of what each prints.
PRINTED = {
    "gang.py": "each task has: [42, 42]\n",
    "hello.py": "84 / 2 = 42.0\n84 / 0 failed: division by zero\n",
    "pi.py": "16 of 16: pi is about 3.1426\n",
}


def test_every_example_is_listed_and_tried():
    scripts = {path.name for path in EXAMPLES.glob("*.py")}
    page = (EXAMPLES / "README.md").read_text()
    assert scripts == set(PRINTED)
    assert [name for name in scripts if f"[{name}]({name})" not in page] == []


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", sorted(PRINTED))
def test_an_example_runs(name: str, server: Environment):
    assert server.run("python", str(EXAMPLES / name)).endswith(PRINTED[name])
