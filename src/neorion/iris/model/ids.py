"""The names things go by."""

import re
from typing import Self

from neorion.keel.base import Id, Invalid

NAME_DEPTH_MAX = 16
NAME_CHARS_MAX = 512
_SEGMENT = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


class JobId(Id):
    """One submission; a job submitted again under the same name has another."""

    __slots__ = ()
    prefix = "job"


class AttemptId(Id):
    """One try at one task: in every message, file name, Pod name and log key."""

    __slots__ = ()
    prefix = "attempt"


class WorkerId(Id):
    """One life of one worker process."""

    __slots__ = ()
    prefix = "worker"


class SliceId(Id):
    """Machines that come and go together."""

    __slots__ = ()
    prefix = "slice"


class Digest(str):
    """SHA-256 of some bytes, in hexadecimal: the name of a blob."""

    __slots__ = ()


class JobName(str):
    """A path: /user/job/child. The parent of a name is the name without its last segment."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        segments = text.split("/")
        wrong = (
            len(text) > NAME_CHARS_MAX
            or not 3 <= len(segments) <= NAME_DEPTH_MAX + 1
            or segments[0] != ""
            or not all(_SEGMENT.fullmatch(segment) for segment in segments[1:])
        )
        if wrong:
            raise Invalid(
                "iris.name",
                f"{text[:80]!r} is no job name.",
                hint="Use up to 63 letters, digits, '.', '_' and '-', beginning and ending with a letter or digit.",
            )
        return super().__new__(cls, text)

    @classmethod
    def known(cls, text: str) -> "JobName":
        """A text to look up: if it is no name, there is nothing under it."""
        return str.__new__(cls, text)

    @property
    def user(self) -> str:
        return self.split("/", 2)[1]

    @property
    def last(self) -> str:
        return self.rpartition("/")[2]
