"""The user controller: put together, and as a process beside the bastion in its Pod."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from neorion.devservers.adapters.account_files import write_account
from neorion.devservers.adapters.host_keys import HostKeyGenerator
from neorion.devservers.adapters.key_server import HttpKeyServer
from neorion.devservers.app.run import identity
from neorion.devservers.controllers.bastion_keys import ensure_bastion_keys
from neorion.devservers.controllers.user_requests import UserRequests
from neorion.devservers.controllers.users import (
    MANAGER,
    UserCache,
    Users,
    UserWriter,
    gpus_of_flavor,
    gpus_of_node,
    user_key,
)
from neorion.devservers.model.tenancy import BASTION_ACCOUNT, SYSTEM_NAMESPACE
from neorion.devservers.ports import EvidenceChecker, HostKeyFactory, KeyServer
from neorion.keel.base import Duration
from neorion.keel.clock import Clock, Rng, SystemClock, SystemIds, system_rng
from neorion.keel.kube import KubeApi, ObjectKey
from neorion.keel.kube.client import Client, ClusterConfig, connect
from neorion.keel.kube.control import (
    TENURE,
    Applier,
    Controller,
    Election,
    InformerFactory,
    LeaderLeaseTiming,
    Operator,
    generation_changed,
    self_key,
)
from neorion.keel.run import Backoff, Loop, LoopTiming, Supervisor, retry

LEASE = "devservers-user-controller"
# The bastion's token lasts an hour: several renewals may fail before it is over.
_RENEW_EVERY = Duration.of(minutes=10)
_PATIENCE = Backoff(first=Duration.of(ms=200), most=Duration.of(seconds=5), attempts=8)


@dataclass(frozen=True, slots=True)
class UserPlan:
    """Which process this is, and the namespace of its lease, of the bastion's keys and of requests."""

    identity: str
    namespace: str = SYSTEM_NAMESPACE
    tenure: LeaderLeaseTiming = TENURE


@dataclass(frozen=True, slots=True)
class UserPorts:
    """`keys` makes the bastion's own, once the lease is held. `key_server` has those of users with a login there.

    `checker` checks the evidence of first logins; without one they are not answered.
    """

    keys: HostKeyFactory | None = None
    key_server: KeyServer | None = None
    checker: EvidenceChecker | None = None


def build_user_controller(
    api: KubeApi,
    plan: UserPlan,
    clock: Clock,
    rng: Rng,
    ports: UserPorts | None = None,
) -> Operator:
    ports = ports or UserPorts()
    informers = InformerFactory(api, clock, rng)
    cache = UserCache(informers, plan.namespace)
    election = Election(api, ObjectKey(plan.namespace, LEASE), plan.identity, clock, rng, plan.tenure)
    writer = UserWriter(api, Applier(api, MANAGER, informers, election), election)
    users = Controller("users", Users(cache, writer, clock, ports.key_server).reconcile, clock, rng)
    users.watch(cache.users, self_key, generation_changed)
    users.watch(cache.namespaces, user_key, generation_changed)
    users.watch(cache.bastion_keys, cache.everyone, begins=False)
    users.watch(cache.api_service, cache.everyone, begins=False)
    users.watch(cache.api_slices, cache.everyone, begins=False)
    users.watch(
        cache.flavors,
        cache.everyone,
        lambda before, after: gpus_of_flavor(before) != gpus_of_flavor(after),
        begins=False,
    )
    users.watch(
        cache.nodes,
        cache.everyone,
        lambda before, after: gpus_of_node(before) != gpus_of_node(after),
        begins=False,
    )

    controllers: list[Controller[ObjectKey]] = [users]
    if ports.checker is not None:
        first_logins = UserRequests(informers, plan.namespace, writer, clock, ports.checker)
        requests = Controller("user requests", first_logins.reconcile, clock, rng)
        requests.watch(first_logins.requests, self_key)
        # Followed, and read when a request comes.
        requests.watch(first_logins.policies, lambda _policy: (), begins=False)
        controllers.append(requests)

    async def first() -> None:
        if ports.keys is not None:
            await retry(
                partial(ensure_bastion_keys, api, ports.keys, election, plan.namespace), _PATIENCE, clock, rng
            )

    return Operator(informers, controllers, election, first=first)


@dataclass(frozen=True, slots=True)
class UserControllerOptions:
    """`bastion_token` is the folder that the bastion's container mounts as its service account.

    `keys_url` is the address of a login's keys at the key server. `user_ca` is the file of the company's authorities, as
    the bastion reads it.
    """

    keys_url: str
    bastion_token: Path | None = None
    user_ca: Path | None = None


async def run_user_controller(
    crew: Supervisor, cluster: ClusterConfig, options: UserControllerOptions
) -> None:
    """Until the crew stops: then reconciles in progress finish, and the lease is released."""
    from neorion.devservers.adapters.identity import EvidenceVerifier, OpenIdClient, UserAuthorities  # noqa: PLC0415 -- needs the extra ssh

    clock, rng, ids = SystemClock(), system_rng(), SystemIds()
    checker = EvidenceVerifier(UserAuthorities(options.user_ca), OpenIdClient(clock))
    ports = UserPorts(HostKeyGenerator(), HttpKeyServer(options.keys_url, clock), checker)
    async with connect(cluster, "devservers-user-controller", clock, rng) as api:
        if options.bastion_token is not None:
            renew = partial(_renew_token, api, options.bastion_token)
            crew.loop(Loop("bastion token", renew, LoopTiming(_RENEW_EVERY), clock, rng))
        controller = build_user_controller(api, UserPlan(identity(ids)), clock, rng, ports)
        await controller.run(crew.stopping)


async def _renew_token(api: Client, folder: Path) -> None:
    token = await api.token(BASTION_ACCOUNT, SYSTEM_NAMESPACE)
    write_account(folder, api.transport.cluster, SYSTEM_NAMESPACE, token)
