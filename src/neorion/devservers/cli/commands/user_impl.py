"""The commands `devctl admin user`."""

import os
import shlex
from pathlib import Path
from typing import Any, Final, TypedDict, Unpack

from neorion.devservers.adapters.users import TenantManager, User, UserRequest, kubeconfig, login_kubeconfig
from neorion.devservers.cli.commands.install_impl import STEPS, news
from neorion.devservers.cli.humanize import age, moment
from neorion.devservers.cli.options import ClusterSelector
from neorion.devservers.cli.session import parse_timeout, run_with_api
from neorion.devservers.client.create_request import public_key
from neorion.devservers.model.user import UserQuota
from neorion.keel.base import Duration, Invalid
from neorion.keel.cli import Format
from neorion.keel.cli.kit import Column, Output, Table, confirm
from neorion.keel.cli.kit.serialize import as_json, as_yaml
from neorion.keel.kube.client import Client

# The controller manager looks for new kinds every half minute.
_PROVISIONED: Final = Duration.of(minutes=2)


class RemoveUserOptions(TypedDict):
    """Options of `devctl admin user remove`."""

    with_homes: bool
    timeout: str
    yes: bool
    dry_run: bool


class KubeconfigOptions(TypedDict):
    """The way in that a kubeconfig holds."""

    time: str
    token_file: Path | None
    login: str


class UserOptions(TypedDict):
    """The options of `admin user add`."""

    ssh_key: tuple[str, ...]
    from_file: Path | None
    github: str | None
    group: tuple[str, ...]
    queue: str | None
    servers: int
    cpu: str
    memory: str
    gpus: int
    storage: str


async def add(client: Client, out: Output, name: str, request: UserOptions, *, dry_run: bool) -> None:
    keys, file = request["ssh_key"], request["from_file"]
    files = (*(Path(key) for key in keys if not _is_key(key)), *((file,) if file is not None else ()))
    lines = (*map(public_key, filter(_is_key, keys)), *(line for one in files for line in _keys_in(one)))
    quota = UserQuota(
        servers=request["servers"],
        cpu=request["cpu"],
        memory=request["memory"],
        gpus=request["gpus"],
        storage=request["storage"],
    )
    users = TenantManager(client)
    asked = UserRequest(quota, lines or None, request["group"] or None, request["github"], request["queue"])
    steps = await users.add(name, asked, dry_run=dry_run)
    out.show(news(steps), STEPS)
    if dry_run:
        return
    await users.wait_provisioned(name, _PROVISIONED)
    out.say(f"{name} is provisioned. Next: devctl admin user kubeconfig {name} > {name}.kubeconfig")


async def refresh(client: Client, out: Output, names: tuple[str, ...], *, dry_run: bool) -> None:
    users = TenantManager(client)
    known = names or [one.name for one in await users.all()]
    steps = [step for name in known for step in await users.refresh(name, dry_run=dry_run)]
    out.show(news(tuple(steps)), STEPS)
    for step in () if dry_run else steps:
        await users.wait_provisioned(step.name, _PROVISIONED)


async def suspend(client: Client, out: Output, name: str, *, suspended: bool) -> None:
    users = TenantManager(client)
    await users.suspend(name, suspended=suspended)
    await users.wait_provisioned(name, _PROVISIONED)
    kept = "Servers and volumes stay." if suspended else "Tokens from before stay worthless."
    out.say(f"{name} is {'suspended' if suspended else 'active again'}. {kept}")


async def listed(client: Client, out: Output) -> None:
    now = client.transport.clock.now()
    table: Table[User] = Table(
        (
            Column("USER", lambda one: one.name),
            Column("NAMESPACE", lambda one: one.namespace),
            Column("SERVERS", lambda one: one.servers, right=True),
            Column("HOMES", lambda one: one.homes, right=True),
            Column("KEYS", lambda one: one.keys, right=True),
            Column("STATE", lambda one: one.state),
            Column("AGE", lambda one: age(now, moment(one.created)), right=True),
        ),
        name=lambda one: one.name,
        empty="There are no users yet: devctl admin user add USER",
    )
    out.show(await TenantManager(client).all(), table)


