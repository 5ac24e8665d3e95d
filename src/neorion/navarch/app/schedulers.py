"""The scheduler and the source of demand that the file names."""

from collections.abc import AsyncGenerator, Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio

from neorion.capacity.gpu import shape_of
from neorion.keel.base import Invalid
from neorion.keel.cli.kit import require_extra
from neorion.keel.clock import Clock, Rng
from neorion.keel.config import SecretValue
from neorion.keel.rpc import PinnedToken, check_proof, http_transport
from neorion.keel.run import Supervisor
from neorion.navarch.adapters.config_file import ConfigFile
from neorion.navarch.adapters.config_file.schedulers import Iris, Kubernetes, WebhookModel
from neorion.navarch.adapters.fanout import FanoutScheduler
from neorion.navarch.adapters.iris_demand import IrisDemand, IrisSettings
from neorion.navarch.adapters.null import NoDemand, NoScheduler
from neorion.navarch.model import PoolSpec
from neorion.navarch.ports import DemandSource, Scheduler


@dataclass(frozen=True, slots=True)
class ClockAndRng:
    """Time and chance."""

    clock: Clock
    rng: Rng


@dataclass(frozen=True, slots=True)
class SchedulerBackends:
    """Adapters of two ports of the control plane, and the other names of machines in the scheduler."""

    scheduler: Scheduler
    demand: DemandSource
    aliases: Callable[[str], AbstractSet[str]] = field(default=lambda _: frozenset[str]())


@asynccontextmanager
async def schedulers(
    file: ConfigFile, specs: Mapping[str, PoolSpec], env: Mapping[str, str], chances: ClockAndRng
) -> AsyncGenerator[SchedulerBackends]:
    """`specs` is read whenever a pool's labels or shape are asked for: it may change while this runs."""
    found: list[Scheduler] = []
    around = SchedulerBackends(NoScheduler(), NoDemand())
    async with AsyncExitStack() as stack:
        if file.server.kubernetes is not None:
            around = await stack.enter_async_context(kubernetes(file.server.kubernetes, specs, env, chances))
            found.append(around.scheduler)
        if file.server.iris is not None:
            iris = await stack.enter_async_context(_iris(file.server.iris, specs, env, around.demand))
            around = replace(around, demand=iris)
        if file.server.notifier.webhook is not None:
            found.append(
                await stack.enter_async_context(_webhook(file.server.notifier.webhook, chances.clock))
            )
        match found:
            case []:
                yield around
            case [only]:
                yield replace(around, scheduler=only)
            case _:
                yield replace(around, scheduler=FanoutScheduler(found))


@asynccontextmanager
async def kubernetes(
    section: Kubernetes, specs: Mapping[str, PoolSpec], env: Mapping[str, str], chances: ClockAndRng
) -> AsyncGenerator[SchedulerBackends]:
    """Marks, drains and counts in one cluster while the block runs."""
    require_extra("kube")
    from neorion.keel.kube.client import connect, find_cluster  # noqa: PLC0415 -- only where there is a cluster
    from neorion.keel.kube.control import InformerFactory  # noqa: PLC0415 -- as above
    from neorion.navarch.adapters.kube import (  # noqa: PLC0415 -- as above
        DrainRules,
        KubeDemand,
        KubeScheduler,
        LocalData,
        has_kueue,
    )

    clock, rng = chances.clock, chances.rng
    path = Path(section.kubeconfig).expanduser() if section.kubeconfig else None
    async with AsyncExitStack() as stack:
        cluster = find_cluster(path, section.context, env)
        api = await stack.enter_async_context(connect(cluster, "navarch/1", clock, rng))
        informers = InformerFactory(api, clock, rng)
        rules = DrainRules(section.grace_period, LocalData(section.empty_dir))
        scheduler = KubeScheduler(api, informers, rules, lambda pool: dict(specs[pool].labels), clock, rng)
        demand = KubeDemand(informers, kueue=await has_kueue(api))
        crew = await stack.enter_async_context(Supervisor())
        stack.callback(crew.cancel)
        crew.spawn("navarch.kube.mirrors", informers.run)
        crew.spawn("navarch.kube.marks", scheduler.run)
        yield SchedulerBackends(scheduler, demand, scheduler.aliases)


def _gpus(spec: PoolSpec) -> int:
    shape = shape_of(spec.offers[0].instance_type)
    return shape.gpus if shape else 0


@asynccontextmanager
async def _iris(
    section: Iris, specs: Mapping[str, PoolSpec], env: Mapping[str, str], other: DemandSource
) -> AsyncGenerator[DemandSource]:
    token = env.get(section.token_env, "") if section.token_env else ""
    if section.token_env and not token:
        raise Invalid(
            "navarch.no_iris_token",
            f"The token for Iris is not in {section.token_env}.",
            hint=f"Set {section.token_env}, or remove token_env.",
        )
    pin, secret = PinnedToken.parse(token)
    check_proof(section.url, token)
    settings = IrisSettings(section.url, section.pool, SecretValue(secret) if secret else None)
    url = section.url.rstrip("/")
    transport = http_transport(url.replace("http://", "https://", 1) if pin else url, pin=pin)
    try:
        yield IrisDemand(settings, transport, other, _gpus(specs[section.pool]))
    finally:
        with anyio.CancelScope(shield=True):
            await transport.aclose()


@asynccontextmanager
async def _webhook(section: WebhookModel, clock: Clock) -> AsyncGenerator[Scheduler]:
    require_extra("kube")
    from neorion.navarch.adapters.notify import WebhookSettings, webhook  # noqa: PLC0415 -- needs an HTTP client

    settings = WebhookSettings(
        section.cordon_url,
        section.uncordon_url,
        section.drain_url,
        section.drain_status_url,
        section.timeout,
        section.headers,
    )
    async with webhook(settings, clock) as made:
        yield made
