"""The command line of development servers, `devctl` or `neorion devctl`.

Speaks to a cluster through the client alone; no kubectl is needed. What a command declares stands in one module and
what it does in another, which is imported when it is called: the client brings the loop and TLS along.
"""

from typing import Final

from neorion.keel.cli import App

_LIFE: Final = "Your servers"
_INSIDE: Final = "Inside a server"
_LOOK: Final = "What is going on"
_AROUND: Final = "Where you are"
_ADMIN: Final = "For who runs the cluster"
_COMMANDS: Final = (
    ("create", "commands.server:create_command", "Make a server.", _LIFE),
    ("list", "commands.list:list_command", "List your servers.", _LIFE),
    ("start", "commands.server:start_command", "Start a server that was stopped.", _LIFE),
    ("stop", "commands.server:stop_command", "Stop a server; its home is kept.", _LIFE),
    ("extend", "commands.server:extend_command", "Give a server more time.", _LIFE),
    ("update", "commands.server:update_command", "Change the flavor of a server; its volumes stay.", _LIFE),
    ("delete", "commands.server:delete_command", "Delete servers; their homes are kept for a while.", _LIFE),
    ("ssh", "commands.access:ssh_command", "Open a shell in a server.", _INSIDE),
    (
        "ssh-config",
        "ssh_config:ssh_config_command",
        "Print SSH configuration for the bastion and your servers.",
        _INSIDE,
    ),
    ("exec", "commands.access:exec_command", "Run a command in a server.", _INSIDE),
    ("cp", "commands.access:cp_command", "Copy files to a server or from it.", _INSIDE),
    (
        "port-forward",
        "commands.access:port_forward_command",
        "Lead ports of this machine to a server.",
        _INSIDE,
    ),
    ("logs", "commands.access:logs_command", "Show what a server writes.", _INSIDE),
    ("open", "commands.open:open_command", "Open a server in an editor of this machine.", _INSIDE),
    (
        "jupyter",
        "commands.jupyter:jupyter_command",
        "Start JupyterLab in a server and open it here.",
        _INSIDE,
    ),
    (
        "submit",
        "commands.submit:submit_command",
        "Run a script on new machines and give them back.",
        _LIFE,
    ),
    ("describe", "commands.diagnostics:describe_command", "Show all there is to know of a server.", _LOOK),
    (
        "doctor",
        "commands.diagnostics:doctor_command",
        "Say why a server does not run, and what would help.",
        _LOOK,
    ),
    ("events", "commands.diagnostics:events_command", "Show what happened to a server.", _LOOK),
    ("monitor", "commands.diagnostics:monitor_command", "Watch servers and what they use.", _LOOK),
    ("queue", "commands.queue:queue_command", "List the servers that wait for quota.", _LOOK),
    ("quota", "commands.quota:quota_command", "Show what teams use of their quota.", _LOOK),
    ("cost", "commands.diagnostics:cost_command", "Show what servers have cost.", _LOOK),
    ("flavors", "commands.cluster:flavors_command", "List the kinds of machines there are.", _AROUND),
    ("status", "commands.cluster:status_command", "Show the cluster, your servers and the flavors.", _AROUND),
    ("info", "commands.cluster:info_command", "Show what devctl can do, and where it would do it.", _AROUND),
    (
        "test-k8s",
        "commands.cluster:test_command",
        "Check that the cluster answers and what you may do.",
        _AROUND,
    ),
    (
        "install",
        "commands.admin:install_command",
        "Install or upgrade development servers in a cluster.",
        _ADMIN,
    ),
    (
        "uninstall",
        "commands.admin:uninstall_command",
        "Take them away again; servers and homes stay.",
        _ADMIN,
    ),
    ("admin", "commands.admin:admin", "Manage users, sessions and audit logs.", _ADMIN),
)

app = App(
    "devctl",
    help="Development servers: your own machine on the cluster.",
    env_prefix="DEVCTL",
    distribution="neorion",
)
for _name, _target, _help, _heading in _COMMANDS:
    app.mount(_name, f"neorion.devservers.cli.{_target}", help=_help, heading=_heading)
app.mount(
    "completion",
    "neorion.keel.cli.kit.completion:completion",
    help="Print the completion script for bash, zsh or fish.",
    heading=_AROUND,
)

__all__ = ["app"]
