"""What goes along with a job, and what does not."""

import io
import os
import subprocess
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neorion.iris.cli.log_follower import LineMultiplexer
from neorion.iris.client.bundle import BYTES_MAX, bundle
from neorion.keel.base import Invalid


def files(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def names(folder: Path, *exclude: str) -> list[str]:
    return zipfile.ZipFile(io.BytesIO(bundle(folder, exclude).body)).namelist()


def test_the_same_files_are_the_same_bytes(tmp_path: Path):
    files(tmp_path, "b.py", "a/c.py")
    first = bundle(tmp_path, ())
    os.utime(tmp_path / "b.py", (1, 1))
    assert bundle(tmp_path, ()) == first
    (tmp_path / "b.py").chmod(0o755)
    assert bundle(tmp_path, ()).digest != first.digest


def test_in_a_repository_git_decides(tmp_path: Path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    files(tmp_path, "kept.py", "secret.env", "sub/new.py", ".hidden", "gone.py")
    (tmp_path / ".gitignore").write_text("*.env\n")
    subprocess.run(["git", "-C", tmp_path, "add", "."], check=True)
    (tmp_path / "gone.py").unlink()
    files(tmp_path, "untracked.py")
    assert names(tmp_path) == [".gitignore", ".hidden", "kept.py", "sub/new.py", "untracked.py"]
    assert names(tmp_path / "sub") == ["new.py"]


def test_elsewhere_what_machines_make_and_what_is_hidden_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    files(tmp_path, "a.py", ".git-credentials", "venv/x.py", "pkg/__pycache__/a.pyc", ".cache/y", "pkg/b.py")
    assert names(tmp_path) == ["a.py", "pkg/b.py"]


def test_what_is_excluded_stays(tmp_path: Path):
    files(tmp_path, "a.py", "data/x.bin", "runs/old/1.txt", "runs/new/1.txt", "deep/data/y")
    assert names(tmp_path, "data", "runs/old") == ["a.py", "runs/new/1.txt"]
    assert names(tmp_path, "*.txt", "deep/") == ["a.py", "data/x.bin"]


def test_too_much_is_refused_with_the_names_of_the_largest(tmp_path: Path):
    files(tmp_path, "small.py")
    (tmp_path / "weights.bin").write_bytes(os.urandom(BYTES_MAX + 1))
    with pytest.raises(Invalid, match=r"weights\.bin \(25Mi\), small\.py") as refused:
        bundle(tmp_path, ())
    assert refused.value.code == "iris.bundle_large"
    with (tmp_path / "weights.bin").open("wb") as huge:
        huge.truncate(100 * BYTES_MAX)
    with pytest.raises(Invalid, match=r"weights\.bin"):
        bundle(tmp_path, ())


@pytest.mark.parametrize("name", [b"no\xfftext", b"back\\slash"])
def test_a_file_that_cannot_be_sent_is_named_before_anything_is(tmp_path: Path, name: bytes):
    files(tmp_path, "a.py")
    (tmp_path / os.fsdecode(name)).touch()
    with pytest.raises(Invalid) as refused:
        bundle(tmp_path, ())
    assert refused.value.code == "iris.bundle_file"
    assert repr(os.fsdecode(name)) in refused.value.sentence
    assert names(tmp_path, "no*", "back*") == ["a.py"]


@pytest.mark.parametrize("trouble", ["distrust", "absence"])
def test_what_git_ignores_stays_behind_where_git_does_not_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: str
):
    files(tmp_path, "sub/a.py", "sub/secret.key", ".gitignore")
    (tmp_path / ".gitignore").write_text("*.key\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert names(tmp_path / "sub") == ["a.py"]
    if trouble == "distrust":
        # As with a folder of somebody else, mounted into a container.
        monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    else:
        monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Invalid) as refused:
        bundle(tmp_path / "sub", ())
    assert refused.value.code == "iris.bundle_git"
    assert (
        "dubious ownership" if trouble == "distrust" else "git is not installed"
    ) in refused.value.sentence


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([b"a", b"\n", b"bc\nd", b"", b"\n\n"]))))
def test_lines_stay_whole_however_they_come(chunks: list[tuple[int, bytes]]):
    written: list[bytes] = []
    lines = LineMultiplexer(written.append)
    for index, text in chunks:
        lines.show(index, text)
    lines.close()
    shown = b"".join(written)
    for index in range(3):
        mark = b"[%d] " % index
        mine = [line.removeprefix(mark) for line in shown.splitlines() if line.startswith(mark)]
        assert mine == b"".join(text for who, text in chunks if who == index).splitlines()


def test_of_a_line_that_is_written_over_the_last_is_shown():
    written: list[bytes] = []
    lines = LineMultiplexer(written.append)
    for text in (b"0%\r", b"50%\r9", b"9%", b"\r", b"\ndos\r\n", b"\r1%\r2%", b"\r3%"):
        lines.show(0, text)
    lines.close()
    assert b"".join(written) == b"[0] 99%\n[0] dos\n[0] 3%\n"


def test_what_has_no_end_of_line_is_not_kept_for_ever():
    written: list[bytes] = []
    lines = LineMultiplexer(written.append)
    for _ in range(5000):
        lines.show(7, b"." * 1000)
    assert 4_000_000 < sum(map(len, written)) < 5_000_100
    assert all(line.startswith(b"[7] .") for line in written)
