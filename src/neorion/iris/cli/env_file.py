"""Files of variables: KEY=VALUE in lines, as Docker Compose reads them. A `$` is a `$`: nothing is filled in."""

import re
from pathlib import Path
from typing import Final

from neorion.keel.base import Invalid

_PAIR: Final = re.compile(r"""(?:export\s+)?([^\s=#"']+)\s*=\s*(.*)""")
_DOUBLE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(?:#.*)?')
_SINGLE: Final = re.compile(r"'([^']*)'\s*(?:#.*)?")
_COMMENT: Final = re.compile(r"(?:^|\s)#.*")
_ESCAPED: Final = re.compile(r"\\(.)")
_MEANT: Final = {"n": "\n", "r": "\r", "t": "\t"}


def variables(path: Path) -> dict[str, str]:
    """What the file says; of a name that it says twice, the last."""
    try:
        # Editors on Windows begin a file with a mark.
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise Invalid(
            "iris.env_file",
            f"{path} cannot be read: {error.strerror}.",
            hint="Name a file of KEY=VALUE lines.",
        ) from None
    except UnicodeDecodeError:
        raise Invalid("iris.env_file", f"{path} is no text.", hint="Write it in UTF-8.") from None
    found: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        said = line.strip()
        if said and not said.startswith("#"):
            name, value = _pair(said, f"Line {number} of {path}")
            found[name] = value
    return found


def _pair(line: str, where: str) -> tuple[str, str]:
    """What stands in the line is not told again: it may be a secret."""
    pair = _PAIR.fullmatch(line)
    if pair is None:
        raise Invalid(
            "iris.env_file", f"{where} is no variable.", hint="Write KEY=VALUE, or # before a comment."
        )
    name, value = pair.groups()
    if not value.startswith(('"', "'")):
        return name, _COMMENT.sub("", value).rstrip()
    quoted = _DOUBLE.fullmatch(value) or _SINGLE.fullmatch(value)
    if quoted is None:
        raise Invalid(
            "iris.env_file",
            f"{where} has a quote that does not end with its value.",
            hint='Write KEY="a value", with \\" for a quote inside and \\n for the end of a line.',
        )
    if value.startswith("'"):
        return name, quoted[1]
    return name, _ESCAPED.sub(lambda found: _MEANT.get(found[1], found[1]), quoted[1])
