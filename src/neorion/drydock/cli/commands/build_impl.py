"""The work of `neorion drydock build`."""

from collections.abc import Callable

from neorion.drydock.binaries import PRODUCTS, BinaryCache, build, product_named
from neorion.drydock.cli.session import run
from neorion.keel.cli.kit import Output, require_extra


def build_command(out: Output, products: tuple[str, ...], *, released: bool) -> None:
    if released:
        require_extra("drydock", "kube")
    shelf = BinaryCache.of(out.env)
    every = [product for product in PRODUCTS if product.release is not None or not released]
    chosen = [product_named(each) for each in products] or every

    async def build_all(tell: Callable[[str], None]) -> None:
        for product in chosen:
            await build(product, shelf, tell, released=released)

    run(out, "build", build_all)
    for product in chosen:
        out.text(f"{shelf.folder(product)}\n")
