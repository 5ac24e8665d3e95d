"""The public surface is a committed list: adding or removing a name is a visible change."""

import importlib
import pkgutil
from pathlib import Path

import neorion

LIST = Path(__file__).parent / "surface.txt"


def public_names() -> list[str]:
    """Every name in the `__all__` of every package, underscored and generated packages apart."""
    packages = ["neorion"] + [
        found.name
        for found in pkgutil.walk_packages(neorion.__path__, "neorion.")
        if found.ispkg and "gen" not in found.name.split(".") and "._" not in found.name
    ]
    names: list[str] = []
    for package in packages:
        module = importlib.import_module(package)
        names += [f"{package}.{name}" for name in getattr(module, "__all__", ())]
    return sorted(names)


def test_the_surface_is_the_committed_list():
    committed = LIST.read_text().splitlines()
    found = public_names()
    gone, new = sorted(set(committed) - set(found)), sorted(set(found) - set(committed))
    assert (gone, new) == ([], []), "if meant: python -m tests.test_surface > tests/surface.txt"


def test_every_public_name_exists_and_all_is_sorted():
    for package in sorted({name.rpartition(".")[0] for name in public_names()}):
        module = importlib.import_module(package)
        names: list[str] = list(module.__all__)
        assert all(hasattr(module, name) for name in names), package
        assert len(set(names)) == len(names), package


if __name__ == "__main__":
    print("\n".join(public_names()))  # noqa: T201 -- this is how the list is made
