"""The programs a cluster is made of: which, where they lie, and how they are built from pinned Go modules, or fetched.

Starting them is not done here.
"""

from neorion.drydock.binaries.binary_cache import GIVEN, BinaryCache, cache_folder, ready
from neorion.drydock.binaries.build import build, build_missing
from neorion.drydock.binaries.products import PRODUCTS, Product, Release, product_named, product_of
from neorion.drydock.binaries.subprocesses import Tell, ignore_progress, run

__all__ = [
    "GIVEN",
    "PRODUCTS",
    "BinaryCache",
    "Product",
    "Release",
    "Tell",
    "build",
    "build_missing",
    "cache_folder",
    "ignore_progress",
    "product_named",
    "product_of",
    "ready",
    "run",
]
