"""`navarch agent`."""

from pathlib import Path
from typing import Any, Final

import click

from neorion.keel.base import Invalid, Unauthenticated
from neorion.keel.cli import Command
from neorion.keel.cli.kit import Output, require_extra

_STATE: Final = Path("/var/lib/navarch-agent")
_REMEDIES: Final = ("reset_gpu", "reboot")


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Invalid(
            "agent.state",
            f"The agent cannot keep anything in {path}: {error.strerror}.",
            hint="name a folder of its own with --state",
        ) from None


@click.command("agent", cls=Command)
@click.option("--server", required=True, metavar="ADDRESS", help="Where the control plane answers.")
@click.option("--node-id", required=True, help="What this machine is called there, or in Kubernetes.")
@click.option("--pool", default="", help="The pool to join, for a machine that somebody else bought.")
@click.option("--ca-file", type=click.Path(path_type=Path), help="Whom to trust; connects by TLS.")
@click.option("--state", default=_STATE, type=click.Path(path_type=Path), help="A folder that outlives it.")
@click.option("--kernel-log", default=Path("/dev/kmsg"), type=click.Path(path_type=Path), help="To be read.")
@click.option(
    "--allow",
    multiple=True,
    type=click.Choice(_REMEDIES),
    help="What it may do when told to; nothing if not given.",
)
@click.option(
    "--cloud",
    type=click.Choice(["aws", "gcp"]),
    help="Listen for this cloud's notice that it takes the machine back.",
)
@click.option("--log", default="people", type=click.Choice(["people", "json"]), help="Who reads the log.")
def agent(out: Output, **options: Any) -> None:  # noqa: ANN401 -- click's own
    """Watch this machine for a control plane. The token for joining is NAVARCH_AUTH_TOKEN."""
    require_extra("server", "navarch")
    import socket  # noqa: PLC0415 -- the help does not need it

    from neorion.capacity.gpu import Remedy  # noqa: PLC0415 -- as above
    from neorion.keel.clock import SystemClock, SystemIds, system_rng  # noqa: PLC0415 -- as above
    from neorion.keel.rpc import Channel, ClientTls, connect  # noqa: PLC0415 -- as above
    from neorion.keel.run import Supervisor, run_process  # noqa: PLC0415 -- as above
    from neorion.keel.telemetry.setup import LogFormat, setup  # noqa: PLC0415 -- as above
    from neorion.navarch.adapters.probes.host import HostPaths, HostProbe  # noqa: PLC0415 -- as above
    from neorion.navarch.adapters.probes.spot_notice import SERVICES, SpotNoticeProbe  # noqa: PLC0415 -- as above
    from neorion.navarch.agent import Agent, AgentState, HostIdentity  # noqa: PLC0415 -- as above
    from neorion.navarch.client.async_client import local_token  # noqa: PLC0415 -- as above
    from neorion.navarch.ports import Probe  # noqa: PLC0415 -- as above

    setup(LogFormat(options["log"]))
    _make_folder(options["state"])
    clock, ids = SystemClock(), SystemIds()
    tls = ClientTls(ca=options["ca_file"]) if options["ca_file"] else None

    def dial(token: str | None) -> Channel:
        return connect(options["server"], ids=ids, token=token, tls=tls)

    places = HostPaths(options["state"], options["kernel_log"])
    probe: Probe = HostProbe(places, clock, frozenset(Remedy(one) for one in options["allow"]))
    if options["cloud"]:
        probe = SpotNoticeProbe(probe, SERVICES[options["cloud"]], clock)
    who = HostIdentity(
        options["node_id"],
        host_name=socket.gethostname(),
        pool=options["pool"],
        kernel_boot=places.boot_id.read_text().strip(),
    )

    async def main(crew: Supervisor) -> None:
        async def speak() -> None:
            memory = AgentState.kept_in(options["state"], ids)
            given = out.env.get("NAVARCH_AUTH_TOKEN") or None
            token = local_token(options["server"], given, out.env) if given else None
            try:
                await Agent(who, probe, dial, clock, ids, system_rng()).run(token, memory)
            except Unauthenticated as error:
                hint = "set NAVARCH_AUTH_TOKEN to the token for joining"
                raise Unauthenticated(error.code, error.sentence, hint=hint) from None
            crew.stop()

        crew.spawn("navarch.agent", speak)
        await crew.stopping.wait()

    run_process(main)
