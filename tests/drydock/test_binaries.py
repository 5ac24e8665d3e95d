"""How the cluster's programs come to be on this machine."""

import hashlib
import io
import os
import platform
import tarfile
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from aiohttp import web

from neorion.drydock.binaries import (
    GIVEN,
    PRODUCTS,
    BinaryCache,
    Product,
    Release,
    build,
    product_named,
    product_of,
)
from neorion.keel.base import NotFound, Retry, Terminal
from tests.keel.kube.stage import serving

pytestmark = pytest.mark.anyio

HELLO = """package main

import "fmt"

var version = "none"

func main() { fmt.Println("hello", version) }
"""


def _hello(tools: Path) -> Product:
    (tools / "hello").mkdir()
    (tools / "hello" / "go.mod").write_text("module hello\n\ngo 1.21\n\nrequire example.com/hello v1.2.3\n")
    (tools / "hello" / "main.go").write_text(HELLO)
    stamp = {"main.version": "v1.2.3"}
    return Product("hello", "example.com/hello", ".", ("hello", "hallo"), lambda _: stamp, tools)


def _program(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o755)


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: product.name)
def test_every_product_is_pinned_with_the_sums_of_all_it_needs(product: Product):
    assert product.version.startswith("v")
    assert (product.source / "go.sum").read_text()


def test_what_a_person_gives_comes_before_what_was_built(tmp_path: Path):
    shelf = BinaryCache.of({"XDG_CACHE_HOME": str(tmp_path / "cache"), GIVEN: str(tmp_path / "given")})
    built = shelf.folder(product_of("etcd")) / "etcd"
    with pytest.raises(NotFound, match="etcd is not built yet"):
        shelf.path("etcd")
    _program(built)
    assert shelf.path("etcd") == built
    _program(tmp_path / "given" / "etcd")
    assert shelf.path("etcd") == tmp_path / "given" / "etcd"


def test_what_is_missing_is_named_once(tmp_path: Path):
    shelf = BinaryCache(tmp_path)
    _program(shelf.folder(product_of("etcd")) / "etcd")
    missing = shelf.missing(["etcd", "kubelet", "kube-apiserver"])
    assert [product.name for product in missing] == ["kubernetes"]


def test_a_change_of_the_pins_is_another_build(tmp_path: Path):
    product = _hello(tmp_path)
    before = product.digest
    (tmp_path / "hello" / "go.mod").write_text("module hello\n")
    assert product.digest != before


def test_an_unknown_product_is_answered_with_the_nearest():
    with pytest.raises(NotFound) as caught:
        product_named("kueu")
    assert caught.value.hint == 'did you mean "kueue"?'


@pytest.mark.needs("go")
@pytest.mark.timeout(240)
async def test_two_builders_do_the_work_once(tmp_path: Path):
    tools = tmp_path / "tools"
    tools.mkdir()
    product, shelf, told = _hello(tools), BinaryCache(tmp_path / "cache"), list[str]()
    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(build, product, shelf, told.append)
    assert told.count("hello v1.2.3") == 1
    for name in product.programs:
        done = await anyio.run_process([str(shelf.folder(product) / name)])
        assert done.stdout == b"hello v1.2.3\n"


@pytest.mark.needs("go")
@pytest.mark.timeout(240)
async def test_a_build_that_failed_leaves_nothing_that_looks_built(tmp_path: Path):
    tools = tmp_path / "tools"
    tools.mkdir()
    product, shelf = _hello(tools), BinaryCache(tmp_path / "cache")
    (tools / "hello" / "main.go").write_text("package main\n\nfunc main() { undefined() }\n")
    with pytest.raises(Terminal, match="undefined: undefined"):
        await build(product, shelf, lambda _: None)
    assert not shelf.folder(product).exists()
    (tools / "hello" / "main.go").write_text(HELLO)
    await build(product, shelf, lambda _: None)
    assert os.access(shelf.folder(product) / "hello", os.X_OK)


ARCH = {"x86_64": "amd64"}.get(platform.machine(), "arm64")
PROGRAM = b"#!/bin/sh\necho hello\n"


def _archive(member: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo(member)
        entry.size = len(PROGRAM)
        archive.addfile(entry, io.BytesIO(PROGRAM))
    return packed.getvalue()


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


async def _fetched(files: dict[str, bytes], release: Release, folder: Path) -> Path:
    """What a server that has these files brings of the programs `hello` and `hallo`."""
    tools = folder / "tools"
    tools.mkdir()

    async def answer(request: web.Request) -> web.Response:
        found = files.get(request.path)
        return web.Response(body=found) if found is not None else web.Response(status=404)

    async with serving(answer) as server:
        there = replace(
            release, address=server + release.address, sums=release.sums and server + release.sums
        )
        product, shelf = replace(_hello(tools), release=there), BinaryCache(folder / "cache")
        try:
            await build(product, shelf, lambda _: None, released=True)
        finally:
            assert (shelf.folder(product).exists()) is ((shelf.folder(product) / "hello").exists())
        return shelf.folder(product)


async def test_released_programs_are_fetched_and_compared_with_their_sums(tmp_path: Path):
    files = {f"/v1.2.3/{ARCH}/{name}": PROGRAM for name in ("hello", "hallo")}
    files |= {f"{path}.sha256": _sum(content).encode() for path, content in files.items()}
    folder = await _fetched(
        files, Release("/{version}/{arch}/{program}", "/{version}/{arch}/{program}.sha256"), tmp_path
    )
    assert sorted(path.name for path in folder.iterdir()) == ["hallo", "hello"]
    done = await anyio.run_process([str(folder / "hallo")])
    assert done.stdout == b"hello\n"


async def test_released_programs_may_come_in_archives(tmp_path: Path):
    names = [f"{name}-1.2.3.tgz" for name in ("hello", "hallo")]
    files = {f"/{name}": _archive(f"in/{name.partition('-')[0]}") for name in names}
    sums = "".join(f"{_sum(content)} *{path[1:]}\n" for path, content in files.items())
    release = Release("/{program}-{number}.tgz", "/SUMS", "in/{program}")
    folder = await _fetched({**files, "/SUMS": sums.encode()}, release, tmp_path)
    done = await anyio.run_process([str(folder / "hello")])
    assert done.stdout == b"hello\n"


async def test_an_archive_without_its_program_is_refused(tmp_path: Path):
    with pytest.raises(Terminal, match="has no program in/hello") as refused:
        await _fetched(
            {"/hello.tgz": _archive("in/other")}, Release("/{program}.tgz", "", "in/{program}"), tmp_path
        )
    assert refused.value.code == "drydock.release_lacks"


@pytest.mark.parametrize("sums", [_sum(b"other"), "", f"{_sum(PROGRAM)} another-file"])
async def test_a_program_that_is_not_what_its_makers_say_is_thrown_away(tmp_path: Path, sums: str):
    with pytest.raises(Terminal) as refused:
        await _fetched({"/hello": PROGRAM, "/sums": sums.encode()}, Release("/{program}", "/sums"), tmp_path)
    assert refused.value.code == "drydock.release_sum"


async def test_a_release_that_cannot_be_reached_says_what_to_do_instead(tmp_path: Path):
    with pytest.raises(Retry, match="/hello cannot be fetched: 404 Not Found") as refused:
        await _fetched({}, Release("/{program}"), tmp_path)
    assert "--released" in refused.value.hint


async def test_without_go_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    product = replace(product_of("etcd"))
    with pytest.raises(Terminal, match="needs Go") as caught:
        await build(product, BinaryCache(tmp_path / "cache"), lambda _: None)
    assert "Install Go 1.26" in caught.value.hint
