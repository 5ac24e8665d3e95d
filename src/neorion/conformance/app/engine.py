"""Runs checks one after the other, records what they conclude, and always cleans up."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import anyio
import msgspec

from neorion.conformance.adapters.check import COMMON_RIGHTS, Check
from neorion.conformance.adapters.recording import RecordingApi
from neorion.conformance.adapters.rights import require_rights
from neorion.conformance.adapters.run_folder import RunFolder
from neorion.conformance.adapters.workspace import Options, Workspace
from neorion.conformance.decide.explain import method_of
from neorion.conformance.decide.verdict import conclude, disturbed
from neorion.conformance.model import CheckResult, Outcome, Requirement, Run, Verdict, requirements
from neorion.keel.base import Duration, Error, Instant
from neorion.keel.clock import Clock
from neorion.keel.run import only_error

# A check that hangs is ended: its own waits are all shorter.
CHECK_MOST = Duration.of(minutes=30)
_CLEAN_UP_MOST = Duration.of(minutes=3)

Told = Callable[[CheckResult], None]


@dataclass(frozen=True, slots=True)
class Request:
    """A version, and the requirements of it to check: some or all."""

    id: str
    version: str
    only: frozenset[str]
    server: str

    def chosen(self, requirement: str) -> bool:
        return not self.only or requirement in self.only


class Engine:
    """One run. `checks` are those that are implemented, by requirement."""

    def __init__(
        self, api: RecordingApi, folder: RunFolder, clock: Clock, options: Options, checks: dict[str, Check]
    ) -> None:
        self._api = api
        self._folder = folder
        self._clock = clock
        self._options = options
        self._checks = checks

    async def run(self, request: Request, tell: Told, begin: Callable[[str], None]) -> Run:
        """All requirements of the version. Cancelled, it cleans up and still seals what it has."""
        started = self._clock.now()
        wanted = requirements(request.version)
        kubernetes = str((await self._api.read("/version")).get("gitVersion", ""))
        self._folder.record(
            "run",
            {
                "id": request.id,
                "version": request.version,
                "kubernetes": kubernetes,
                "server": request.server,
            },
        )
        await require_rights(self._api, self.rights(wanted, request))
        results: list[CheckResult] = []
        try:
            for each in wanted:
                begin(each.id)
                result = await self._result(each, request)
                self._keep(result, results)
                tell(result)
        except BaseException:
            self._seal(request, kubernetes, started, results, interrupted=True)
            raise
        return self._seal(request, kubernetes, started, results, interrupted=False)

    def rights(self, wanted: Iterable[Requirement], request: Request) -> list[str]:
        """The rights of the chosen checks."""
        found = [
            self._checks[each.id] for each in wanted if request.chosen(each.id) and each.id in self._checks
        ]
        return [*COMMON_RIGHTS, *(right for check in found for right in check.rights)] if found else []

    def _keep(self, result: CheckResult, results: list[CheckResult]) -> None:
        results.append(result)
        self._folder.record("result", msgspec.to_builtins(result))

    def _seal(
        self,
        request: Request,
        kubernetes: str,
        started: Instant,
        results: Sequence[CheckResult],
        *,
        interrupted: bool,
    ) -> Run:
        finished = str(self._clock.now())
        run = Run(
            request.id, request.version, str(started), finished, kubernetes, request.server,
            self._options.profile.name, tuple(results), {}, "", interrupted,
        )  # fmt: skip
        return self._folder.finish(run)

    async def _result(self, requirement: Requirement, request: Request) -> CheckResult:
        if not request.chosen(requirement.id):
            return _skipped(requirement, "Left out by --only.")
        check = self._checks.get(requirement.id)
        if check is None:
            needs = method_of(requirement.id).needs
            return _skipped(requirement, f"No check is implemented yet. It would need: {needs}")
        began = self._clock.monotonic()
        workspace = self._workspace(requirement, request)
        self._folder.record("check", {"requirement": requirement.id, "namespace": workspace.namespace})
        outcome, error = Outcome(), ""
        left: list[str] = []
        before = len(self._api.disturbances)
        try:
            with anyio.fail_after(CHECK_MOST.seconds):
                outcome = await _watched_over(check, workspace)
            outcome = msgspec.structs.replace(outcome, disturbed=disturbed(self._api.disturbances[before:]))
        except TimeoutError:
            error = f"The check did not end within {CHECK_MOST}."
        except Error as problem:
            error = f"{problem.sentence} ({problem.code})"
        except (AttributeError, LookupError, TypeError, ValueError) as problem:
            # An answer of a form that the check does not expect, from a broken or hostile server.
            error = (
                f"The cluster's answer has an unexpected form: {type(problem).__name__}: {str(problem)[:200]}"
            )
        finally:
            left = await self._close(workspace)
        return self._concluded(requirement, outcome, error, left, self._clock.monotonic() - began)

    def _workspace(self, requirement: Requirement, request: Request) -> Workspace:
        # Of the id's random end: its beginning is the time, which many runs share.
        name = f"conformance-{requirement.id.replace('_', '-')}-{request.id[-8:].lower()}"
        return Workspace(self._api, self._clock, request.id.lower(), name[:63], self._options)

    async def _close(self, workspace: Workspace) -> list[str]:
        left: list[str] = []
        with anyio.move_on_after(_CLEAN_UP_MOST.seconds, shield=True) as limit:
            left = await workspace.close()
        if limit.cancelled_caught:
            left = [f"Cleaning up {workspace.namespace} took longer than {_CLEAN_UP_MOST}."]
        return left

    def _concluded(
        self, requirement: Requirement, outcome: Outcome, error: str, left: Sequence[str], seconds: float
    ) -> CheckResult:
        verdict, reason = (Verdict.ERROR, error) if error else conclude(outcome)
        return CheckResult(
            requirement.id, requirement.level, verdict, reason, outcome, round(seconds, 3), tuple(left)
        )


async def _watched_over(check: Check, workspace: Workspace) -> Outcome:
    """The outcome of a check, with a watch beside it that notices when the API server is away."""
    outcome = Outcome()
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(workspace.watch_over)
            outcome = await check.run(workspace)
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise only_error(group) from None
    return outcome


def _skipped(requirement: Requirement, reason: str) -> CheckResult:
    return CheckResult(requirement.id, requirement.level, Verdict.SKIP, reason, Outcome())
