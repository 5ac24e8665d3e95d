from pathlib import Path

ROOT = Path(__file__).parents[4]
GUIDE = ROOT / "docs/guides/controllers.md"
ROOMS = ("control", "testing")


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
