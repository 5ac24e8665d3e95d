"""The work of `navarch agent`."""

import socket
from pathlib import Path
from typing import Any

from neorion.capacity.gpu import Remedy
from neorion.keel.base import Invalid, Unauthenticated
from neorion.keel.cli.kit import Output
from neorion.keel.clock import SystemClock, SystemIds, system_rng
from neorion.keel.rpc import Channel, ClientTls, connect
from neorion.keel.run import Supervisor, run_process
from neorion.keel.telemetry.setup import LogFormat, setup
from neorion.navarch.adapters.probes.host import HostPaths, HostProbe
from neorion.navarch.adapters.probes.spot_notice import SERVICES, SpotNoticeProbe
from neorion.navarch.agent import Agent, AgentState, HostIdentity
from neorion.navarch.client.async_client import local_token
from neorion.navarch.ports import Probe


def agent(out: Output, **options: Any) -> None:  # noqa: ANN401 -- click's own
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
                hint = "Set NAVARCH_AUTH_TOKEN to the token for joining."
                raise Unauthenticated(error.code, error.sentence, hint=hint) from None
            crew.stop()

        crew.spawn("navarch.agent", speak)
        await crew.stopping.wait()

    run_process(main)


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Invalid(
            "agent.state",
            f"The agent cannot keep anything in {path}: {error.strerror}.",
            hint="Name a folder of its own with --state.",
        ) from None
