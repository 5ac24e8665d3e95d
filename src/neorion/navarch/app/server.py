"""`navarch serve`: from a file to a control plane that answers."""

from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from neorion.capacity.prices import PriceTable
from neorion.capacity.provider import Provider
from neorion.keel.base import Duration, Invalid
from neorion.keel.clock import Ids, SystemClock, SystemIds, system_rng
from neorion.keel.config import SecretFile, write_secret
from neorion.keel.rpc import (
    Channel,
    MemoryTransport,
    PinnedToken,
    ServerTls,
    connect,
    pin_of,
    self_signed,
    serve,
)
from neorion.keel.run import Supervisor
from neorion.keel.telemetry.metrics import Metrics
from neorion.navarch.adapters.config_file import ConfigFile, policies_of, pool_specs
from neorion.navarch.adapters.policy_engine import SubprocessPolicyEngine
from neorion.navarch.app.bootstrapper import make_bootstrapper, reachable
from neorion.navarch.app.control_plane import ControlPlane, ControlPlaneSettings, Dependencies, build
from neorion.navarch.app.fake_clouds import FakeCloudSetup, fake, run_fake_agents
from neorion.navarch.app.leader_election import ListenAddress, acquire_leadership
from neorion.navarch.app.providers import ProviderContext, open_clouds
from neorion.navarch.app.schedulers import ClockAndRng, schedulers
from neorion.navarch.controllers.context import Backends
from neorion.navarch.model.tokens import token_file

_GRACE = Duration.of(seconds=2)


@dataclass(frozen=True, slots=True)
class RunningControlPlane:
    """A control plane that answers at `address`. `token` is its operator's, with the pin of its key."""

    address: str
    token: str
    plane: ControlPlane
    fakes: dict[str, FakeCloudSetup] = field(default_factory=dict[str, FakeCloudSetup])


@asynccontextmanager
async def serving(
    file: ConfigFile, folder: Path, env: Mapping[str, str]
) -> AsyncGenerator[RunningControlPlane]:
    """`folder` is where the configuration lies: relative paths in it start there."""
    clock, rng, ids = SystemClock(), system_rng(), SystemIds()
    host, port = file.server.bind_address
    state = Path(file.server.state_dir or _state_dir(env)).expanduser()
    state.mkdir(parents=True, exist_ok=True)
    tls = _tls(file, folder, state)
    pin = pin_of(tls) if tls else ""
    given = _token(env, host, state / "operator.token", ids, pin)
    token = PinnedToken.parse(given).token or ""
    specs = pool_specs(file)
    fakes = {
        name: fake(name, section, clock, rng)
        for name, section in file.providers.items()
        if section.kind(name) == "fake"
    }
    providers: dict[str, Provider] = {name: one.provider for name, one in fakes.items()}
    settings = ControlPlaneSettings(
        specs=specs,
        token=token,
        viewer_token=PinnedToken.parse(env.get("NAVARCH_VIEWER_TOKEN")).token or "",
        join_token=PinnedToken.parse(env.get("NAVARCH_JOIN_TOKEN")).token or "",
        autoscale=file.server.autoscale_interval,
        health_check=file.server.health_check_interval,
        address=reachable(file),
        pin=pin,
        prices={
            name: PriceTable(section.kind(name), section.prices) for name, section in file.providers.items()
        },
    )
    async with AsyncExitStack() as stack:
        providers |= await open_clouds(file.providers, ProviderContext(specs, env, folder, clock, stack))
        where = file.server.store or state / "navarch.db"
        door = ListenAddress(host, port, tls)
        own = await stack.enter_async_context(acquire_leadership(where, door, clock, ids))
        engine = await stack.enter_async_context(SubprocessPolicyEngine(policies_of(specs, folder, env)))
        around = await stack.enter_async_context(schedulers(file, specs, env, ClockAndRng(clock, rng)))
        setup = make_bootstrapper(file, specs, folder)
        world = Backends(providers, around.scheduler, around.demand, engine, setup, around.aliases)
        plane = await stack.enter_async_context(
            build(settings, world, Dependencies(own.store, clock, ids, rng, Metrics()))
        )
        server = await stack.enter_async_context(
            serve(plane.app, own.door.host, own.door.port, tls=own.door.tls, grace=_GRACE)
        )
        inner = await stack.enter_async_context(MemoryTransport(plane.app))
        # Last, so that it ends first: the agents in it must not speak into a transport that is gone.
        crew = await stack.enter_async_context(Supervisor())
        stack.callback(crew.cancel)
        stack.enter_context(_token_left(env, server.port, str(PinnedToken(pin, token))))
        for one in fakes.values():
            crew.spawn("navarch.fake", lambda one=one: run_fake_agents(one, _dial(inner, ids), token, ids))
        yield RunningControlPlane(server.address, str(PinnedToken(pin, token)), plane, fakes)


def _tls(file: ConfigFile, folder: Path, state: Path) -> ServerTls | None:
    named = file.server
    if named.tls_cert:
        return ServerTls(folder / named.tls_cert, folder / named.tls_key)
    return self_signed(state / "tls") if named.tls == "own" else None


def _dial(transport: MemoryTransport, ids: Ids):  # noqa: ANN202 -- a function of a token
    def dial(token: str | None) -> Channel:
        return connect("navarch", ids=ids, token=token, transport=transport)

    return dial


def _token(env: Mapping[str, str], host: str, path: Path, ids: Ids, pin: str = "") -> str:
    """The operator's: from the environment, or generated once for this machine's user."""
    if given := env.get("NAVARCH_AUTH_TOKEN", ""):
        return given
    local = host == "localhost" or (host.replace(".", "").replace(":", "").isalnum() and _is_loopback(host))
    if not local:
        raise Invalid(
            "navarch.no_auth",
            f"The address {host} would be open to the network without authentication.",
            hint="Set NAVARCH_AUTH_TOKEN, or listen on 127.0.0.1.",
        )
    return SecretFile(path, ids, pin).value


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@contextmanager
def _token_left(env: Mapping[str, str], port: int, token: str) -> Generator[None]:
    """Keeps the token in a file for clients of the same user on this machine, while the server runs."""
    path = Path(token_file(env, port))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_secret(path, token)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _state_dir(env: Mapping[str, str]) -> str:
    home = env.get("XDG_STATE_HOME") or f"{env.get('HOME', '/')}/.local/state"
    return f"{home}/neorion/navarch"
