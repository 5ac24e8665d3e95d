"""Files of variables, and `iris run --env-file`."""

from pathlib import Path

import pytest

from neorion.iris.cli.env_file import variables
from neorion.keel.base import Invalid
from neorion.keel.cli import Exit
from tests.iris.cli.calling import Iris


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=b", "b"),
        ("A=", ""),
        ("  A=b  ", "b"),
        ("A = b", "b"),
        ("export A=b", "b"),
        ("A=b=c", "b=c"),
        ("A=two words", "two words"),
        ("A=b # why", "b"),
        ("A= # nothing", ""),
        ("A=b#c", "b#c"),
        ("A=it's", "it's"),
        ('A="b # c"', "b # c"),
        ('A="b" # why', "b"),
        ("A=' b '", " b "),
        (r'A="b\nc\t\"d\" \\ \$e"', 'b\nc\t"d" \\ $e'),
        (r"A='b\n$c'", r"b\n$c"),
        ("A=$B ${C}", "$B ${C}"),
        ("A=ключ", "ключ"),
        ("A=b\r", "b"),
    ],
)
def test_a_line_is_read_as_it_is_meant(tmp_path: Path, line: str, value: str):
    file = tmp_path / "variables"
    file.write_bytes(f"\ufeff# first\n\n{line}\n".encode())
    assert variables(file) == {"A": value}


@pytest.mark.parametrize(
    "line", ["A", "=b", "A B=c", "export A", 'A="b', "A='b", 'A="b" c', 'A="b\\"', "'A'=b"]
)
def test_a_line_that_is_none_is_refused_by_its_number_and_not_shown(tmp_path: Path, line: str):
    file = tmp_path / "variables"
    file.write_text(f"# first\nGOOD=1\n{line}\n")
    with pytest.raises(Invalid) as refused:
        variables(file)
    assert refused.value.code == "iris.env_file"
    assert refused.value.sentence.startswith(f"Line 3 of {file} ")
    assert line not in refused.value.sentence.replace(str(file), "")


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name, says in (("none", "No such file"), (".", "Is a directory"), ("binary", "is not valid UTF-8")):
        with pytest.raises(Invalid, match=says):
            variables(tmp_path / name)


def test_the_command_finds_what_the_files_say_and_options_win(iris: Iris, environment: Path):
    (environment / "one.env").write_text("A=1\nB=1\nC=1\n")
    (environment / "two.env").write_text("B=2\nC=2\n")
    said = ("--env-file", "one.env", "--env", "C=3", "--env-file", "two.env")
    assert iris("run", *said, "--", "sh", "-c", "echo $A $B $C").out == "1 2 3\n"


def test_a_wrong_file_is_refused_before_anything_is_done(iris: Iris, environment: Path):
    (environment / "wrong.env").write_text("A=1\nB\n")
    for name in ("wrong.env", "none.env"):
        done = iris("run", "--env-file", name, "--", "true")
        assert (done.code, done.out) == (Exit.NOT_STARTED, "")
        assert done.err.splitlines()[-1] == "code: iris.env_file"
        assert "submitted" not in done.err
