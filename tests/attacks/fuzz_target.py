"""What each target of the fuzzer is made of: a parser that is open, and its inputs."""

import asyncio
import tempfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from neorion.keel.clock import seeded_rng
from tests.attacks.mutation import Rng, spliced

Attempt: TypeAlias = Callable[[Any], str]
_MEMORY: Final = Path("/dev/shm")  # noqa: S108 -- a folder below it is made, with a name of its own


@dataclass(frozen=True, slots=True)
class Target:
    """One parser, and a source of inputs for it."""

    opened: Callable[[], Any]
    inputs: Callable[[Rng], Iterator[Any]]


def mutants(corpus: list[bytes], tokens: list[bytes]) -> Callable[[Rng], Iterator[bytes]]:
    def found(rng: Rng) -> Iterator[bytes]:
        yield from corpus
        while True:
            yield spliced(rng, corpus, tokens)

    return found


def cut(body: bytes) -> Iterator[bytes]:
    """The same bytes in pieces of any size, which depend on the bytes alone."""
    rng = seeded_rng(zlib.crc32(body))
    at = 0
    while at < len(body):
        to = at + rng.choice((1, 2, 7, 64, 4_096))
        yield body[at:to]
        at = to


@contextmanager
def folder() -> Generator[Path]:
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        yield Path(folder)


@contextmanager
def loop() -> Generator[Callable[[Any], Any]]:
    with asyncio.Runner() as runner:
        yield runner.run


@contextmanager
def awaited(attempt: Callable[[bytes], Any]) -> Generator[Attempt]:
    with loop() as run:
        yield lambda body: run(attempt(body))


@contextmanager
def pure(attempt: Attempt) -> Generator[Attempt]:
    yield attempt
