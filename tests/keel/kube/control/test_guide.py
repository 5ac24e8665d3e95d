from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[4]
GUIDE = ROOT / "docs/guides/controllers.md"
ROOMS = ("control", "testing")


def test_the_example_of_the_guide_runs():
    code = GUIDE.read_text().partition("```python\n")[2].partition("```")[0]
    names = dict[str, Any]()
    exec(compile(code, str(GUIDE), "exec"), names)  # noqa: S102 -- our own page
    names["test_a_vandal_is_undone"]()


def test_the_guide_lists_every_error_code():
    sources = [
        path for room in ROOMS for path in sorted((ROOT / "src/neorion/keel/kube" / room).glob("*.py"))
    ]
    text = "".join(path.read_text() for path in [*sources, ROOT / "src/neorion/keel/kube/labels.py"])
    raised = {part.split('"')[0] for part in text.split('"kube.')[1:]}
    assert raised
    # Fault points are named where calls are.
    codes = {code for code in raised if "." not in code and "{" not in code}
    assert [code for code in sorted(codes) if f"`kube.{code}`" not in GUIDE.read_text()] == []
