"""Generated code is what its sources say, and the tool notices when it is not."""

from pathlib import Path

import pytest

from tools import generate


def test_the_committed_code_is_what_the_protos_say() -> None:
    assert generate.main(["--check"]) == 0


def test_a_check_names_what_is_stale_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    same, old, gone, new = (tmp_path / f"{name}.py" for name in ("same", "old", "gone", "new"))
    for path in (same, old, gone):
        path.write_text("before")
    wanted = {same: b"before", old: b"after", new: b"after"}
    made = generate.Made(wanted, {same, old, gone})
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "STEPS", {"step": lambda: made})
    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().out.split("\n")[:3] == [
        "step: stale gone.py",
        "step: stale new.py",
        "step: stale old.py",
    ]
    assert old.read_text() == "before"
    assert generate.main([]) == 0
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == wanted
