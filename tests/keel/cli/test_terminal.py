import io
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neorion.keel.cli import ColorMode
from neorion.keel.cli.kit.terminal import TerminalStream, Tone, cells, escape, wants_color


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@settings(deadline=None)
@given(st.text())
def test_no_text_can_move_the_cursor_turn_the_direction_or_hide(text: str):
    shown = escape(text)
    assert all(unicodedata.category(each) not in {"Cc", "Cs", "Zl", "Zp"} for each in shown)
    assert not set(shown) & set(
        "\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x1b]52;c;aGk=\x07", "\\x1b]52;c;aGk=\\x07"),
        ("a\r\nb\tc", "a\\r\\nb\\tc"),
        ("\x9b31m", "\\x9b31m"),
        ("user\u202etxt.exe", "user\\u202etxt.exe"),
        ("\udcff", "\\udcff"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("Grüße 日本 👩‍🚀", "Grüße 日本 👩‍🚀"),
    ],
)
def test_what_is_escaped_is_still_readable(text: str, shown: str):
    assert escape(text) == shown


@pytest.mark.parametrize(
    ("mode", "env", "tty", "color"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"TERM": "dumb"}, True, False),
        ("auto", {"FORCE_COLOR": "1"}, False, True),
        ("auto", {"FORCE_COLOR": "0"}, False, False),
        ("auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ("always", {"NO_COLOR": "1", "TERM": "dumb"}, False, True),
        ("never", {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_colour_is_shown_to_who_wants_it(mode: str, env: dict[str, str], tty: bool, color: bool):  # noqa: FBT001 -- a table
    assert wants_color(Tty() if tty else io.StringIO(), ColorMode(mode), env) is color


def test_a_screen_knows_its_width_only_where_somebody_watches():
    assert TerminalStream.of(io.StringIO(), ColorMode.AUTO, {"COLUMNS": "40"}).width is None
    assert TerminalStream.of(Tty(), ColorMode.AUTO, {"COLUMNS": "40"}).width == 40
    assert TerminalStream.of(Tty(), ColorMode.AUTO, {"COLUMNS": "wide"}).width == 80


def test_paint_changes_nothing_without_colour():
    assert TerminalStream(io.StringIO(), color=False, width=None).paint("x", Tone.BAD) == "x"
    assert TerminalStream(io.StringIO(), color=True, width=None).paint("x", Tone.BAD) == "\x1b[31mx\x1b[0m"


def test_cells_counts_columns_not_letters():
    assert (cells("abc"), cells("日本"), cells("e\u0301")) == (3, 4, 1)
