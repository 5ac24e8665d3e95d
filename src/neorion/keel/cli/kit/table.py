"""Tables and blocks for people. No text is cut: columns that do not fit are dropped by priority."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Generic, TypeVar, cast

from neorion.keel.cli.kit.terminal import TerminalStream, Tone, cells, escape

Record = TypeVar("Record")

_GAP: Final = "  "
# A wrapped column narrower than this would hold one word per line.
_WRAP_MIN: Final = 20


@dataclass(frozen=True, slots=True)
class Column(Generic[Record]):
    """One column. Priority 0 is always shown; of the others, the highest number is dropped first."""

    header: str
    value: Callable[[Record], object]
    priority: int = 0
    right: bool = False
    # Shown by `-o wide` and in blocks only.
    wide: bool = False
    # For sentences: wrapped between words at the width of the terminal. Only for the last column.
    wrap: bool = False
    tone: Callable[[Record], Tone | None] | None = None


@dataclass(frozen=True, slots=True)
class Table(Generic[Record]):
    """The columns of one kind of record, declared once for all formats."""

    columns: tuple[Column[Record], ...]
    name: Callable[[Record], str]
    empty: str = "Nothing to show."


def table_lines(
    table: Table[Record],
    records: Sequence[Record],
    screen: TerminalStream,
    *,
    wide: bool,
    headers: bool = True,
) -> list[str]:
    columns = [column for column in table.columns if wide or not column.wide]
    texts = {column.header: [_cell(column.value(record)) for record in records] for column in columns}
    widths = {column.header: max(map(cells, [column.header, *texts[column.header]])) for column in columns}
    columns = _fitting(columns, widths, screen.width)
    lines: list[str] = []
    if headers:
        lines += _row([(column, column.header, Tone.HEADING) for column in columns], widths, screen)
    for index, record in enumerate(records):
        row = [
            (column, texts[column.header][index], column.tone(record) if column.tone else None)
            for column in columns
        ]
        lines += _row(row, widths, screen)
    return lines


def block_lines(table: Table[Record], record: Record, screen: TerminalStream) -> list[str]:
    """One record, one line for each column."""
    label_width = max(cells(column.header) for column in table.columns) + len(_GAP)
    lines: list[str] = []
    for column in table.columns:
        room = None if screen.width is None else max(_WRAP_MIN, screen.width - label_width)
        tone = column.tone(record) if column.tone else None
        first, *rest = _wrapped(_cell(column.value(record)), room)
        lines.append(screen.paint(_pad(column.header, label_width), Tone.HEADING) + screen.paint(first, tone))
        lines += [" " * label_width + screen.paint(line, tone) for line in rest]
    return lines


def _fitting(columns: list[Column[Record]], widths: dict[str, int], room: int | None) -> list[Column[Record]]:
    def needed(chosen: Iterable[Column[Record]]) -> int:
        return sum(
            min(widths[each.header], _WRAP_MIN) + len(_GAP) if each.wrap else widths[each.header] + len(_GAP)
            for each in chosen
        ) - len(_GAP)

    while room is not None and needed(columns) > room:
        least = max(columns, key=lambda column: column.priority)
        if least.priority == 0:
            break
        columns = [column for column in columns if column is not least]
    return columns


def _row(
    row: Sequence[tuple[Column[Record], str, Tone | None]], widths: dict[str, int], screen: TerminalStream
) -> list[str]:
    pieces: list[str] = []
    taken = 0
    for column, text, tone in row[:-1]:
        pieces.append(screen.paint(_pad(text, widths[column.header], right=column.right), tone) + _GAP)
        taken += widths[column.header] + len(_GAP)
    column, text, tone = row[-1]
    if column.right:
        text = _pad(text, widths[column.header], right=True)
    line = "".join(pieces)
    if not column.wrap or screen.width is None:
        return [(line + screen.paint(text, tone)).rstrip()]
    if screen.width - taken < _WRAP_MIN:
        # No room beside the others: the sentence stands below them.
        below = _wrapped(text, screen.width - len(_GAP))
        return [line.rstrip(), *(_GAP + screen.paint(each, tone) for each in below)]
    first, *rest = _wrapped(text, screen.width - taken)
    return [line + screen.paint(first, tone), *(" " * taken + screen.paint(each, tone) for each in rest)]


def _cell(value: object) -> str:
    match value:
        case None | "":
            return "-"
        case bool():
            return "yes" if value else "no"
        case Enum():
            return _cell(value.value)
        case list() | tuple():
            return ", ".join(map(_cell, cast("list[object]", value))) or "-"
        case _:
            return escape(str(value))


def _pad(text: str, width: int, *, right: bool = False) -> str:
    space = " " * (width - cells(text))
    return space + text if right else text + space


def _wrapped(text: str, room: int | None) -> list[str]:
    """Wraps between words; a word longer than the line stays whole."""
    if room is None or cells(text) <= room:
        return [text]
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and cells(lines[-1]) + 1 + cells(word) > room:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines
