"""The cache of built programs, and the folder of ready ones that a user supplies."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from neorion.drydock.binaries.products import Product, product_of
from neorion.keel.base import NotFound

# A folder of ready programs with the layout of envtest: kube-apiserver, etcd, kubectl, ….
GIVEN: Final = "NEORION_DRYDOCK_BINARIES"


def cache_folder(env: Mapping[str, str]) -> Path:
    home = env.get("XDG_CACHE_HOME") or Path(env.get("HOME", "/")) / ".cache"
    return Path(home) / "neorion" / "drydock"


@dataclass(frozen=True, slots=True)
class BinaryCache:
    """Programs by name: the user's own first, then those built into the cache."""

    cache: Path
    given: Path | None = None

    @classmethod
    def of(cls, env: Mapping[str, str] | None = None, given: Path | None = None) -> "BinaryCache":
        env = os.environ if env is None else env
        named = env.get(GIVEN)
        given = given or (Path(named) if named else None)
        return cls(cache_folder(env), given.absolute() if given else None)

    def with_given(self, folder: str) -> "BinaryCache":
        """The same cache with a folder of ready programs, unless it has one already."""
        return replace(self, given=Path(folder)) if folder and self.given is None else self

    def folder(self, product: Product) -> Path:
        """The folder of a product. It appears when the product is completely built."""
        return self.cache / f"{product.name}-{product.version.removeprefix('v')}-{product.digest}"

    def find(self, program: str) -> Path | None:
        product = product_of(program)
        places = [self.folder(product) / program]
        if self.given is not None:
            places.insert(0, self.given / program)
        return next((path for path in places if os.access(path, os.X_OK)), None)

    def path(self, program: str) -> Path:
        found = self.find(program)
        if found is None:
            raise NotFound(
                "drydock.program_missing",
                f"{program} is not built yet.",
                hint=f"Build it: neorion drydock build; or name a folder that holds it in {GIVEN}.",
            )
        return found

    def missing(self, programs: Iterable[str]) -> list[Product]:
        """The products to build before these programs can run."""
        return list(dict.fromkeys(product_of(name) for name in programs if self.find(name) is None))


def ready(*programs: str) -> bool:
    """True if these programs can run now, without building anything."""
    return not BinaryCache.of().missing(programs)
