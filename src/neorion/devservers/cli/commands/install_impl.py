"""The commands `devctl install` and `devctl uninstall`."""

from typing import Final, TypedDict, Unpack

from neorion.devservers.adapters.install import (
    ChangeType,
    ImageOverrides,
    Installer,
    Overlay,
    PlannedChange,
    bundle,
)
from neorion.devservers.cli.options import ClusterSelector
from neorion.devservers.cli.session import parse_timeout, run_with_api
from neorion.keel.cli.kit import Column, Output, Table, Tone, confirm
from neorion.keel.kube import ObjectKey
from neorion.keel.kube.client import Client
from neorion.keel.kube.core import STATEFUL_SET

_OPERATOR: Final = ObjectKey("devservers-system", "devservers-operator")
_BASTION: Final = ObjectKey("devservers-system", "devservers-bastion")
_TONES: Final = {
    ChangeType.CREATED: Tone.GOOD,
    ChangeType.CHANGED: Tone.WARNING,
    ChangeType.REMOVED: Tone.BAD,
}
STEPS: Final[Table[PlannedChange]] = Table(
    (
        Column("KIND", lambda one: one.kind),
        Column("NAMESPACE", lambda one: one.namespace),
        Column("NAME", lambda one: one.name),
        Column(
            "OUTCOME",
            lambda one: one.outcome.value,
            tone=lambda one: _TONES.get(one.outcome, Tone.QUIET),
        ),
    ),
    name=lambda one: f"{one.kind.lower()}/{one.name}",
    empty="There is nothing to do.",
)


class InstallOptions(TypedDict):
    """Options of `devctl install`."""

    image: str
    tools_image: str
    console_image: str
    ssh: bool
    efs: str
    kueue: str
    force: bool
    wait: bool
    timeout: str
    dry_run: bool


class UninstallOptions(TypedDict):
    """Options of `devctl uninstall`."""

    purge: bool
    timeout: str
    yes: bool
    dry_run: bool


async def install(client: Client, out: Output, overlay: str, wanted: InstallOptions) -> None:
    span = parse_timeout(wanted["timeout"])
    images = ImageOverrides(wanted["image"], wanted["tools_image"], wanted["ssh"], wanted["console_image"])
    manifests = bundle(Overlay(overlay), images, wanted["efs"], wanted["kueue"])
    installer = Installer(client)
    if wanted["dry_run"]:
        steps = await installer.plan(manifests, force=wanted["force"])
        out.show(news(steps), STEPS)
        return
    steps = await installer.install(manifests, force=wanted["force"])
    out.show(news(steps), STEPS)
    if any(step.outcome is ChangeType.LEFT_OUT for step in steps):
        out.warn("This cluster has no Prometheus operator: nothing reads the operator's figures.")
    if wanted["wait"]:
        if news(steps):
            out.say("The operator and the bastion are starting.")
        await installer.wait(_OPERATOR, span)
        await installer.wait(_BASTION, span, STATEFUL_SET)
        out.say("Development servers are installed. Next: devctl admin user add USER")


async def uninstall(client: Client, out: Output, how: UninstallOptions) -> None:
    span = parse_timeout(how["timeout"])
    installer = Installer(client)
    standing = await installer.standing(purge=how["purge"])
    users = await installer.users()
    if how["dry_run"] or not standing:
        out.show(
            [PlannedChange(kind.name, key.name, key.namespace, ChangeType.REMOVED) for kind, key in standing],
            STEPS,
        )
        _tell_of(users, out)
        return
    kept = "" if how["purge"] else " Servers and homes stay."
    confirm(f"Remove development servers from {client.transport.cluster.server}?{kept}", yes=how["yes"])
    steps = await installer.uninstall(purge=how["purge"], patience=span)
    out.show(steps, STEPS)
    _tell_of(users, out)


def _tell_of(users: list[str], out: Output) -> None:
    if users:
        some = ", ".join(users[:3]) + (", …" if len(users) > 3 else "")
        out.warn(f"The guards stay, for users keep their rights: {some}.")
        out.say("To be rid of them too: devctl admin user remove USER for each, then devctl uninstall again.")


def news(steps: tuple[PlannedChange, ...]) -> list[PlannedChange]:
    return [step for step in steps if step.outcome is not ChangeType.UNCHANGED]


def install_command(
    out: Output, overlay: str, where: ClusterSelector, **wanted: Unpack[InstallOptions]
) -> None:
    run_with_api(out, where, lambda fleet: install(fleet.client, out, overlay, wanted))


def uninstall_command(out: Output, where: ClusterSelector, **how: Unpack[UninstallOptions]) -> None:
    run_with_api(out, where, lambda fleet: uninstall(fleet.client, out, how))
