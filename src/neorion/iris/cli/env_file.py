"""Parser of variable files: lines of KEY=VALUE, as in Docker Compose, without interpolation of `$`."""

import re
from pathlib import Path
from typing import Final

from neorion.keel.base import Invalid

_PAIR: Final = re.compile(r"""(?:export\s+)?([^\s=#"']+)\s*=\s*(.*)""")
_DOUBLE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(?:#.*)?')
_SINGLE: Final = re.compile(r"'([^']*)'\s*(?:#.*)?")
_COMMENT: Final = re.compile(r"(?:^|\s)#.*")
_ESCAPED: Final = re.compile(r"\\(.)")
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t"}


def variables(path: Path) -> dict[str, str]:
    """Variables of a file. The last value of a repeated name is used."""
    try:
        # Editors on Windows begin a file with a byte order mark.
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise Invalid(
            "iris.env_file",
            f"{path} cannot be read: {error.strerror}.",
            hint="Name a file of KEY=VALUE lines.",
        ) from None
    except UnicodeDecodeError:
        raise Invalid(
            "iris.env_file", f"{path} is not valid UTF-8.", hint="Save the file as UTF-8."
        ) from None
    found: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            name, value = _pair(stripped, f"Line {number} of {path}")
            found[name] = value
    return found


def _pair(line: str, where: str) -> tuple[str, str]:
    """Parses a line. Errors do not quote it, because it may contain a secret."""
    pair = _PAIR.fullmatch(line)
    if pair is None:
        raise Invalid(
            "iris.env_file",
            f"{where} is not a valid variable.",
            hint="Write KEY=VALUE, or # before a comment.",
        )
    name, value = pair.groups()
    if not value.startswith(('"', "'")):
        return name, _COMMENT.sub("", value).rstrip()
    quoted = _DOUBLE.fullmatch(value) or _SINGLE.fullmatch(value)
    if quoted is None:
        raise Invalid(
            "iris.env_file",
            f"{where} has text after its closing quote, or no closing quote.",
            hint='Write KEY="a value", with \\" for a quote and \\n for a newline.',
        )
    if value.startswith("'"):
        return name, quoted[1]
    return name, _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]), quoted[1])
