"""PRODUCT.yaml on disk, and the artefacts beside it."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from neorion.conformance.decide.lint_context import LintContext
from neorion.conformance.decide.product_file import product_mapping
from neorion.conformance.model import Product
from neorion.keel.base import Invalid, NotFound

# Every value is a text: a version written as 1.30 is not a number.
_LOADER: Final[Any] = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_LOG_LINE: Final = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (\S+)", re.MULTILINE)
_CASE: Final = re.compile(r'<testcase\b[^>]*?\bname="([^"]*)"[^>]*?(?:/>|>(.*?)</testcase>)', re.DOTALL)
_FOLDER: Final = re.compile(r"v(1\.\d+)")
# The largest files of merged submissions have less than one megabyte.
_BYTES_MAX: Final = 32 * 1024 * 1024
_FILES_MAX: Final = 10_000


def read_raw(path: Path) -> object:
    """The file as mappings, lists and texts."""
    try:
        return yaml.load(path.read_text("utf-8"), _LOADER)  # noqa: S506 -- it knows texts only
    except FileNotFoundError:
        raise NotFound(
            "conformance.no_product",
            f"There is no file {path}.",
            hint="Make it: neorion conformance product init.",
        ) from None
    except UnicodeDecodeError:
        raise Invalid("conformance.product_text", f"{path} is not UTF-8.", hint="Save it as UTF-8.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        raise Invalid(
            "conformance.product_yaml",
            f"{path} is not YAML{where}.",
            hint="Correct the line, or begin again with product init.",
        ) from None


def read_product(path: Path) -> Product:
    """The file as the program's renderer reads it."""
    try:
        return msgspec.convert(read_raw(path), Product)
    except msgspec.ValidationError as error:
        raise Invalid(
            "conformance.product_form",
            f"{path} does not have the form of a product: {error}.",
            hint="See: neorion conformance product lint.",
        ) from None


def write_product(path: Path, product: Product) -> None:
    text = yaml.safe_dump(product_mapping(product), sort_keys=False, allow_unicode=True, width=1_000_000)
    path.write_text(text, "utf-8")


def lint_context(path: Path) -> LintContext:
    """The files beside a product's file, and the tests in its artefacts."""
    folder = path.parent
    files = [
        each for _, each in zip(range(_FILES_MAX), sorted(folder.rglob("*")), strict=False) if each.is_file()
    ]
    names = {str(each.relative_to(folder)): each for each in files}
    artefacts = {name: tests for name, each in names.items() if (tests := _tests(each)) is not None}
    found = _FOLDER.fullmatch(folder.resolve().parent.name)
    return LintContext(frozenset(names), artefacts, found[1] if found else "")


def _tests(path: Path) -> Mapping[str, str] | None:
    """The tests of an artefact and how each ended; None for other files."""
    readers = {"junit.xml": _junit_tests, "results.json": _go_tests, "e2e.log": _log_tests}
    reader = readers.get(path.name)
    if reader is None or path.stat().st_size > _BYTES_MAX:
        return None
    return reader(path.read_text("utf-8", errors="replace"))


def _junit_tests(text: str) -> dict[str, str]:
    """Read by pattern, because an XML parser would expand a hostile file's entities."""
    ends = (("<failure", "fail"), ("<error", "fail"), ("<skipped", "skip"))
    return {
        name: next((action for mark, action in ends if mark in (body or "")), "pass")
        for name, body in _CASE.findall(text)
    }


def _go_tests(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in text.splitlines():
        try:
            event = msgspec.json.decode(line, type=dict[str, object])
        except msgspec.DecodeError:
            continue
        test, action = event.get("Test"), event.get("Action")
        if isinstance(test, str) and isinstance(action, str) and action in {"pass", "fail", "skip"}:
            found[test] = action
    return found


def _log_tests(text: str) -> dict[str, str]:
    return {name: word.lower() for word, name in _LOG_LINE.findall(text)}
