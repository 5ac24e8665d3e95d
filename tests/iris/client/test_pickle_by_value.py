"""What travels with a function: the user's own files, and no installed package, wherever it is installed."""

import importlib
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import cloudpickle  # pyright: ignore[reportMissingTypeStubs] -- it has none
import pytest

from neorion.iris.client import IrisClient, pickle_by_value
from neorion.iris.client.options import BlobPayload
from neorion.iris.client.pickle_by_value import own_modules_by_value
from neorion.iris.model.pickling import dumps


@pytest.mark.parametrize(
    "folder", ["home/.local/lib/python3.11/site-packages", "usr/lib/python3/dist-packages", "project"]
)
def test_a_package_that_is_installed_anywhere_goes_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
):
    file = tmp_path / folder / "somebodys_package.py"
    file.parent.mkdir(parents=True)
    file.write_text("import threading\nlock = threading.Lock()\ndef work():\n    return lock\n")
    spec = spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, file.stem, module)
    spec.loader.exec_module(module)
    with own_modules_by_value():
        if folder == "project":
            # Pickled whole, with what cannot be.
            with pytest.raises(TypeError, match="lock"):
                cloudpickle.dumps(module.work)
        else:
            assert cloudpickle.loads(cloudpickle.dumps(module.work)) is module.work


OWN = """
import functools

@functools.lru_cache(maxsize=9)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

@functools.singledispatch
def kind(value):
    return "something"

@kind.register
def _(value: int):
    return "a number"

class Model:
    @functools.cached_property
    def size(self):
        return fib(10)

    @functools.cache
    def twice(self):
        return 2 * self.size

def work():
    model = Model()
    return model.twice(), kind(1), kind(""), fib.cache_parameters(), model
"""


def test_what_functools_wraps_around_a_users_own_travels_too(
    client: IrisClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "wrapped_own.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    own = importlib.import_module("wrapped_own")
    twice, number, other, how, model = client.wait(client.submit(own.work, "wrapped"), timeout=60)
    assert (twice, number, other, how) == (110, "a number", "something", {"maxsize": 9, "typed": False})
    assert isinstance(model, own.Model)
    assert client.map(own.fib, [10, 20]) == [55, 6765]
    # Of an installed module it is the one that the module has.
    installed = vars(re)["_compile_repl"]
    with own_modules_by_value():
        assert cloudpickle.loads(dumps(installed)) is installed


def test_threads_pickle_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Each client has a thread of its own, and what one of them chose to pickle whole is whole for its time alone."""
    (tmp_path / "own_files.py").write_text("def work():\n    return 42\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("own_files")
    monkeypatch.setitem(sys.modules, "own_files", module)

    def pickled(_: int) -> bytes:
        payload = BlobPayload()
        return payload.blobs[payload.pickled(module.work, "The function work")]

    often = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            pickles = set(threads.map(pickled, range(400)))
    finally:
        sys.setswitchinterval(often)
    # By its name it would be a few bytes.
    assert all(len(one) > 300 for one in pickles), pickles


def test_for_many_items_the_users_own_modules_are_looked_for_once(monkeypatch: pytest.MonkeyPatch):
    looked: list[str] = []
    look = pickle_by_value._is_own

    def noted(name: str, module: ModuleType) -> bool:
        looked.append(name)
        return look(name, module)

    monkeypatch.setattr(pickle_by_value, "_is_own", noted)
    payload = BlobPayload()
    assert len(set(payload.pickled_each(range(1000), "An item"))) == 1000
    assert len(looked) == len(set(looked))
