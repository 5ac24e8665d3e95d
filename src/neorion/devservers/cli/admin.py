"""`devctl install`, `uninstall` and `admin user`."""

from functools import partial
from pathlib import Path
from typing import TypedDict, Unpack

import click

from neorion.devservers.cli.options import Where, cluster_options, wait_option
from neorion.keel.cli import App, Choices, Command, dry_run_option, yes_option
from neorion.keel.cli.kit import Output

# These belong to one command and not to all that follow: DEVCTL_IMAGE is about servers.
_once = partial(click.option, allow_from_autoenv=False)


timeout_option = _once("--timeout", default="5m", metavar="TIME", help="How long to wait, as in 30s or 10m.")


class Wanted(TypedDict):
    """What the options of `devctl install` say."""

    image: str
    tools_image: str
    ssh: bool
    efs: str
    kueue: str
    force: bool
    wait: bool
    timeout: str
    dry_run: bool


class Removal(TypedDict):
    """How an installation is taken away."""

    purge: bool
    timeout: str
    yes: bool
    dry_run: bool


class Leaving(TypedDict):
    """How a user is removed."""

    with_homes: bool
    timeout: str
    yes: bool
    dry_run: bool


@click.command("install", cls=Command)
@click.argument("overlay", type=Choices(["local", "aws"]), default="local", metavar="[OVERLAY]")
@_once("--image", default="", show_default=False, metavar="IMAGE", help="The operator's image.")
@_once(
    "--tools-image",
    default="",
    show_default=False,
    metavar="IMAGE",
    help="What brings SSH into servers; without it, devserver-tools beside the operator's image.",
)
@_once("--ssh/--no-ssh", default=True, help="Without it servers are entered through the cluster alone.")
@_once("--efs", default="", show_default=False, metavar="ID", help="The EFS file system of shared volumes.")
@_once(
    "--kueue",
    default="",
    show_default=False,
    metavar="NAMESPACE/ACCOUNT",
    help="The account that Kueue runs as, if not kueue-system/kueue-controller-manager.",
)
@_once("--force", is_flag=True, help="Take back what somebody else has changed.")
@wait_option
@timeout_option
@dry_run_option
@cluster_options
def install_command(out: Output, overlay: str, where: Where, **wanted: Unpack[Wanted]) -> None:
    """Install or upgrade development servers in a cluster.

    OVERLAY is local (the default; drydock, kind, k3d, minikube) or aws. Everything is tried on the API server before the
    first write. Running it again changes only what differs; servers, homes and flavors are never touched.
    """
    from neorion.devservers.cli import installation  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.asking import ask  # noqa: PLC0415 -- as above

    ask(out, where, lambda fleet: installation.install(fleet.client, out, overlay, wanted))


@click.command("uninstall", cls=Command)
@_once(
    "--purge", is_flag=True, help="Also the definitions, flavors and storage classes; only without servers."
)
@timeout_option
@yes_option
@dry_run_option
@cluster_options
def uninstall_command(out: Output, where: Where, **how: Unpack[Removal]) -> None:
    """Take the operator, its rights and the guards away.

    Servers go on running, and nobody looks after them until it is installed again. Users' namespaces stay as they are,
    and as long as there is one, so do the guards.
    """
    from neorion.devservers.cli import installation  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.asking import ask  # noqa: PLC0415 -- as above

    ask(out, where, lambda fleet: installation.uninstall(fleet.client, out, how))


admin = App("admin", help="For who runs the cluster.")
user = App("user", help="Users: give them their namespace, and take it back.")
admin.add_command(user)
_user_argument = click.argument("name", metavar="USER")


class Most(TypedDict):
    """The most that a user may have, as the options of `admin user add` say it."""

    servers: int
    cpu: str
    memory: str
    gpus: int
    storage: str


@user.command("add")
@_user_argument
@_once("--servers", default=10, type=click.IntRange(min=0), metavar="N", help="The most servers.")
@_once("--cpu", default="64", metavar="AMOUNT", help="The most CPUs of all that run.")
@_once("--memory", default="256Gi", metavar="AMOUNT", help="The most memory of all that run.")
@_once(
    "--gpus",
    default=8,
    type=click.IntRange(min=0),
    metavar="N",
    help="The most GPUs of each kind of all that run.",
)
@_once("--storage", default="2Ti", metavar="AMOUNT", help="The most storage of all homes.")
@dry_run_option
@cluster_options
def add_command(out: Output, name: str, where: Where, *, dry_run: bool, **most: Unpack[Most]) -> None:
    """Give a user a namespace, an account and their rights; or change what they may have.

    The namespace is dev-USER, the account user-USER, the role dev-user. Kinds of GPUs are those that flavors ask for and
    nodes have; when the cluster gets others, devctl admin user refresh lets users have them too.
    """
    from neorion.devservers.cli import users  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.asking import ask  # noqa: PLC0415 -- as above

    ask(out, where, lambda fleet: users.add(fleet.client, out, name, most, dry_run=dry_run))


@user.command("refresh")
@click.argument("names", nargs=-1, metavar="[USER]...")
@dry_run_option
@cluster_options
def refresh_command(out: Output, names: tuple[str, ...], where: Where, *, dry_run: bool) -> None:
    """Let users have the kinds of GPUs that the cluster got since they were added.

    All users, if none is named. Each may have as many of a new kind as of the others. Namespace, rights and limits become
    what this version of devctl gives, with the amounts that the user was given.
    """
    from neorion.devservers.cli import users  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.asking import ask  # noqa: PLC0415 -- as above

    ask(out, where, lambda fleet: users.refresh(fleet.client, out, names, dry_run=dry_run))


@user.command("list")
@cluster_options
def list_command(out: Output, where: Where) -> None:
    """List the users there are."""
    from neorion.devservers.cli import users  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.asking import ask  # noqa: PLC0415 -- as above

    ask(out, where, lambda fleet: users.listed(fleet.client, out))


@user.command("kubeconfig")
@_user_argument
@_once("--time", default="1h", metavar="TIME", help="How long it is good for; an hour at most.")
@_once(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Keep the token there, and only its place in the kubeconfig.",
)
@cluster_options
def kubeconfig_command(out: Output, name: str, where: Where, *, time: str, token_file: Path | None) -> None:
    """Print a kubeconfig for a user.

    It reaches their namespace and nothing else, and only for a while. With --token-file, run it again before that is
    over: programs read the file anew.
    """
    from neorion.devservers.cli import users  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.asking import ask, patience  # noqa: PLC0415 -- as above

    life = patience(time)
    ask(out, where, lambda fleet: users.give_kubeconfig(fleet.client, out, name, life, token_file))


@user.command("remove")
@_user_argument
@_once("--with-homes", is_flag=True, help="Also their servers, homes and other volumes, which is for ever.")
@timeout_option
@yes_option
@dry_run_option
@cluster_options
def remove_command(out: Output, name: str, where: Where, **how: Unpack[Leaving]) -> None:
    """Take a user's namespace back.

    Refused while there are servers, homes or other volumes in it, unless --with-homes.
    """
    from neorion.devservers.cli import users  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.asking import ask  # noqa: PLC0415 -- as above

    ask(out, where, lambda fleet: users.remove(fleet.client, out, name, how))
