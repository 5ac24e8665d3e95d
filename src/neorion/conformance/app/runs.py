"""A run from the command's side: the cluster found, the engine started, the results shown."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import anyio
from msgspec import Struct

from neorion.conformance.adapters.check import COMMON_RIGHTS
from neorion.conformance.adapters.checks import CHECKS
from neorion.conformance.adapters.recording import RecordingApi
from neorion.conformance.adapters.removal import clean_up
from neorion.conformance.adapters.run_folder import RunFolder
from neorion.conformance.adapters.signing import require_signing_key, sign_run
from neorion.conformance.adapters.workspace import Options
from neorion.conformance.app.engine import Engine, Request
from neorion.conformance.cli.tables import RESULTS
from neorion.conformance.decide.explain import OTHER_SUITES
from neorion.conformance.model import (
    AcceleratorProfile,
    CheckResult,
    Level,
    Run,
    Verdict,
    builtin_profile,
    requirement_named,
    requirements,
)
from neorion.conformance.model.profile import parse_profile
from neorion.keel.base import Duration, Id, Invalid, NotFound, UnitError
from neorion.keel.cli.kit import Column, Output, Table
from neorion.keel.cli.kit.progress import progress
from neorion.keel.clock import SystemClock, SystemIds
from neorion.keel.kube.client import Client, connect, find_cluster
from neorion.keel.run import only_error

T = TypeVar("T")


class RunId(Id):
    """The identity of a run; also the value of the label on everything that it creates."""

    prefix = "run"


@dataclass(frozen=True, slots=True)
class Choice:
    """The options of `run`, checked."""

    version: str
    only: frozenset[str]
    options: Options
    folder: Path
    plan: bool
    sign: Path | None

    @classmethod
    def of(cls, choice: Mapping[str, object]) -> "Choice":
        version = str(choice["version"])
        requirements(version)
        only = frozenset(word.strip() for word in str(choice["only"]).split(",") if word.strip())
        for name in sorted(only):
            requirement_named(name, version)
        profile = _profile(str(choice["profile"]))
        image = {"image": str(choice["image"])} if choice["image"] else {}
        options = Options(
            profile,
            **image,
            hardware=bool(choice["hardware"]),
            gateway_class=str(choice["gateway_class"]),
            gang_scheduler=str(choice["gang_scheduler"]),
            prometheus=str(choice["prometheus"]),
            window=_duration("--window", str(choice["window"])),
            patience=_duration("--patience", str(choice["patience"])),
        )
        sign = Path(str(choice["sign"])) if choice["sign"] else None
        if sign is not None:
            require_signing_key(sign)
        return cls(version, only, options, Path(str(choice["folder"])), bool(choice["plan"]), sign)


class Planned(Struct, frozen=True):
    """The plan of a run for one requirement."""

    requirement: str
    level: str
    seconds: int
    creates: tuple[str, ...]
    needs: tuple[str, ...]
    rights: tuple[str, ...]


_PLAN: Final[Table[Planned]] = Table(
    (
        Column("REQUIREMENT", lambda each: each.requirement),
        Column("LEVEL", lambda each: each.level, priority=2),
        Column("SECONDS", lambda each: each.seconds or "", right=True),
        Column("CREATES", lambda each: each.creates, priority=1),
        Column("RIGHTS", lambda each: each.rights, wide=True),
        Column("NEEDS", lambda each: each.needs, wrap=True),
    ),
    name=lambda each: each.requirement,
)


def show_plan(out: Output, choice: Choice) -> int:
    planned = list(_planned(choice))
    out.show(planned, _PLAN)
    total = sum(each.seconds for each in planned)
    out.say(
        f"About {Duration.of(seconds=total)}. Everything is created in namespaces of the run and removed again."
    )
    return 0


def check_cluster(out: Output, choice: Choice, context: str, kubeconfig: Path | None) -> int:
    clock = SystemClock()
    run_id = SystemIds().new(RunId).lower()
    cluster = find_cluster(kubeconfig, context, out.env)
    folder = RunFolder(choice.folder / run_id, clock)
    request = Request(run_id, choice.version, choice.only, cluster.server)
    total = len(requirements(choice.version))

    async def check(client: Client) -> Run:
        engine = Engine(RecordingApi(client, folder), folder, clock, choice.options, CHECKS)
        with progress(out, "conformance", clock, total) as told:

            def tell(result: CheckResult) -> None:
                told.advance()
                out.say(f"{result.requirement}: {result.verdict} after {Duration.of(seconds=result.seconds)}")

            return await engine.run(request, tell, lambda name: told.advance(0, name))

    run = _with_cluster(out, context, kubeconfig, check)
    if choice.sign is not None:
        sign_run(folder.folder, choice.sign)
    out.show(run.results, RESULTS)
    for result in run.results:
        for each in result.left_behind:
            out.warn(
                f"{result.requirement} left something behind: {each} Remove it: neorion conformance cleanup."
            )
    took = Duration.of(seconds=sum(result.seconds for result in run.results))
    out.say(f"The checks took {took}. {OTHER_SUITES}")
    out.say(f"The evidence is in {folder.folder}.")
    return 1 if any(map(_is_bad, run.results)) else 0


def clean(out: Output, run: str, context: str, kubeconfig: Path | None) -> int:
    async def work(client: Client) -> tuple[list[str], list[str]]:
        return await clean_up(RecordingApi(client, _Unrecorded()), SystemClock(), run)

    removed, left = _with_cluster(out, context, kubeconfig, work)
    for each in left:
        out.warn(each)
    out.say(f"Removed {len(removed)} objects." if removed else "There is nothing to remove.")
    return 1 if left else 0


class _Unrecorded:
    """Cleaning up is no evidence."""

    def record(self, kind: str, fields: Mapping[str, object]) -> None:
        """Keeps nothing."""


def _with_cluster(
    out: Output, context: str, kubeconfig: Path | None, work: Callable[[Client], Awaitable[T]]
) -> T:
    cluster = find_cluster(kubeconfig, context, out.env)

    async def main() -> T:
        async with connect(cluster, "neorion-conformance") as client:
            return await work(client)

    try:
        return anyio.run(main)
    except BaseExceptionGroup as group:
        raise only_error(group) from None


def _planned(choice: Choice) -> Iterable[Planned]:
    for each in requirements(choice.version):
        if choice.only and each.id not in choice.only:
            continue
        check = CHECKS.get(each.id)
        if check is None:
            yield Planned(each.id, each.level, 0, (), ("No check is implemented yet.",), ())
        else:
            rights = (*COMMON_RIGHTS, *check.rights)
            yield Planned(
                each.id, each.level, check.plan.seconds, check.plan.creates, check.plan.needs, rights
            )


def _is_bad(result: CheckResult) -> bool:
    return result.verdict is Verdict.ERROR or (result.verdict is Verdict.FAIL and result.level == Level.MUST)


def _profile(text: str) -> AcceleratorProfile:
    path = Path(text)
    if not (path.suffix or path.is_file()):
        return builtin_profile(text)
    try:
        return parse_profile(path.read_text("utf-8"))
    except FileNotFoundError:
        raise NotFound(
            "conformance.no_profile", f"There is no profile file {path}.", hint="Use nvidia, amd or example."
        ) from None
    except ValueError as error:
        raise Invalid(
            "conformance.profile_form",
            f"{path} is not a profile: {error}.",
            hint="It needs name and resource.",
        ) from None


def _duration(option: str, text: str) -> Duration:
    try:
        return Duration.parse(text)
    except UnitError:
        raise Invalid(
            "conformance.duration",
            f'{option} is "{text}", which is not a length of time.',
            hint="Write 10s or 5m.",
        ) from None
