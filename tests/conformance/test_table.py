"""The table of platforms: every check has been seen to pass, to fail, and to be without a conclusion."""

import ast
import inspect
from types import ModuleType

import pytest

from neorion.conformance.adapters.checks import CHECKS
from neorion.conformance.decide.explain import method_of
from neorion.conformance.model import VERSIONS, Verdict, requirement_ids
from tests.conformance.checker import Rows
from tests.conformance.kube import test_devices, test_platforms
from tests.conformance.node import test_real_nodes, test_services

MODULES = (test_devices, test_platforms, test_real_nodes, test_services)
TABLE: dict[str, Rows] = {name: rows for module in MODULES for name, rows in module.PLATFORMS.items()}
IDS = sorted({name for version in VERSIONS for name in requirement_ids(version)})
# What is needed to check it has no part that can be built here. A run skips it with its needs.
UNCHECKED = frozenset({"advanced_inference_ingress"})


def test_every_requirement_is_in_the_table_or_is_said_to_have_no_check():
    assert len(IDS) == 16
    assert set(TABLE) == set(CHECKS) == set(IDS) - UNCHECKED
    for name in UNCHECKED:
        assert method_of(name).needs


@pytest.mark.parametrize("requirement", sorted(TABLE))
def test_every_check_has_a_sound_platform_a_broken_one_and_a_prevented_control(requirement: str):
    verdicts = {verdict for _, verdict, _ in TABLE[requirement].values()}
    assert verdicts >= {Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_row_of_the_table_is_used_by_a_test(module: ModuleType):
    used = {
        name.id
        for function in ast.parse(inspect.getsource(module)).body
        if isinstance(function, ast.AsyncFunctionDef) and function.name.startswith("test_")
        for name in ast.walk(function)
        if isinstance(name, ast.Name)
    }
    # Rows by their name in the module; a test may also take them out of the whole table.
    rows = {
        name for name, value in vars(module).items() if name.isupper() and value in module.PLATFORMS.values()
    }
    assert rows <= used or "PLATFORMS" in used, sorted(rows - used)
