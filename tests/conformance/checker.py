"""One check on one cluster, sound or broken."""

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio

from neorion.conformance.adapters.check import Check
from neorion.conformance.adapters.checks import CHECKS
from neorion.conformance.adapters.recording import RecordingApi
from neorion.conformance.adapters.run_folder import RunFolder
from neorion.conformance.adapters.workspace import Options
from neorion.conformance.app.engine import Engine, Request
from neorion.conformance.model import VERSIONS, CheckResult, Run, Verdict, builtin_profile, requirement_ids
from neorion.conformance.ports import Recorder
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock
from neorion.keel.kube import ALL, Kind, Selector
from neorion.keel.kube.client import Client

Json = dict[str, Any]
Change = Callable[[Kind[Any], Json], Json]
Reading = Callable[[str, str], str]
OPTIONS = Options(builtin_profile("nvidia"), window=Duration.of(seconds=2), patience=Duration.of(seconds=20))


def unchanged(_: Kind[Any], manifest: Json) -> Json:
    return manifest


def as_read(_: str, text: str) -> str:
    return text


@dataclass(frozen=True)
class Fault:
    """How a platform is broken: what becomes of the objects that it is given, and of the texts that it serves.

    `seen` changes objects that are read. `text` gets the path of a text and the text.
    """

    made: Change = unchanged
    seen: Change = unchanged
    text: Reading = as_read


SOUND = Fault()


class BrokenApi(RecordingApi):
    """A platform that treats what it is given otherwise than it should."""

    def __init__(self, client: Client, recorder: Recorder, fault: Fault) -> None:
        super().__init__(client, recorder)
        self._fault = fault

    async def create(self, kind: Kind[Any], manifest: Mapping[str, object]) -> Json:
        return await super().create(kind, self._fault.made(kind, dict(manifest)))

    async def merge(
        self,
        kind: Kind[Any],
        name: str,
        body: Mapping[str, object],
        namespace: str = "",
        subresource: str = "",
    ) -> Json:
        changed = self._fault.made(kind, {"metadata": {"name": name}, **body})
        changed = {**changed, "metadata": body.get("metadata", {})}
        return await super().merge(kind, name, changed, namespace, subresource)

    async def get(self, kind: Kind[Any], name: str, namespace: str = "") -> Json:
        return self._fault.seen(kind, await super().get(kind, name, namespace))

    async def list(self, kind: Kind[Any], namespace: str = "", select: Selector = ALL) -> list[Json]:
        return [self._fault.seen(kind, each) for each in await super().list(kind, namespace, select)]

    async def read_text(self, path: str) -> str:
        return self._fault.text(path, await super().read_text(path))

    async def logs(self, pod: str, namespace: str, container: str) -> str:
        return self._fault.text(f"logs/{pod}/{container}", await super().logs(pod, namespace, container))

    @asynccontextmanager
    async def watch(
        self, kind: Kind[Any], namespace: str, select: Selector
    ) -> AsyncGenerator[AsyncIterator[tuple[str, Json]]]:
        async with super().watch(kind, namespace, select) as events:

            async def changed() -> AsyncIterator[tuple[str, Json]]:
                async for name, thing in events:
                    yield name, self._fault.seen(kind, thing) if thing else thing

            yield changed()


@dataclass
class Checker:
    """Runs checks, each run into a folder of its own."""

    client: Client
    folder: Path
    options: Options = OPTIONS
    runs: int = field(default=0)

    def engine(self, fault: Fault = SOUND, checks: dict[str, Check] | None = None) -> Engine:
        clock = SystemClock()
        self.runs += 1
        folder = RunFolder(self.run_folder, clock)
        api = BrokenApi(self.client, folder, fault)
        return Engine(api, folder, clock, self.options, checks or CHECKS)

    @property
    def run_folder(self) -> Path:
        return self.folder / f"run-{self.runs}"

    def with_options(self, **changed: Any) -> "Checker":
        return replace(self, options=replace(self.options, **changed))

    async def run(self, requirement: str, fault: Fault = SOUND) -> CheckResult:
        run = await self.whole(requirement, fault)
        return next(each for each in run.results if each.requirement == requirement)

    async def verdicts(self, requirement: str, faults: Mapping[str, Fault]) -> dict[str, CheckResult]:
        """The results of platforms with these faults, all at once."""
        found: dict[str, CheckResult] = {}

        async def one(name: str, fault: Fault) -> None:
            checker = replace(self, folder=self.folder / requirement / name)
            found[name] = await checker.run(requirement, fault)

        async with anyio.create_task_group() as tasks:
            for name, fault in faults.items():
                tasks.start_soon(one, name, fault)
        return found

    async def whole(self, requirement: str, fault: Fault = SOUND) -> Run:
        return await self.engine(fault).run(self.request(requirement), lambda _: None, lambda _: None)

    def request(self, *only: str) -> Request:
        digest = hashlib.sha256(f"{self.folder}{self.runs}".encode()).hexdigest()[:12]
        version = next(version for version in VERSIONS if set(only) <= set(requirement_ids(version)))
        return Request(f"run-{digest}", version, frozenset(only), "test")


# Platforms by name: what is broken, the verdict that has to follow, and words of its reason.
Rows = Mapping[str, tuple[Fault, Verdict, str]]


async def conclude_as(checker: Checker, requirement: str, rows: Rows) -> None:
    """Each platform gets its verdict with its reason, and is left clean. All of them are checked at once."""
    results = await checker.verdicts(requirement, {name: row[0] for name, row in rows.items()})
    found = {name: (result.verdict, result.left_behind) for name, result in results.items()}
    reasons = {name: result.reason for name, result in results.items()}
    assert found == {name: (verdict, ()) for name, (_, verdict, _) in rows.items()}, reasons
    for name, (_, _, reason) in rows.items():
        assert reason in reasons[name], name
