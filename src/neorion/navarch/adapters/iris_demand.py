"""The port `DemandSource` over the queue of an iris controller, by its public calls in JSON."""

import asyncio
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from neorion.keel.base import Denied, Duration, Invalid, Retry
from neorion.keel.config import SecretValue
from neorion.keel.http.client import FAILURES, Request, Transport, fetch
from neorion.navarch.decide.gpu_packing import filled
from neorion.navarch.model import Demand, Gang
from neorion.navarch.ports import DemandSource

_LIST: Final = "/neorion.iris.v1.JobService/List"
_TIMEOUT_S: Final = 10.0
_ASK_AGAIN: Final = Duration.of(seconds=5)
# Iris gives at most this many jobs at once; a queue longer than all pages together asks for more than any pool has.
_PAGE: Final = 500
_PAGES_MAX: Final = 40
# A full page of jobs is some hundred kilobytes.
_ANSWER_BYTES_MAX: Final = 16 * 2**20


class _Resources(msgspec.Struct, frozen=True):
    """Resources of each task of a job."""

    gpus: int = 0


class _Job(msgspec.Struct, frozen=True):
    """A job that is not over: its tasks by state."""

    tasks: dict[str, int] = {}
    resources: _Resources = _Resources()
    gang: str = ""


class _Page(msgspec.Struct, frozen=True):
    """Some of the jobs, and where the next page begins."""

    jobs: list[_Job] = []
    next: str = ""


@dataclass(frozen=True, slots=True)
class IrisSettings:
    """Where the controller answers, who asks, and the pool whose nodes run its tasks."""

    url: str
    pool: str
    token: SecretValue | None = None


class IrisDemand:
    """Adds the tasks of an Iris to what else is known of its pool. `gpus` is what a node of the pool has; 0 is not known.

    Tasks without GPUs are not counted for a pool that has some: they run beside the others, and buy nothing.
    """

    def __init__(self, settings: IrisSettings, transport: Transport, other: DemandSource, gpus: int) -> None:
        self._settings = settings
        self._transport = transport
        self._other = other
        self._gpus = gpus

    async def demand(self, pool: str) -> Demand:
        known = await self._other.demand(pool)
        if pool != self._settings.pool:
            return known
        pending, running = 0, 0
        held: list[int] = []
        gangs: list[Gang] = []
        for job in await self._jobs():
            gpus = job.resources.gpus
            if self._gpus and not gpus:
                continue
            waiting, runs = job.tasks.get("pending", 0), job.tasks.get("running", 0)
            pending, running = pending + waiting, running + runs
            held += [gpus] * runs
            gangs += [(gpus,) * waiting] if job.gang and waiting else [(gpus,)] * waiting
        return replace(
            known,
            pending=pending + (known.pending or 0),
            running=running + (known.running or 0),
            busy={**known.busy, **self._busy(held)},
            waiting=(*known.waiting, *gangs),
        )

    def _busy(self, held: list[int]) -> dict[str, int]:
        """Iris does not tell which nodes its tasks are on."""
        used = filled(held, self._gpus) if self._gpus else ()
        return {f"iris {number}": gpus for number, gpus in enumerate(used)}

    async def _jobs(self) -> list[_Job]:
        found: list[_Job] = []
        after = ""
        for _ in range(_PAGES_MAX):
            page = await self._page(after)
            found += page.jobs
            after = page.next
            if not after:
                break
        return found

    async def _page(self, after: str) -> _Page:
        asked = {"states": ["pending", "running"], "limit": _PAGE, "after": after}
        headers = [("Content-Type", "application/json"), ("Connect-Protocol-Version", "1")]
        if self._settings.token is not None:
            headers.append(("Authorization", f"Bearer {self._settings.token.reveal()}"))
        request = Request("POST", _LIST, headers, msgspec.json.encode(asked))
        url = self._settings.url.rstrip("/")
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                head, body = await fetch(self._transport, request, _ANSWER_BYTES_MAX)
        except FAILURES as error:
            raise Retry(
                "navarch.iris_unreachable",
                f"Iris at {url} does not answer: {type(error).__name__}.",
                hint="Check server.iris.url.",
                after=_ASK_AGAIN,
            ) from None
        _check(url, head.status)
        return _decoded(url, body)


def _check(url: str, status: int) -> None:
    if status == 200:
        return
    if status in (401, 403):
        raise Denied(
            "navarch.iris_denied", f"Iris at {url} answers {status}.", hint="Check server.iris.token_env."
        )
    raise Retry(
        "navarch.iris_failed", f"Iris at {url} answers {status}.", hint="Read its log.", after=_ASK_AGAIN
    )


def _decoded(url: str, body: bytes) -> _Page:
    try:
        return msgspec.json.decode(body, type=_Page)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Invalid(
            "navarch.iris_answer",
            f"{url} answers something else than a list of jobs: {error}.",
            hint="Name the address of an Iris controller.",
        ) from None
