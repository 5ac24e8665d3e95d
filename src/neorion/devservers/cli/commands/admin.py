"""`devctl install`, `uninstall` and `admin user`."""

from functools import partial
from pathlib import Path

import click

from neorion.devservers.cli.options import cluster_options, wait_option
from neorion.keel.cli import App, Command, SuggestingChoice, dry_run_option, yes_option

# These belong to one command and not to all that follow: DEVCTL_IMAGE is about servers.
_once = partial(click.option, allow_from_autoenv=False)


timeout_option = _once("--timeout", default="5m", metavar="TIME", help="Longest wait, as in 30s or 10m.")


@click.command("install", cls=Command, run=".install_impl:install_command")
@click.argument("overlay", type=SuggestingChoice(["local", "aws"]), default="local", metavar="[OVERLAY]")
@_once("--image", default="", show_default=False, metavar="IMAGE", help="The operator's image.")
@_once(
    "--tools-image",
    default="",
    show_default=False,
    metavar="IMAGE",
    help="What brings SSH into servers; without it, devserver-tools beside the operator's image.",
)
@_once(
    "--console-image",
    default="",
    show_default=False,
    metavar="IMAGE",
    help="The image of consoles; without it, devservers-console beside the operator's image.",
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
@_once("--force", is_flag=True, help="Overwrite fields that other managers changed.")
@wait_option
@timeout_option
@dry_run_option
@cluster_options
def install_command() -> None:
    """Install or upgrade development servers in a cluster.

    OVERLAY is local (the default; drydock, kind, k3d, minikube) or aws. Everything is tried on the API server before the
    first write. Running it again changes only what differs; servers, homes and flavors are never touched.
    """


@click.command("uninstall", cls=Command, run=".install_impl:uninstall_command")
@_once(
    "--purge", is_flag=True, help="Also the definitions, flavors and storage classes; only without servers."
)
@timeout_option
@yes_option
@dry_run_option
@cluster_options
def uninstall_command() -> None:
    """Uninstall the operator, its RBAC and its admission policies.

    Servers go on running, but are not managed until the operator is installed again. Users' namespaces stay. The admission
    policies stay as long as there are users.
    """


admin = App("admin", help="Manage users, sessions and audit logs.")
admin.mount(
    "sessions",
    "neorion.devservers.cli.commands.sessions:sessions",
    help="Sessions at the SSH bastion: list, watch, kill and replay them.",
)
audit = App("audit", help="Audit logs of the SSH bastion: verify and search.")
admin.add_command(audit)
user = App("user", help="Users: add, list, suspend and remove them.")
admin.add_command(user)
_user_argument = click.argument("name", metavar="USER")


@user.command("add", run=".user_impl:add_command")
@_user_argument
@_once(
    "--ssh-key",
    multiple=True,
    metavar="KEY",
    help="A public key that logs in at the bastion, or its .pub file. May be repeated.",
)
@_once(
    "--from-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A file of public keys, one on each line, such as authorized_keys.",
)
@_once(
    "--github", metavar="LOGIN", help="Log in with the keys of this login at GitHub; an empty one ends that."
)
@_once("--group", multiple=True, metavar="GROUP", help="A group of the user. May be repeated.")
@_once(
    "--queue",
    metavar="CLUSTERQUEUE",
    help="The quota of the user's team in Kueue; an empty one ends that.",
)
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
def add_command() -> None:
    """Add a user, or change what they may have.

    Writes a DevServerUser and waits until the user controller has made the namespace dev-USER, the account user-USER and
    their rights. Keys and groups replace those there; without any, they stay. Quotas not given get their defaults.
    """


@user.command("refresh", run=".user_impl:refresh_command")
@click.argument("names", nargs=-1, metavar="[USER]...")
@dry_run_option
@cluster_options
def refresh_command() -> None:
    """Make DevServerUsers of users from before there were any.

    All users, if none is named. Each keeps the quota they were given. Kinds of GPUs that the cluster gets later are added
    to quotas by the user controller itself.
    """


@user.command("suspend", run=".user_impl:suspend_command")
@_user_argument
@cluster_options
def suspend_command() -> None:
    """Take a user's rights away for now.

    Their sessions end and their tokens are worthless. Servers, homes and volumes stay.
    """


@user.command("resume", run=".user_impl:resume_command")
@_user_argument
@cluster_options
def resume_command() -> None:
    """Give a suspended user their rights again."""


@user.command("list", run=".user_impl:list_command")
@cluster_options
def list_command() -> None:
    """List the users there are."""


@user.command("kubeconfig", run=".user_impl:kubeconfig_command")
@_user_argument
@_once("--time", default="1h", metavar="TIME", help="How long it is good for; an hour at most.")
@_once(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Keep the token there, and only its place in the kubeconfig.",
)
@_once(
    "--login",
    default="",
    show_default=False,
    metavar="COMMAND",
    help="Log in by this command instead of a token, such as 'aws eks get-token --cluster-name NAME'.",
)
@cluster_options
def kubeconfig_command() -> None:
    """Print a kubeconfig for a user.

    It gives access to their namespace only, and expires. With --token-file, run the command again before that: programs
    read the file again. With --login it contains no secret, and the cluster must know who logs in as devservers:USER.
    """


@user.command("remove", run=".user_impl:remove_command")
@_user_argument
@_once("--with-homes", is_flag=True, help="Also their servers, homes and other volumes, which is for ever.")
@timeout_option
@yes_option
@dry_run_option
@cluster_options
def remove_command() -> None:
    """Take a user's namespace back.

    Refused while there are servers, homes or other volumes in it, unless --with-homes.
    """


_files_argument = click.argument(
    "files", nargs=-1, required=True, metavar="FILE|FOLDER...", type=click.Path(path_type=Path)
)


@audit.command("verify", run=".audit_impl:verify_command")
@_files_argument
def verify_command() -> None:
    """Check audit logs for lines that were edited, dropped or moved.

    The exit code is 1 if there is one. Give all files of a log that was rotated, or the folder that holds them: they have to
    continue each other. A log that was cut off at its end is whole in itself: compare the number and the hash of its last
    record with those of an earlier run.
    """


@audit.command("search", run=".audit_impl:search_command")
@_files_argument
@_once("--user", "of_user", default="", show_default=False, metavar="USER", help="Only of this user.")
@_once("--server", default="", show_default=False, metavar="SERVER", help="Only of servers of this name.")
@_once("--source", default="", show_default=False, metavar="ADDRESS", help="Only from this address.")
@_once(
    "--event", default="", show_default=False, metavar="EVENT", help="Only these, such as login or refused."
)
@_once("--connection", default="", show_default=False, metavar="ID", help="Only of this connection.")
def search_command() -> None:
    """Search audit logs for records."""
