import io
from dataclasses import dataclass
from enum import StrEnum

from hypothesis import given, settings
from hypothesis import strategies as st

from neorion.keel.cli.kit.table import Column, Table, block_lines, table_lines
from neorion.keel.cli.kit.terminal import TerminalStream, Tone, cells, escape


class State(StrEnum):
    READY = "ready"


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    state: State = State.READY
    gpus: int = 8
    zone: str | None = None
    note: str = ""


NODES: Table[Node] = Table(
    (
        Column("NAME", lambda node: node.name),
        Column("STATE", lambda node: node.state, tone=lambda _: Tone.GOOD),
        Column("GPUS", lambda node: node.gpus, priority=1, right=True),
        Column("ZONE", lambda node: node.zone, priority=2),
        Column("WIDE", lambda _: True, wide=True),
        Column("NOTE", lambda node: node.note, priority=3, wrap=True),
    ),
    name=lambda node: node.name,
)


def lines(*nodes: Node, width: int | None = None, wide: bool = False, color: bool = False) -> list[str]:
    return table_lines(NODES, nodes, TerminalStream(io.StringIO(), color, width), wide=wide)


def test_a_table_is_aligned_and_without_boxes():
    assert lines(Node("node-1", note="fine"), Node("n", gpus=16, zone="lga1")) == [
        "NAME    STATE  GPUS  ZONE  NOTE",
        "node-1  ready     8  -     fine",
        "n       ready    16  lga1  -",
    ]


def test_a_narrow_terminal_loses_columns_in_order_and_never_letters():
    node = Node("node-with-a-long-name", zone="lga1", note="one two three four five six seven eight nine")
    assert lines(node, width=65)[0].split() == ["NAME", "STATE", "GPUS", "ZONE", "NOTE"]
    assert lines(node, width=50)[0].split() == ["NAME", "STATE", "GPUS", "ZONE"]
    assert lines(node, width=36)[0].split() == ["NAME", "STATE", "GPUS"]
    assert lines(node, width=30)[0].split() == ["NAME", "STATE"]
    assert lines(node, width=5)[1] == "node-with-a-long-name  ready"


def test_a_pipe_gets_everything_on_one_line():
    node = Node("n", note="word " * 100)
    assert len(lines(node)) == 2
    assert "word " * 99 in lines(node)[1]


def test_sentences_are_wrapped_between_words_below_their_column():
    shown = lines(Node("n", zone="z", note="one two three four five six"), width=50)
    assert shown == [
        "NAME  STATE  GPUS  ZONE  NOTE",
        "n     ready     8  z     one two three four five",
        "                         six",
    ]


def test_wide_shows_all_columns():
    assert lines(Node("n"), wide=True)[0].split() == ["NAME", "STATE", "GPUS", "ZONE", "WIDE", "NOTE"]


def test_colour_does_not_move_anything():
    plain = lines(Node("n"), Node("longer"))
    painted = lines(Node("n"), Node("longer"), color=True)
    assert painted != plain
    for code in ("\x1b[0m", "\x1b[1m", "\x1b[32m"):
        painted = [line.replace(code, "") for line in painted]
    assert [line.rstrip() for line in painted] == plain


def test_a_block_has_a_line_for_each_column():
    shown = block_lines(
        NODES, Node("n", note="one two three four five"), TerminalStream(io.StringIO(), color=False, width=24)
    )
    assert shown == [
        "NAME   n",
        "STATE  ready",
        "GPUS   8",
        "ZONE   -",
        "WIDE   yes",
        "NOTE   one two three four",
        "       five",
    ]


TEXTS = st.text(max_size=30)


@settings(deadline=None)
@given(
    st.lists(st.builds(Node, name=TEXTS, zone=TEXTS, note=TEXTS), min_size=1, max_size=5), st.integers(1, 200)
)
def test_key_columns_are_never_cut_whatever_the_width(nodes: list[Node], width: int):
    shown = lines(*nodes, width=width)
    rows = [line for line in shown[1:] if "ready" in line]
    assert len(rows) >= len(nodes)
    for node in nodes:
        assert any(line.startswith(escape(node.name) or "-") for line in shown[1:])


@settings(deadline=None)
@given(st.lists(st.builds(Node, name=TEXTS.filter(str.strip), zone=st.just("z")), min_size=1, max_size=5))
def test_columns_begin_at_the_same_cell_in_every_row(nodes: list[Node]):
    shown = lines(*nodes)
    starts = {cells(line[: line.rindex("ready")]) for line in shown[1:]}
    assert starts == {cells(shown[0][: shown[0].index("STATE")])}


def test_a_sentence_without_room_beside_the_others_stands_below_them():
    table: Table[Node] = Table(
        (Column("NAME", lambda node: node.name), Column("NOTE", lambda node: node.note, wrap=True)),
        name=lambda node: node.name,
    )
    node = Node("a-name-of-some-length", note="one two three four five six seven")
    assert table_lines(table, [node], TerminalStream(io.StringIO(), color=False, width=30), wide=False) == [
        "NAME",
        "  NOTE",
        "a-name-of-some-length",
        "  one two three four five six",
        "  seven",
    ]
