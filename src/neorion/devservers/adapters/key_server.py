"""The public keys of people by their logins, over HTTPS: GitHub and servers that answer as it does."""

import re
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from neorion.devservers.model.user import FETCHED_KEYS_MAX, FetchedKeys
from neorion.keel.base import Duration, Invalid
from neorion.keel.clock import Clock

_KEPT: Final = Duration.of(minutes=5)
# After an answer that was none.
_AGAIN: Final = Duration.of(seconds=30)
_PATIENCE_S: Final = 10.0
_SIZE_MAX: Final = 64 * 1024
_KEY_MAX: Final = 4096
_KEY: Final = re.compile(r"(ssh-|ecdsa-|sk-)[a-z0-9@.-]+ [A-Za-z0-9+/=]+( .*)?")
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_PLACE: Final = "{login}"


class HttpKeyServer:
    """Answers are kept for five minutes. Redirects are not followed: they would let others name keys."""

    def __init__(self, template: str, clock: Clock) -> None:
        self._template = _checked(template)
        self._clock = clock
        self._kept: dict[str, tuple[float, FetchedKeys]] = {}

    async def keys(self, login: str) -> FetchedKeys:
        now = self._clock.monotonic()
        until, known = self._kept.get(login, (now, FetchedKeys()))
        if now < until:
            return known
        found = await self._fetch(login)
        self._kept[login] = (now + (_AGAIN if found.problem else _KEPT).seconds, found)
        return found

    async def _fetch(self, login: str) -> FetchedKeys:
        url = self._template.replace(_PLACE, login)
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_PATIENCE_S)) as session,
                session.get(url, allow_redirects=False) as answer,
            ):
                if answer.status == 404:
                    return FetchedKeys()
                if answer.status != 200:
                    return FetchedKeys(problem=f"The key server answered {answer.status} for {login}.")
                content = await answer.content.read(_SIZE_MAX + 1)
                while len(content) <= _SIZE_MAX and (more := await answer.content.read(_SIZE_MAX)):
                    content += more
        except (aiohttp.ClientError, TimeoutError) as error:
            return FetchedKeys(problem=f"The key server cannot be reached: {type(error).__name__}.")
        if len(content) > _SIZE_MAX:
            return FetchedKeys(problem=f"The key server answered more than {_SIZE_MAX} bytes for {login}.")
        return FetchedKeys(tuple(_lines(content)))


def _lines(content: bytes) -> list[str]:
    """The lines that are public keys, each once. A page that is none of them has no keys."""
    lines = dict.fromkeys(line.strip() for line in content.decode(errors="replace").splitlines())
    return [line for line in lines if len(line) <= _KEY_MAX and _KEY.fullmatch(line)][:FETCHED_KEYS_MAX]


def _checked(template: str) -> str:
    parts = urlsplit(template)
    secure = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    if not secure or template.count(_PLACE) != 1 or _PLACE in parts.netloc:
        raise Invalid(
            "devservers.keys_url",
            f'"{template[:200]}" is not the address of a key server.',
            hint="Write an https address with {login} in its path, as in https://github.com/{login}.keys.",
        )
    return template
