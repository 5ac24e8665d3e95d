"""Commands about the cluster: its flavors, its state, and the user's rights."""

from collections import Counter
from collections.abc import Iterator
from typing import Final, cast

import click
import msgspec
from msgspec import Struct

from neorion.devservers.cli.flavor_table import FLAVORS, FlavorRecord
from neorion.devservers.cli.options import ClusterSelector
from neorion.devservers.cli.session import run_with_api
from neorion.devservers.cli.tables import phase
from neorion.devservers.client import DevServerApi, resolve_context, user_name
from neorion.keel.base import Denied, Error, Finding, NotFound, Severity
from neorion.keel.cli import Format
from neorion.keel.cli.kit import Column, Output, Table, show_findings
from neorion.keel.kube.core import (
    ACCESS_REVIEW,
    ResourceAttributes,
    SelfSubjectAccessReview,
    SelfSubjectAccessReviewSpec,
)

_GROUP: Final = "devservers.io"
# What each verb of devctl needs: the words for a person, and the right in Kubernetes' own.
_NEEDS: Final = (
    ("see your servers", ResourceAttributes("list", "devservers", _GROUP)),
    ("watch your servers", ResourceAttributes("watch", "devservers", _GROUP)),
    ("create servers", ResourceAttributes("create", "devservers", _GROUP)),
    ("change servers", ResourceAttributes("patch", "devservers", _GROUP)),
    ("delete servers", ResourceAttributes("delete", "devservers", _GROUP)),
    ("find their machines", ResourceAttributes("list", "pods")),
    ("run commands in them", ResourceAttributes("create", "pods", "", "exec")),
    ("open streams into them", ResourceAttributes("get", "pods", "", "exec")),
    ("forward their ports", ResourceAttributes("create", "pods", "", "portforward")),
    ("read their logs", ResourceAttributes("get", "pods", "", "log")),
    ("read their events", ResourceAttributes("list", "events", "events.k8s.io")),
)
_FLAVORS: Final = (
    "list flavors, which belong to the whole cluster",
    ResourceAttributes("list", "devserverflavors", _GROUP),
)
# A user who may do this is more than a user, which is worth knowing.
_TOO_MUCH: Final = ("create namespaces", ResourceAttributes("create", "namespaces"))


async def flavors(fleet: DevServerApi, out: Output, cloud: str) -> None:
    records = [FlavorRecord.of(one) for one in await fleet.flavors()]
    out.show([one for one in records if not cloud or one.cloud == cloud], FLAVORS)


class ClusterSummary(Struct, frozen=True):
    """Where a user is, and what is there."""

    cluster: str
    version: str
    namespace: str
    user: str
    servers: dict[str, int]
    flavors: tuple[str, ...]


_SURROUNDINGS: Final[Table[ClusterSummary]] = Table(
    (
        Column("Cluster", lambda one: one.cluster),
        Column("Kubernetes", lambda one: one.version),
        Column("Namespace", lambda one: one.namespace),
        Column("User", lambda one: one.user),
        Column(
            "Servers", lambda one: [f"{count} {word}" for word, count in one.servers.items()] or "none yet"
        ),
        Column("Flavors", lambda one: one.flavors),
    ),
    name=lambda one: one.namespace,
)


async def status(fleet: DevServerApi, out: Output) -> None:
    version = msgspec.json.decode(await fleet.client.read("/version"), type=dict[str, str])
    servers = await fleet.servers()
    found = ClusterSummary(
        cluster=fleet.client.transport.cluster.server,
        version=version.get("gitVersion", ""),
        namespace=fleet.namespace,
        user=user_name(out.env),
        servers=dict(sorted(Counter(phase(one) for one in servers).items())),
        flavors=tuple(one.meta.name for one in await fleet.flavors()),
    )
    out.show_one(found, _SURROUNDINGS)


class CommandSummary(Struct, frozen=True):
    """One command of devctl."""

    command: str
    about: str


class ClientInfo(Struct, frozen=True):
    """Commands of devctl, and the cluster, namespace and user that they would use."""

    cluster: str
    namespace: str
    user: str
    commands: tuple[CommandSummary, ...]


