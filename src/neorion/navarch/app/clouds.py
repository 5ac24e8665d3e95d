"""The clouds that the file names, as providers."""

from collections.abc import Iterable

from neorion.capacity.provider import Provider
from neorion.keel.base import Invalid
from neorion.keel.cli.kit import require_extra
from neorion.navarch.adapters.config_file import sections
from neorion.navarch.model import PoolSpec


def aws(name: str, section: sections.Provider, specs: Iterable[PoolSpec]) -> Provider:
    """EC2 in every region that its section or a pool names: there its machines are looked for."""
    require_extra("aws")
    from neorion.capacity.aws import AwsProvider, AwsSettings  # noqa: PLC0415 -- only where it is bought from

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
            hint="write region: for the pool, or for the provider",
        )
    regions = tuple(sorted(named | {section.region} - {""}))
    settings = AwsSettings(regions, section.profile, section.launch_template, section.api_url)
    return AwsProvider(name, settings)
