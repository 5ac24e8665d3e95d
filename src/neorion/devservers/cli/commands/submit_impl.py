"""One run of a script on machines that are made for it."""

import re
import sys
from pathlib import Path
from typing import Final, TypedDict, Unpack

import anyio
from msgspec import Struct

from neorion.devservers.cli.commands.ranks_impl import every_rank, execute_all
from neorion.devservers.cli.options import ClusterSelector
from neorion.devservers.cli.progress import ProgressPrinter
from neorion.devservers.cli.session import parse_timeout, run_with_api
from neorion.devservers.client import CreateRequest, DevServerApi, DistributedRequest, copy_to, wait_ready
from neorion.devservers.model.field_types import DISTRIBUTED_NAME_MAX
from neorion.devservers.model.kube_types import DEVSERVERS
from neorion.keel.base import Id, Invalid, NotFound
from neorion.keel.cli.kit import Output
from neorion.keel.cli.kit.serialize import as_yaml, plain
from neorion.keel.clock import SystemIds

_LAUNCHERS: Final = {".py": "/opt/devserver/bin/train", ".sh": "sh"}
# The output and the exit code stay in the home too.
_RUN: Final = """
cd "$HOME/runs/$1" && shift || exit 1
{ "$@"; echo $? >code; } 2>&1 | tee log
exit "$(cat code)"
"""
# How long the cluster gets to take the deletion after Ctrl-C.
_DELETE_S: Final = 15.0
_SUFFIX: Final = 5


class SubmitOptions(TypedDict):
    """Options of `devctl submit`."""

    name: str
    flavor: str
    image: str
    home_size: str
    time: str
    shared_volume: str
    replicas: int
    nproc_per_node: int | None
    backend: str
    log: Path | None
    keep: bool
    timeout: str
    dry_run: bool


class _RunId(Id):
    """One run of a script."""

    prefix = "run"


class ScriptRun(Struct, frozen=True):
    """A script, its arguments, and the server that it runs on."""

    script: Path
    arguments: tuple[str, ...]
    request: CreateRequest
    log: Path

    @property
    def command(self) -> tuple[str, ...]:
        launcher = _LAUNCHERS[self.script.suffix]
        return ("sh", "-c", _RUN, "sh", self.request.name, launcher, self.script.name, *self.arguments)


def run_of(script: Path, arguments: tuple[str, ...], how: SubmitOptions) -> ScriptRun:
    """The run that the options ask for."""
    if script.suffix not in _LAUNCHERS:
        raise Invalid(
            "devservers.script",
            f"{script.name} is not a script that can be run.",
            hint="Name a file that ends in .py or .sh.",
        )
    name = how["name"] or _name_of(script)
    request = CreateRequest(
        name=name,
        flavor=how["flavor"],
        image=how["image"],
        home_size=how["home_size"],
        time=how["time"],
        shared_volume=how["shared_volume"],
        distributed=DistributedRequest(
            replicas=how["replicas"],
            nproc_per_node=how["nproc_per_node"] or 0,
            backend=how["backend"],
        ),
    )
    return ScriptRun(script, arguments, request, how["log"] or Path(f"{name}.log"))


async def submit(fleet: DevServerApi, out: Output, run: ScriptRun, how: SubmitOptions) -> int:
    if how["dry_run"]:
        out.text(as_yaml(plain(DEVSERVERS.manifest(await fleet.validate(run.request)))))
        return 0
    name, span = run.request.name, parse_timeout(how["timeout"])
    await fleet.create(run.request)
    out.say(f"{name} is being made for {run.script.name}.")
    try:
        await wait_ready(fleet, name, ProgressPrinter(out, fleet.clock), span)
        ranks = await every_rank(fleet, name)
        for rank in ranks:
            await copy_to(rank, name, run.script, f"runs/{name}/")
        sys.stdout.flush()
        # Nothing else is written by this process meanwhile.
        with run.log.open("ab", buffering=0) as log:
            code = await execute_all(fleet, name, run.command, log.fileno())
        out.say(f"{run.script.name} ended with exit code {code}; its output is in {run.log}.")
        return code
    finally:
        if not how["keep"]:
            await _give_back(fleet, out, name)


async def _give_back(fleet: DevServerApi, out: Output, name: str) -> None:
    """Deletes the server, even when the run was cancelled; its homes stay for their retention."""
    with anyio.CancelScope(shield=True), anyio.move_on_after(_DELETE_S) as scope:
        try:
            await fleet.delete(name)
        except NotFound:
            return
        out.say(f"The machines of {name} are given back; its homes are kept for a while.")
    if scope.cancelled_caught:
        out.warn(f"{name} may still run. Delete it: devctl delete {name}")


def _name_of(script: Path) -> str:
    """Name of a run: that of the script, and letters that no other run has."""
    letters = re.sub(r"[^a-z0-9]+", "-", script.stem.lower()).strip("-") or "run"
    suffix = str(SystemIds().new(_RunId))[-_SUFFIX:].lower()
    return f"{letters[: DISTRIBUTED_NAME_MAX - _SUFFIX - 1].rstrip('-')}-{suffix}"


def submit_command(
    out: Output,
    script: Path,
    arguments: tuple[str, ...],
    where: ClusterSelector,
    **how: Unpack[SubmitOptions],
) -> int:
    run = run_of(script, arguments, how)
    return run_with_api(out, where, lambda fleet: submit(fleet, out, run, how))
