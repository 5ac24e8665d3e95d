"""Finds the base images of a Dockerfile. Pure: text in, names out."""

import re
from collections.abc import Mapping
from typing import Final

from neorion.drydock.images.image_name import ImageName

_LINE_GOES_ON: Final = re.compile(r"\\\n")
_INSTRUCTION: Final = re.compile(r"\s*([A-Za-z]+)\s+(.*)")
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)(?::-([^}]*))?\}|(\w+))")


def bases(text: str, given: Mapping[str, str]) -> list[str]:
    """Full names, each once, in order. `given` are the build's arguments; earlier stages and scratch do not count."""
    arguments, stages, found = dict[str, str](), {"scratch"}, list[str]()
    for line in _LINE_GOES_ON.sub(" ", text).splitlines():
        instruction = _INSTRUCTION.fullmatch(line)
        if instruction is None:
            continue
        # A name that becomes empty after substitution is kept as written.
        words = (_filled(instruction[2], arguments | dict(given)).strip() or instruction[2]).split()
        match instruction[1].upper():
            case "ARG" if not found:
                name, _, default = words[0].partition("=")
                arguments.setdefault(name, default.strip("\"'"))
            case "FROM":
                words = [word for word in words if not word.startswith("--")]
                found += [words[0]] if words[0].lower() not in stages else []
                stages |= {words[2].lower()} if len(words) == 3 else set()
            case "COPY":
                sources = [word.removeprefix("--from=") for word in words if word.startswith("--from=")]
                found += [word for word in sources if word.lower() not in stages and not word.isdecimal()]
            case _:
                continue
    return list(dict.fromkeys(str(ImageName.parse(name)) for name in found))


def _filled(text: str, values: Mapping[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        return values.get(found[1] or found[3]) or found[2] or ""

    return _VARIABLE.sub(value, text)