async def give_kubeconfig(client: Client, out: Output, name: str, how: KubeconfigOptions) -> None:
    file = how["token_file"]
    if how["login"] and file is not None:
        raise Invalid(
            "devservers.two_logins",
            "--login needs no token, so --token-file has nothing to keep.",
            hint="Give one of the two.",
        )
    if how["login"]:
        await TenantManager(client).get(name)
        _show_kubeconfig(out, login_kubeconfig(name, client.transport.cluster, _split_command(how["login"])))
        return
    token = await TenantManager(client).token(name, parse_timeout(how["time"]))
    if file is not None:
        _write_private(file, token.text)
    _show_kubeconfig(out, kubeconfig(name, client.transport.cluster, file.absolute() if file else token))


def _split_command(command: str) -> list[str]:
    """The words of a command, as a shell reads them."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if not words:
        raise Invalid(
            "devservers.login_command",
            f'--login "{command[:80]}" is not a valid command.',
            hint="Close every quotation mark, and name a program.",
        )
    return words


def _show_kubeconfig(out: Output, body: dict[str, Any]) -> None:
    out.text(as_json(body) if out.shared.output is Format.JSON else as_yaml(body))


async def remove(client: Client, out: Output, name: str, how: RemoveUserOptions) -> None:
    span = parse_timeout(how["timeout"])
    users = TenantManager(client)
    user = await users.get(name)
    if not how["with_homes"]:
        user.check_empty()
    goes = f"the namespace {user.namespace} of {name}, with {user.belongings}"
    if how["dry_run"]:
        out.say(f"Would delete {goes}.")
        return
    confirm(f"Delete {goes}?", yes=how["yes"])
    await users.remove(name, span, with_homes=how["with_homes"])
    out.say(f"{name} is gone, and so is {user.namespace}.")


def _is_key(text: str) -> bool:
    """Reports whether the text is a public key and not the name of a file."""
    return " " in text.strip()


def _keys_in(file: Path) -> tuple[str, ...]:
    """The lines of a .pub or authorized_keys file, without comments."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(
            "devservers.key_file", f"{file} cannot be read: {error}.", hint="Give a file of public keys."
        ) from None
    found = tuple(public_key(line) for one in lines if (line := one.strip()) and not line.startswith("#"))
    if not found:
        raise Invalid(
            "devservers.key_file", f"{file} holds no public key.", hint="Write one public key on each line."
        )
    return found


def _write_private(file: Path, text: str) -> None:
    """Whole or not at all, and never readable by others, not even for a moment."""
    fresh = file.with_name(f".{file.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as target:
        target.write(text)
    fresh.replace(file)


def add_command(
    out: Output, name: str, where: ClusterSelector, *, dry_run: bool, **options: Unpack[UserOptions]
) -> None:
    run_with_api(out, where, lambda fleet: add(fleet.client, out, name, options, dry_run=dry_run))


def refresh_command(out: Output, names: tuple[str, ...], where: ClusterSelector, *, dry_run: bool) -> None:
    run_with_api(out, where, lambda fleet: refresh(fleet.client, out, names, dry_run=dry_run))


def suspend_command(out: Output, name: str, where: ClusterSelector) -> None:
    run_with_api(out, where, lambda fleet: suspend(fleet.client, out, name, suspended=True))


def resume_command(out: Output, name: str, where: ClusterSelector) -> None:
    run_with_api(out, where, lambda fleet: suspend(fleet.client, out, name, suspended=False))


def list_command(out: Output, where: ClusterSelector) -> None:
    run_with_api(out, where, lambda fleet: listed(fleet.client, out))


def kubeconfig_command(
    out: Output, name: str, where: ClusterSelector, **how: Unpack[KubeconfigOptions]
) -> None:
    run_with_api(out, where, lambda fleet: give_kubeconfig(fleet.client, out, name, how))


def remove_command(out: Output, name: str, where: ClusterSelector, **how: Unpack[RemoveUserOptions]) -> None:
    run_with_api(out, where, lambda fleet: remove(fleet.client, out, name, how))
