"""What `devctl admin user` does."""

import os
from pathlib import Path
from typing import Final

from neorion.devservers.adapters.users import Allowance, User, Users, kubeconfig
from neorion.devservers.cli.admin import Leaving, Most
from neorion.devservers.cli.asking import patience
from neorion.devservers.cli.installation import STEPS, news
from neorion.devservers.cli.words import age, moment
from neorion.keel.base import Duration
from neorion.keel.cli import Format
from neorion.keel.cli.kit import Column, Output, Table, confirm
from neorion.keel.cli.kit.data import as_json, as_yaml
from neorion.keel.kube.client import Client

# Who made a namespace, beside the bastion's own controller.
_CREATED_BY: Final = "devctl"
# The controller manager looks for new kinds every half minute.
_COUNTED: Final = Duration.of(minutes=2)


async def add(client: Client, out: Output, name: str, most: Most, *, dry_run: bool) -> None:
    users = Users(client)
    steps = await users.add(name, Allowance(**most), _CREATED_BY, dry_run=dry_run)
    out.show(news(steps), STEPS)
    if not dry_run:
        await users.wait_counted(name, _COUNTED)
        out.say(f"{name} may come in: devctl admin user kubeconfig {name} > {name}.kubeconfig")


async def refresh(client: Client, out: Output, names: tuple[str, ...], *, dry_run: bool) -> None:
    users = Users(client)
    known = (
        [one.name for one in await users.all()]
        if not names
        else [(await users.get(name)).name for name in names]
    )
    steps = [step for name in known for step in await users.refresh(name, dry_run=dry_run)]
    out.show(news(tuple(steps)), STEPS)


async def listed(client: Client, out: Output) -> None:
    now = client.transport.clock.now()
    table: Table[User] = Table(
        (
            Column("USER", lambda one: one.name),
            Column("NAMESPACE", lambda one: one.namespace),
            Column("SERVERS", lambda one: one.servers, right=True),
            Column("HOMES", lambda one: one.homes, right=True),
            Column("STATE", lambda one: one.state),
            Column("AGE", lambda one: age(now, moment(one.created)), right=True),
        ),
        name=lambda one: one.name,
        empty="There are no users yet: devctl admin user add USER",
    )
    out.show(await Users(client).all(), table)


async def give_kubeconfig(client: Client, out: Output, name: str, life: Duration, file: Path | None) -> None:
    token = await Users(client).token(name, life)
    if file is not None:
        _write_private(file, token.text)
    body = kubeconfig(name, client.transport.cluster, file.absolute() if file else token)
    out.text(as_json(body) if out.shared.output is Format.JSON else as_yaml(body))


async def remove(client: Client, out: Output, name: str, how: Leaving) -> None:
    span = patience(how["timeout"])
    users = Users(client)
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


def _write_private(file: Path, text: str) -> None:
    """Whole or not at all, and never readable by others, not even for a moment."""
    fresh = file.with_name(f".{file.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as target:
        target.write(text)
    fresh.replace(file)
