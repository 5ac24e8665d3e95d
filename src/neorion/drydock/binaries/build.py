"""Builds products into the cache, or fetches them: once, whole, and by one builder at a time."""

import fcntl
import json
import os
import shutil
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import yaml
from anyio import to_thread

from neorion.drydock.binaries.binary_cache import BinaryCache
from neorion.drydock.binaries.go_toolchain import find_go
from neorion.drydock.binaries.products import Product, product_of
from neorion.drydock.binaries.subprocesses import Tell, ignore_progress, run

# The module and the folders that hold a product's definitions.
_DEFINITIONS: Final = {
    "karpenter": ("sigs.k8s.io/karpenter", "pkg/apis/crds", "kwok/apis/crds"),
    "scheduler-plugins": ("sigs.k8s.io/scheduler-plugins", "config/crd/bases"),
    "traefik": ("sigs.k8s.io/gateway-api", "config/crd/standard"),
}
# Of these all objects of their installation are kept.
_INSTALLATIONS: Final = ("jobset", "kueue")


async def build_missing(shelf: BinaryCache, programs: Iterable[str], tell: Tell) -> None:
    """Builds what these programs need and is not built yet."""
    for product in shelf.missing(programs):
        await build(product, shelf, tell)


async def build(product: Product, shelf: BinaryCache, tell: Tell, *, released: bool = False) -> None:
    """Builds missing products; calls `tell` with each compiled package. Two builders share the work.

    With `released`, the published releases are fetched instead.
    """
    async with _alone(shelf.cache / f"{product.name}.lock"):
        target = shelf.folder(product)
        if target.exists():
            return
        partial = target.with_name(target.name + ".part")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        if released and product.release is not None:
            from neorion.drydock.binaries.releases import fetch  # noqa: PLC0415 -- most build

            await fetch(product, product.release, partial, tell)
        else:
            await _compile(product, partial, shelf, tell)
        await _extras(product, partial, shelf)
        partial.replace(target)


async def _compile(product: Product, folder: Path, shelf: BinaryCache, tell: Tell) -> None:
    tell(f"{product.name} {product.version}")
    go = await find_go(shelf.cache)
    stamps = " ".join(f"-X {name}={value}" for name, value in product.stamp(product.version).items())
    first, *others = product.programs
    # -buildvcs=false: the state of our repository does not describe this program.
    flags = ["-v", "-trimpath", "-buildvcs=false", "-ldflags", f"-s -w {stamps}".strip()]
    flags += ["-tags", product.tags] if product.tags else []
    command = [str(go), "build", "-C", str(product.source), *flags, "-o", str(folder / first)]
    await run([*command, product.package], {**os.environ, "CGO_ENABLED": "0"}, tell)
    for name in others:
        (folder / name).symlink_to(first)


async def _extras(product: Product, folder: Path, shelf: BinaryCache) -> None:
    """Objects come from the same module as their program, so that the two always fit."""
    if product.name in _DEFINITIONS:
        await _definitions(product, folder, shelf)
    if product.name not in _INSTALLATIONS:
        return
    await build(product_of("kubectl"), shelf, ignore_progress)
    source = await _module_folder(product, product.module, shelf) / "config" / "default"
    done = await anyio.run_process([str(shelf.path("kubectl")), "kustomize", str(source)])
    # Two megabytes: YAML would cost seconds at every start, JSON costs milliseconds.
    objects = yaml.load_all(done.stdout, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    (folder / "manifests.json").write_text(json.dumps(list(objects)))


async def _definitions(product: Product, folder: Path, shelf: BinaryCache) -> None:
    module, *parts = _DEFINITIONS[product.name]
    source = await _module_folder(product, module, shelf)
    paths = [path for part in parts for path in sorted((source / part).glob("*.yaml"))]
    objects = [each for path in paths for each in yaml.safe_load_all(path.read_text())]
    kept = [each for each in objects if each and each["kind"] == "CustomResourceDefinition"]
    (folder / "manifests.json").write_text(json.dumps(kept))


async def _module_folder(product: Product, module: str, shelf: BinaryCache) -> Path:
    go = await find_go(shelf.cache)
    found = await anyio.run_process(
        [str(go), "list", "-C", str(product.source), "-m", "-f", "{{.Dir}}", module]
    )
    return Path(found.stdout.decode().strip())


@asynccontextmanager
async def _alone(lock: Path) -> AsyncGenerator[None]:
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        # In a thread: the other builder may need minutes.
        await to_thread.run_sync(fcntl.flock, file, fcntl.LOCK_EX, abandon_on_cancel=True)
        yield
