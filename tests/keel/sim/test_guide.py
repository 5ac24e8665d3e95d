from pathlib import Path
from typing import Any

GUIDE = Path(__file__).parents[3] / "docs/guides/sim.md"


def test_the_example_of_the_guide_runs():
    code = GUIDE.read_text().partition("```python\n")[2].partition("```")[0]
    names = dict[str, Any]()
    exec(compile(code, str(GUIDE), "exec"), names)  # noqa: S102 -- our own page
    names["test_what_was_acknowledged_is_there_after_a_crash"]()


def test_the_guide_lists_every_error_code():
    room = Path(__file__).parents[3] / "src/neorion/keel/sim"
    text = "".join(path.read_text() for path in sorted(room.glob("*.py")))
    raised = {part.split('"')[0] for part in text.split('"sim.')[1:]}
    assert raised
    assert [code for code in sorted(raised) if f"`sim.{code}`" not in GUIDE.read_text()] == []
