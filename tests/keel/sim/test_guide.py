from pathlib import Path

GUIDE = Path(__file__).parents[3] / "docs/guides/sim.md"


def test_the_guide_lists_every_error_code():
    room = Path(__file__).parents[3] / "src/neorion/keel/sim"
    text = "".join(path.read_text() for path in sorted(room.glob("*.py")))
    raised = {part.split('"')[0] for part in text.split('"sim.')[1:]}
    assert raised
    assert [code for code in sorted(raised) if f"`sim.{code}`" not in GUIDE.read_text()] == []
