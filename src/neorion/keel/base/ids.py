"""Typed ids: a JobId is not a NodeId, though both are texts."""

import re
from typing import ClassVar, Self

NAME_MAX = 63
_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")


class Id(str):
    """A text of one kind. Subclasses set `prefix`: `class JobId(Id): prefix = "job"`."""

    __slots__ = ()
    prefix: ClassVar[str]

    @classmethod
    def made_of(cls, unique: str) -> Self:
        return cls(f"{cls.prefix}-{unique}")


def is_name(text: str) -> bool:
    """RFC 1123: what a person may call a thing, wherever it travels: hosts, labels, paths, terminals."""
    return _NAME.fullmatch(text) is not None
