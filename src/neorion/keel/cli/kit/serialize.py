"""Records as data for machines: the same values whatever the format, in ASCII so that any locale can carry them."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import PurePath
from typing import Any, Final, cast

from neorion.keel.base import Duration, Instant, Quantity

Plain = str | int | float | bool | None | list["Plain"] | dict[str, "Plain"]

# PyYAML quotes what YAML 1.1 misreads; readers of 1.2 take more for numbers, all of which begin like one.
_NUMBERLIKE: Final = re.compile(r"[-+.0-9]")


def plain(value: object) -> Plain:  # noqa: PLR0911 -- one line for each kind of value
    """Converts a record to JSON types. Units are written as people write them: "2h30m", "512Mi"."""
    match value:
        case None | bool():
            return value
        case Enum():
            return plain(value.value)
        case int():
            return int(value)
        case float():
            # JSON has no form for these; protobuf writes them this way.
            return (
                value
                if math.isfinite(value)
                else {"nan": "NaN", "inf": "Infinity"}.get(str(value), "-Infinity")
            )
        case str():
            return _text(str(value))
        case Duration() | Quantity() | Instant() | PurePath():
            return _text(str(value))
        case Mapping():
            entries = cast("Mapping[object, object]", value)
            return {_text(str(key)): plain(each) for key, each in entries.items()}
        case list() | tuple():
            return [plain(each) for each in cast("list[object]", value)]
        case _:
            return {name: plain(getattr(value, name)) for name in _names(value)}


def _names(record: object) -> Iterable[str]:
    """The field names of a dataclass or a msgspec Struct, without importing msgspec."""
    names: tuple[str, ...] | None = getattr(record, "__struct_fields__", None)
    if names is not None:
        return names
    if not is_dataclass(record):
        raise TypeError(f"no way to show a {type(record).__name__}")
    return (field.name for field in fields(record))


def as_json(value: Plain) -> str:
    import json  # noqa: PLC0415 -- only JSON output needs it

    return json.dumps(value, indent=2, allow_nan=False) + "\n"


def as_json_line(value: Plain) -> str:
    import json  # noqa: PLC0415 -- only JSON output needs it

    return json.dumps(value, allow_nan=False, separators=(",", ":")) + "\n"


def as_yaml(value: Plain) -> str:
    import yaml  # noqa: PLC0415 -- only YAML output needs it

    # libyaml is four times as fast; a Python built without it writes the same.
    base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

    class Dumper(base):
        """Quotes every text that some reader could take for a number."""

    def represent(dumper: Any, text: str) -> Any:  # noqa: ANN401 -- PyYAML's nodes have no types
        style = '"' if _NUMBERLIKE.match(text) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, represent)
    return yaml.dump(value, Dumper=Dumper, sort_keys=False, default_flow_style=False)


def _text(text: str) -> str:
    """Replaces unpaired surrogates, which file names can hold and JSON readers may reject."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
