"""Full names of images."""

import re
from dataclasses import dataclass
from typing import Self

from neorion.keel.base import Invalid

_WORD = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_NAME = re.compile(
    r"(?:(?P<host>localhost|[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)+(?::[0-9]+)?|[a-zA-Z0-9-]+:[0-9]+)/)?"
    rf"(?P<path>{_WORD}(?:/{_WORD})*)(?::(?P<tag>[\w][\w.-]{{0,127}}))?"
)


@dataclass(frozen=True, slots=True)
class ImageName:
    """Registry, path and tag: "python:3.11-slim" is docker.io, library/python, 3.11-slim, as usual."""

    host: str
    path: str
    tag: str

    @classmethod
    def parse(cls, text: str) -> Self:
        found = _NAME.fullmatch(text)
        if found is None:
            raise Invalid(
                "images.bad_name",
                f'"{text[:100]}" is not a valid name of an image.',
                hint='Write it as "trainer:dev" or "ghcr.io/team/trainer:dev", in lower case.',
            )
        host = found["host"] or "docker.io"
        path = found["path"]
        if host == "docker.io" and "/" not in path:
            path = f"library/{path}"
        return cls(host, path, found["tag"] or "latest")

    def __str__(self) -> str:
        return f"{self.host}/{self.path}:{self.tag}"
