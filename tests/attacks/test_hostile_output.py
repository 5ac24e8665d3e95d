"""Output of tasks on an operator's terminal: it can be read, and do nothing."""

import io
import os
import pty
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neorion.devservers.cli.commands import access_impl
from neorion.devservers.client import DevServerApi
from neorion.iris.cli.log_format import shown
from neorion.keel.cli import ColorMode
from neorion.keel.cli.kit import Output
from neorion.keel.cli.kit.terminal import TerminalStream, printable
from neorion.keel.cli.shared_options import SharedOptions
from neorion.keel.kube import PodLogOptions
from tests.keel.cli.test_terminal import Tty

pytestmark = pytest.mark.attack("terminal-escapes")

CLIPBOARD = "\x1b]52;c;cm0gLXJmIH4=\x07"
HOSTILE = {
    "the clipboard": CLIPBOARD,
    "the title": "\x1b]0;root@production\x07",
    "clearing the screen": "\x1b[2J\x1b[H",
    "one byte of control": "\x9b2J",
    "invisible text": "\x1b[8mhidden\x1b[0m",
    "invisible text among others": "\x1b[1;8mhidden",
    "the direction": "user\u202etxt.exe",
    "a link": "\x1b]8;;http://attacker\x1b\\click\x1b]8;;\x1b\\",
    "the keyboard": "\x1b[c\x1b[6n",
}
COLOUR = re.compile("\x1b\\[[0-9;]*m")


def output(stream: io.StringIO) -> Output:
    screen = TerminalStream.of(stream, ColorMode.AUTO, {"TERM": "xterm"})
    return Output(SharedOptions(), screen, screen, {"TERM": "xterm"})


def show(stream: io.StringIO, *pieces: bytes, several: bool = False) -> str:
    with shown(output(stream), several=several) as emit:
        for piece in pieces:
            emit(0, piece)
    return stream.getvalue()


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("several", [False, True])
def test_a_log_line_does_nothing_to_a_terminal(text: str, *, several: bool) -> None:
    written = show(Tty(), f"begin {text} end\n".encode(), several=several)
    assert "begin" in written
    assert not set(COLOUR.sub("", written)) & set("\x1b\x07\x9b\u202e")
    assert not re.search("\x1b\\[[0-9;]*8m", written)


def test_a_sequence_in_two_pieces_is_no_sequence() -> None:
    assert "\x1b" not in show(Tty(), b"\x1b", b"]52;c;cm0=\x07\n", b"\x1b[3", b"1mred\n")


def test_a_file_or_a_pipe_gets_every_byte() -> None:
    """The control: the same bytes are there where no terminal reads them."""
    assert show(io.StringIO(), CLIPBOARD.encode()) == CLIPBOARD


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("\x1b[1;31mred\x1b[0m\ttab\n", "\x1b[1;31mred\x1b[0m\ttab\n"),
        ("\x1b[38;5;208morange", "\x1b[38;5;208morange"),
        ("50 %\r100 %\r\n", "50 %\n100 %\n"),
        ("Grüße 日本", "Grüße 日本"),
    ],
)
def test_colours_and_lines_stay(text: str, printed: str) -> None:
    assert printable(text) == printed


@given(st.text(st.sampled_from("\x1b[];m0128c\x07\r\n\x9b\u202ex")))
def test_no_text_makes_a_sequence_other_than_a_colour(text: str) -> None:
    assert not set(COLOUR.sub("", printable(text))) & set("\x1b\x07\x9b\u202e\r")


# The same for the log of a development server.


async def devctl_logs(monkeypatch: pytest.MonkeyPatch, target: int, *pieces: bytes) -> None:
    async def pod_logs(*_: object) -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    monkeypatch.setattr(access_impl, "pod_logs", pod_logs)
    with os.fdopen(os.dup(target), "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        await access_impl.logs(cast("DevServerApi", None), "mydev", PodLogOptions())


@pytest.mark.anyio
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
async def test_the_log_of_a_server_does_nothing_to_a_terminal(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    reading, writing = pty.openpty()
    try:
        line = f"begin {text} end\n".encode()
        await devctl_logs(monkeypatch, writing, line[:9], line[9:])
        written = os.read(reading, 65_536).decode()
    finally:
        os.close(reading)
        os.close(writing)
    assert "begin" in written
    assert not set(COLOUR.sub("", written)) & set("\x1b\x07\x9b\u202e")


@pytest.mark.anyio
async def test_the_log_of_a_server_is_whole_in_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with (tmp_path / "log").open("wb") as file:
        await devctl_logs(monkeypatch, file.fileno(), CLIPBOARD.encode(), b"\xff")
    assert (tmp_path / "log").read_bytes() == CLIPBOARD.encode() + b"\xff"
