"""Output of a command: data on stdout, everything else on stderr."""

import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from neorion.keel.cli.kit.serialize import as_json, as_json_line, as_yaml, plain
from neorion.keel.cli.kit.table import Record, Table, block_lines, table_lines
from neorion.keel.cli.kit.terminal import TerminalStream, Tone, escape, is_live, printable
from neorion.keel.cli.shared_options import Format, SharedOptions

# Moves the cursor to the start of the line and clears the line.
_LINE_AWAY: Final = "\r\x1b[K"


class Output(NamedTuple):
    """Writes records in the format that the user selected, and remarks for the person on stderr."""

    shared: SharedOptions
    out: TerminalStream
    err: TerminalStream
    env: Mapping[str, str]

    @classmethod
    def of(cls, shared: SharedOptions, env: Mapping[str, str] | None = None) -> "Output":
        env = os.environ if env is None else env
        return cls(
            shared,
            TerminalStream.of(sys.stdout, shared.color, env),
            TerminalStream.of(sys.stderr, shared.color, env),
            env,
        )

    def show(self, records: Sequence[Record], table: Table[Record]) -> None:
        """Writes any number of records. Without records: an empty list in data formats, a sentence in a table."""
        match self.shared.output:
            case Format.JSON:
                self.out.write(as_json([plain(record) for record in records]))
            case Format.YAML:
                self.out.write(as_yaml([plain(record) for record in records]))
            case Format.NAME:
                self.out.write("".join(f"{escape(table.name(record))}\n" for record in records))
            case _ if records:
                self._lines(table_lines(table, records, self.out, wide=self._wide))
            case _:
                self.say(table.empty)

    def show_one(self, record: Record, table: Table[Record]) -> None:
        """Writes one record: an object in data formats, a block for people."""
        match self.shared.output:
            case Format.JSON:
                self.out.write(as_json(plain(record)))
            case Format.YAML:
                self.out.write(as_yaml(plain(record)))
            case Format.NAME:
                self.out.write(f"{escape(table.name(record))}\n")
            case _:
                self._lines(block_lines(table, record, self.out))

    def watch(self, table: Table[Record]) -> Callable[[Record], None]:
        """Shows records as they come: one JSON object for each line, one YAML document, or one row."""
        first = True

        def emit(record: Record) -> None:
            nonlocal first
            match self.shared.output:
                case Format.JSON:
                    self.out.write(as_json_line(plain(record)))
                case Format.YAML:
                    self.out.write("---\n" + as_yaml(plain(record)))
                case Format.NAME:
                    self.out.write(f"{escape(table.name(record))}\n")
                case _:
                    self._lines(table_lines(table, [record], self.out, wide=self._wide, headers=first))
            first = False

        return emit

    def text(self, text: str) -> None:
        """Writes a result that is a text by nature, such as a script or an address, unchanged."""
        self.out.write(text)

    def log(self, text: str) -> None:
        """Writes the output of a user's program: unchanged to files and pipes, escaped on a terminal."""
        self.out.write(printable(text) if self.out.stream.isatty() else text)

    def say(self, sentence: str) -> None:
        """Writes a remark for the person, unless `-q` is set."""
        if not self.shared.quiet:
            self.err.write(f"{escape(sentence)}\n")

    def warn(self, sentence: str) -> None:
        if not self.shared.quiet:
            self.err.write(f"{self.err.paint('warning:', Tone.WARNING)} {escape(sentence)}\n")

    @contextmanager
    def waiting(self, words: str) -> Generator[None]:
        """Shows `words` on a terminal until the context ends."""
        if self.shared.quiet or not is_live(self.err.stream, self.env):
            yield
            return
        self.err.write(self.err.paint(escape(words), Tone.QUIET))
        try:
            yield
        finally:
            self.err.write(_LINE_AWAY)

    @property
    def _wide(self) -> bool:
        return self.shared.output is Format.WIDE

    def _lines(self, lines: list[str]) -> None:
        self.out.write("".join(f"{line}\n" for line in lines))
