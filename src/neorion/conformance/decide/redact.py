"""Redaction of a cluster's answers: no secrets, no more than a certain size, no control characters."""

import re
from collections.abc import Mapping
from typing import Final, cast

REMOVED: Final = "[redacted]"
# A hostile or broken cluster may answer with gigabytes; evidence keeps the beginning.
TEXT_MAX: Final = 4_000
ITEMS_MAX: Final = 200
DEPTH_MAX: Final = 24
_SECRET_KEYS: Final = re.compile(
    r"(?i)^(.*(password|passwd|secretkey|secret_key|accesskey|access_key|privatekey|private_key|apikey|api_key)|token|bearer|authorization|credential.*|clientsecret|client-key-data)$"
)
_SECRET_TEXTS: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|(?i:bearer)\s+[\w.~+/=-]{8,}"
    r"|\bAKIA[0-9A-Z]{16}\b"
)
# Escape sequences would let a cluster write on the reader's terminal.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def redacted(value: object, depth: int = 0) -> object:
    """A copy without secrets, capped in size. Secrets of Kubernetes lose their data, whatever it is called."""
    if depth > DEPTH_MAX:
        return "[too deep]"
    match value:
        case str():
            return redacted_text(value)
        case Mapping():
            return _redacted_mapping(cast("Mapping[object, object]", value), depth)
        case list() | tuple():
            items = cast("list[object]", value)
            kept = [redacted(each, depth + 1) for each in items[:ITEMS_MAX]]
            return kept if len(items) <= ITEMS_MAX else [*kept, f"[{len(items) - ITEMS_MAX} more]"]
        case None | bool() | int() | float():
            return value
        case _:
            return redacted_text(str(value))


def redacted_text(text: str) -> str:
    """A text that can be stored and shown."""
    kept = text[: TEXT_MAX + 4_000]
    clean = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", _SECRET_TEXTS.sub(REMOVED, kept))
    clean = clean.encode("utf-8", "replace").decode("utf-8")
    return clean if len(text) <= TEXT_MAX else f"{clean[:TEXT_MAX]}[{len(text) - TEXT_MAX} characters more]"


def _redacted_mapping(value: Mapping[object, object], depth: int) -> dict[str, object]:
    is_secret = value.get("kind") == "Secret"
    kept: dict[str, object] = {}
    for key, each in list(value.items())[:ITEMS_MAX]:
        name = redacted_text(str(key))
        hidden = _SECRET_KEYS.match(name) is not None or (is_secret and name in {"data", "stringData"})
        kept[name] = REMOVED if hidden and each not in (None, "", {}) else redacted(each, depth + 1)
    return kept
