"""Recordings of terminals: secrets are taken out however the text is cut, and a replay prints and does nothing else."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neorion.devservers.decide.recording import (
    REDACTED,
    OutputPart,
    Redactor,
    header,
    output_event,
    parts,
    resize_event,
)
from neorion.keel.base import Invalid

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\r\nb3BlbnNzaC1rZXk\r\nAAAAsecret==\r\n-----END OPENSSH PRIVATE KEY-----\r\n"
SECRETS = [
    "AKIAIOSFODNN7EXAMPLE",
    "ghp_" + "a1B2" * 9,
    "hf_" + "x" * 34,
    "sk-ant-" + "y" * 30,
    "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl",
    "PASSWORD=hunter2",
    "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG",
    "https://ann:hunter2@example.com/x",
]


def redacted(*texts: str) -> str:
    redactor = Redactor()
    return "".join(map(redactor.feed, texts)) + redactor.flush()


@pytest.mark.parametrize("secret", SECRETS)
@given(cuts=st.lists(st.integers(0, 120), max_size=6))
def test_a_secret_is_taken_out_however_the_output_is_cut(secret: str, cuts: list[int]):
    text = f"$ echo {secret}\r\n{secret}\r\n$ ls\r\n"
    edges = sorted({0, len(text), *(one for one in cuts if one < len(text))})
    shown = redacted(*(text[a:b] for a, b in itertools.pairwise(edges)))
    assert shown.count(REDACTED) == 2
    assert secret not in shown
    assert "hunter2" not in shown
    assert shown.endswith("\r\n$ ls\r\n")


@given(cuts=st.lists(st.integers(0, 200), max_size=6))
def test_a_private_key_is_taken_out_however_the_output_is_cut(cuts: list[int]):
    text = f"$ cat id\r\n{KEY}$ "
    edges = sorted({0, len(text), *(one for one in cuts if one < len(text))})
    shown = redacted(*(text[a:b] for a, b in itertools.pairwise(edges)))
    assert "secret" not in shown
    assert "b3Blbn" not in shown
    assert REDACTED in shown
    assert shown.endswith("-----END OPENSSH PRIVATE KEY-----\r\n$ ")


@given(st.lists(st.text(max_size=40), max_size=20))
def test_a_text_without_secrets_stays_as_it_is(texts: list[str]):
    assert redacted(*texts) == "".join(texts)


def test_a_program_that_prints_no_space_is_recorded_all_the_same():
    assert redacted("x" * 20_000, "y") == "x" * 20_000 + "y"


def test_a_recording_is_asciicast_v2_and_plays_with_its_pauses():
    lines = [
        header((80, 24), 1_800_000_000, "ann", {"TERM": "xterm"}),
        output_event(0.5, "one "),
        resize_event(0.75, 120, 40),
        output_event(2.5, "two"),
    ]
    assert json.loads(lines[0]) == {
        "version": 2,
        "width": 80,
        "height": 24,
        "timestamp": 1_800_000_000,
        "title": "ann",
        "env": {"TERM": "xterm"},
    }
    assert json.loads(lines[2]) == [0.75, "r", "120x40"]
    assert list(parts(lines)) == [OutputPart(0.5, "one "), OutputPart(2.0, "two")]


def test_a_replay_sends_no_commands_to_the_terminal():
    clipboard = "\x1b]52;c;c2VjcmV0\x07"
    (part,) = parts([output_event(0, f"a{clipboard}b\x1b]0;title\x1b\\c\x1b[1md")])
    assert part.text == "abc\x1b[1md"


@pytest.mark.parametrize("line", [b"", b"x", b"[1]", b'[1,"o"]', b'["1","o","x"]', b"{", b"\xff"])
def test_a_line_of_another_format_is_refused(line: bytes):
    with pytest.raises(Invalid, match="Line 2 is not a line of a recording"):
        list(parts([b'{"version": 2}', line]))
