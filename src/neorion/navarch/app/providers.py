"""The clouds that the file names, as providers."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from neorion.capacity.provider import Provider
from neorion.keel.base import Invalid
from neorion.keel.cli.kit import require_extra
from neorion.keel.clock import Clock
from neorion.keel.config import SecretValue
from neorion.navarch.adapters.config_file.sections import ProviderModel as Section
from neorion.navarch.model import PoolSpec

LAMBDA_KEY: Final = "LAMBDA_API_KEY"


@dataclass(frozen=True, slots=True)
class ProviderContext:
    """Parts of the process that providers use. `stack` closes what they open; relative paths start at `folder`."""

    specs: Mapping[str, PoolSpec]
    env: Mapping[str, str]
    folder: Path
    clock: Clock
    stack: AsyncExitStack


async def open_clouds(sections: Mapping[str, Section], around: ProviderContext) -> dict[str, Provider]:
    """Every cloud but the fake ones, by the name that the file gives it."""
    return {
        name: await _OPENERS[section.kind(name)](name, section, around)
        for name, section in sections.items()
        if section.kind(name) in _OPENERS
    }


async def _aws(name: str, section: Section, around: ProviderContext) -> Provider:
    """EC2 in every region that its section or a pool names: there its machines are looked for."""
    require_extra("aws")
    from neorion.capacity.aws import AwsProvider, AwsSettings  # noqa: PLC0415 -- only where it is bought from

    regions = _regions(name, section, around.specs.values())
    settings = AwsSettings(regions, section.profile, section.launch_template, section.api_url)
    return AwsProvider(name, settings, around.clock)


async def _coreweave(name: str, section: Section, around: ProviderContext) -> Provider:
    """CoreWeave sells to the cluster that the file names, or to the one that this process runs in."""
    require_extra("kube")
    from neorion.capacity.coreweave import CoreWeaveProvider  # noqa: PLC0415 -- as above
    from neorion.keel.kube.client import connect, find_cluster  # noqa: PLC0415 -- as above

    kubeconfig = around.folder / Path(section.kubeconfig).expanduser() if section.kubeconfig else None
    cluster = find_cluster(kubeconfig, section.context, around.env)
    api = await around.stack.enter_async_context(connect(cluster, "navarch"))
    return CoreWeaveProvider(name, api)


async def _gcp(name: str, section: Section, around: ProviderContext) -> Provider:
    require_extra("gcp")
    from neorion.capacity.gcp import GcpProvider, GcpSettings  # noqa: PLC0415 -- as above

    settings = GcpSettings(section.project, section.launch_template, section.api_url)
    return GcpProvider(name, settings, around.clock)


async def _lambda(name: str, section: Section, around: ProviderContext) -> Provider:
    from neorion.capacity.lambda_cloud import LambdaProvider, LambdaSettings  # noqa: PLC0415 -- as above
    from neorion.capacity.lambda_cloud.provider import URL  # noqa: PLC0415 -- as above

    variable = section.api_key_env or LAMBDA_KEY
    key = around.env.get(variable, "")
    if not key:
        raise Invalid(
            "navarch.no_key",
            f"The key of {name} is not in {variable}.",
            hint=f"Set {variable}, or name another variable with api_key_env.",
        )
    regions = _regions(name, section, around.specs.values())
    settings = LambdaSettings(SecretValue(key), regions, section.api_url or URL)
    provider = LambdaProvider(name, settings, around.clock)
    around.stack.push_async_callback(provider.close)
    return provider


_OPENERS: Final[Mapping[str, Callable[[str, Section, ProviderContext], Awaitable[Provider]]]] = {
    "aws": _aws,
    "coreweave": _coreweave,
    "gcp": _gcp,
    "lambda": _lambda,
}


def _regions(name: str, section: Section, specs: Iterable[PoolSpec]) -> tuple[str, ...]:
    """Those of its section and of the pools that buy there, each of which must have one."""
    named = {
        region
        for spec in specs
        for offer in spec.offers
        if offer.provider == name
        for region in offer.regions
    }
    if "" in named:
        raise Invalid(
            "navarch.no_region",
            f"A pool that buys from {name} names no region.",
            hint="Write region: for the pool, or for the provider.",
        )
    return tuple(sorted(named | {section.region} - {""}))
