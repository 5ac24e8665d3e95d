"""The whole file, and what its sections may contradict each other in."""

from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import Discriminator, Field, Tag

from neorion.keel.base import did_you_mean
from neorion.keel.config import Model, NameField, Problem
from neorion.navarch.adapters.config_file.pools import Defaults, PoolModel
from neorion.navarch.adapters.config_file.sections import ProviderModel, ServerModel, provider_problems


def _form(value: object) -> str:
    return "map" if isinstance(value, dict) else "list"


Pools = Annotated[
    Annotated[tuple[PoolModel, ...], Tag("list")] | Annotated[dict[NameField, PoolModel], Tag("map")],
    Discriminator(_form),
]


class ConfigFile(Model):
    """One control plane: itself, the clouds it buys from, and its pools."""

    server: ServerModel = Field(default_factory=ServerModel, description="The control plane itself.")
    providers: dict[NameField, ProviderModel] = Field(default_factory=dict, description="Clouds by name.")
    pools: Pools = Field(default=(), description="Pools, as a list or by name.")
    defaults: Defaults = Field(default_factory=Defaults, description="What holds for every pool.")

    def named_pools(self) -> list[tuple[str, PoolModel, tuple[str | int, ...]]]:
        """Name, pool, and the path to it."""
        if isinstance(self.pools, dict):
            return [(name, pool, ("pools", name)) for name, pool in self.pools.items()]
        return [(pool.name or "", pool, ("pools", index)) for index, pool in enumerate(self.pools)]

    def problems(self) -> Iterable[Problem]:
        for name, provider in self.providers.items():
            yield from provider_problems(name, provider)
        yield from self._names()
        names = [name for name, _, _ in self.named_pools()]
        if self.server.iris is not None and self.server.iris.pool not in names:
            named = self.server.iris.pool
            yield Problem(
                ("server", "iris", "pool"), f'There is no pool "{named}".', did_you_mean(named, names)
            )
        for _, pool, steps in self.named_pools():
            yield from self._clouds(pool, steps)
            if pool.setup_commands and not (pool.ssh_private_key_path or self.defaults.ssh_private_key_path):
                yield Problem((*steps, "setup_commands"), '"setup_commands" need "ssh_private_key_path".')

    def _names(self) -> Iterator[Problem]:
        taken: set[str] = set()
        for name, pool, steps in self.named_pools():
            if not name:
                yield Problem(steps, 'A pool in a list needs "name".')
            elif name in taken:
                yield Problem((*steps, "name"), f'There are two pools "{name}".', "Rename one of them.")
            elif pool.name is not None and pool.name != name:
                yield Problem(
                    (*steps, "name"), f'The pool "{name}" calls itself "{pool.name}".', 'Remove "name".'
                )
            taken.add(name)

    def _clouds(self, pool: PoolModel, steps: tuple[str | int, ...]) -> Iterator[Problem]:
        named = [(pool.provider, (*steps, "provider"))] if pool.provider else []
        named += [
            (one.name, (*steps, "providers", index, "name")) for index, one in enumerate(pool.providers)
        ]
        for name, where in named:
            if name not in self.providers:
                hint = did_you_mean(name, self.providers)
                yield Problem(where, f'There is no provider "{name}".', hint)