_ABOUT: Final[Table[ClientInfo]] = Table(
    (
        Column("Cluster", lambda one: one.cluster),
        Column("Namespace", lambda one: one.namespace),
        Column("User", lambda one: one.user),
    ),
    name=lambda one: one.namespace,
)
_ABILITIES: Final[Table[CommandSummary]] = Table(
    (Column("COMMAND", lambda one: one.command), Column("WHAT IT DOES", lambda one: one.about, wrap=True)),
    name=lambda one: one.command,
)


def info(out: Output, where: ClusterSelector, ctx: click.Context) -> None:
    commands = tuple(_abilities(ctx.parent or ctx))
    try:
        place = resolve_context(where.namespace, where.context, where.kubeconfig, out.env)
        about = ClientInfo(place.cluster.server, place.namespace, user_name(out.env), commands)
    except Error as error:
        about = ClientInfo(error.sentence, where.namespace, user_name(out.env), commands)
    out.show_one(about, _ABOUT)
    if out.shared.output in {Format.TABLE, Format.WIDE}:
        out.text("\n")
        out.show(commands, _ABILITIES)


def _abilities(ctx: click.Context) -> Iterator[CommandSummary]:
    group = cast("click.Group", ctx.command)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if command is not None:
            yield CommandSummary(name, command.get_short_help_str(limit=100))


async def check(fleet: DevServerApi, out: Output) -> int:
    findings = [await _answers(fleet), await _installed(fleet)]
    for words, right in _NEEDS:
        placed = msgspec.structs.replace(right, namespace=fleet.namespace)
        findings.append(await _needed(fleet, f"{words} in {fleet.namespace}", placed))
    findings.append(await _needed(fleet, *_FLAVORS))
    words, right = _TOO_MUCH
    more = await _may(fleet, right)
    findings.append(
        Finding(
            Severity.WARNING if more else Severity.INFO,
            "devservers.access",
            "cluster",
            f"You may {'also' if more else 'not'} {words}.",
            "Servers need no such right; use an account that has only its own namespace." if more else "",
        )
    )
    return show_findings(out, findings)


async def _answers(fleet: DevServerApi) -> Finding:
    version = msgspec.json.decode(await fleet.client.read("/version"), type=dict[str, str])
    sentence = f"{fleet.client.transport.cluster.server} answers: Kubernetes {version.get('gitVersion', '')}."
    return Finding(Severity.INFO, "devservers.access", "cluster", sentence)


async def _installed(fleet: DevServerApi) -> Finding:
    code, subject = "devservers.access", "devservers"
    try:
        flavors = await fleet.flavors()
    except NotFound as error:
        return Finding(Severity.ERROR, code, subject, error.sentence, error.hint)
    except Denied as error:
        return Finding(Severity.WARNING, code, subject, error.sentence, error.hint)
    return Finding(
        Severity.INFO, code, subject, f"Development servers are installed, with {len(flavors)} flavors."
    )


async def _needed(fleet: DevServerApi, words: str, right: ResourceAttributes) -> Finding:
    subject = "/".join(filter(None, (right.resource, right.subresource)))
    if await _may(fleet, right):
        return Finding(Severity.INFO, "devservers.access", subject, f"You may {words}.")
    hint = f"Ask for the verb {right.verb} on {subject}."
    return Finding(Severity.ERROR, "devservers.access", subject, f"You may not {words}.", hint)


async def _may(fleet: DevServerApi, right: ResourceAttributes) -> bool:
    asked = SelfSubjectAccessReview(spec=SelfSubjectAccessReviewSpec(right))
    return (await fleet.client.create(ACCESS_REVIEW, asked)).status.allowed


def flavors_command(out: Output, where: ClusterSelector, *, aws: bool) -> None:
    run_with_api(out, where, lambda fleet: flavors(fleet, out, "aws" if aws else ""))


def status_command(out: Output, where: ClusterSelector) -> None:
    run_with_api(out, where, lambda fleet: status(fleet, out))


def info_command(out: Output, where: ClusterSelector) -> None:
    info(out, where, click.get_current_context())


def test_command(out: Output, where: ClusterSelector) -> int:
    return run_with_api(out, where, lambda fleet: check(fleet, out))
