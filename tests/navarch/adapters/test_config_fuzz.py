"""Whatever stands in a file: it is taken, or refused with a type, in bounded time; and what is taken can be decided on."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from neorion.keel.base import Error
from neorion.keel.config import Model, loads
from neorion.navarch.adapters.config_file import (
    ConfigFile,
    PolicyFile,
    default_policy,
    policies_of,
    pool_specs,
)
from neorion.navarch.adapters.config_file.policy_tests import PolicyTestFile
from neorion.navarch.decide import plan
from neorion.navarch.decide.policy import compiled, evaluate
from neorion.navarch.model import PoolState, PoolView
from neorion.navarch.testing import NOW
from tests.navarch.adapters.test_config_file import DOCUMENT, NEWER

# Of processor time: ordinary files take some milliseconds, and the machine that tests this may be a slow one.
SECONDS_MAX = 10.0
POLICY = """
version: v1
metadata: { name: mine, description: for a test }
rules:
  - { name: bus, description: gone, condition: "event.xid == 79 && node.gpu_count > 0", result: unhealthy, action: replace }
  - { name: often, condition: "recent.exists(e, e.xid == 63) || history.same_1h > 2", result: degraded, certain: true }
"""
TESTS = """
policy: ""
tests:
  - name: a fallen GPU
    event: { type: xid, xid: 79, gpu: 3, message: fell, metrics: { a: 1.5 } }
    node: { pool: training, state: active, gpu_count: 8, age: 3h }
    recent: [{ type: xid, xid: 63, ago: 5m }]
    repairs: 1
    expect: { rule: "", result: unhealthy, action: replace, certain: true }
"""
BASES: list[tuple[str, type[Model]]] = [
    (DOCUMENT, ConfigFile),
    (NEWER, ConfigFile),
    (POLICY, PolicyFile),
    (TESTS, PolicyTestFile),
]
CEL = [
    "event",
    "node",
    "recent",
    ".xid",
    ".exists(e,e)",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "==",
    "&&",
    "!",
    "?",
    ":",
]
CEL.extend(["-", "/", "%", "0", "1", "1e308", "9223372036854775807", '"a"', "b'\\xff'", ".matches('(a+)+$')"])
HOSTILE: list[Any] = [
    *(None, True, -1, 0, 101, 2**31, 2**63 - 1, -(2**63), 10**30, 1e308, 5e-324),
    *(
        "",
        " ",
        "0",
        "-1",
        "1e9",
        "100%",
        "1e308%",
        "99999w",
        "292y",
        "10000w",
        "0.0000000001ns",
        "24:01",
        "٣:٣٠",
    ),
    *(
        "9" * 5_000,
        "x" * 5_000,
        "a:" + "9" * 5_000,
        "../../etc",
        "/",
        "\0",
        "\ud7ff",
        "Europe",
        "{{.NodeID}}",
    ),
    *("${HOME}", "${file:/dev/zero}"),
    *(
        [],
        {},
        [[]],
        {"": ""},
        [{}],
        {"type": "composite", "autoscalers": []},
        ["fake"] * 300,
        list(range(300)),
    ),
]
VALUES = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(max_size=20),
    st.lists(st.sampled_from(CEL), max_size=12).map("".join),
    st.integers(),
    st.floats(allow_nan=False),
)


def places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every value of a tree, by what holds it and where."""
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from places(tree[key])


@st.composite
def mutants(draw: Callable[..., Any]) -> tuple[str, type[Model]]:
    """A good file with some things in it changed, left out, misspelt, or put where they do not belong."""
    text, model = draw(st.sampled_from(BASES))
    tree = yaml.safe_load(text)
    for _ in range(draw(st.integers(1, 3))):
        everywhere = list(places(tree))
        if not everywhere:
            break
        holder, key = draw(st.sampled_from(everywhere))
        match draw(st.sampled_from(["change", "change", "change", "remove", "rename", "transplant"])):
            case "change":
                holder[key] = deepcopy(draw(VALUES))
            case "remove":
                del holder[key]
            case "rename" if isinstance(holder, dict):
                holder[draw(st.text(max_size=8))] = holder.pop(key)
            case _:
                other, where = draw(st.sampled_from(everywhere))
                holder[key] = deepcopy(other[where])
    return yaml.safe_dump(tree, allow_unicode=True), model


def decide_on(file: object) -> None:
    """What a control plane does with a file that was taken."""
    match file:
        case ConfigFile():
            specs = pool_specs(file)
            for spec in specs.values():
                plan(PoolView(spec, PoolState(spec.name)), NOW)
            policies_of(specs, Path("nowhere"), {})
        case PolicyFile():
            compiled(file.policy("mine"))
        case PolicyTestFile():
            rules = compiled(default_policy())
            for case in file.tests:
                case.expect.differences(evaluate(rules, case.situation()))
        case _:
            raise AssertionError(file)


def take(text: str, model: type[Model]) -> None:
    began = time.process_time()
    with suppress(Error):
        decide_on(loads(text, model, {}))
    assert time.process_time() - began < SECONDS_MAX


@settings(max_examples=300, deadline=None)
@given(mutants())
def test_a_mutated_file_is_taken_or_refused_with_a_type(mutant: tuple[str, type[Model]]):
    take(*mutant)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_a_file_with_a_slip_of_the_finger_is_taken_or_refused_with_a_type(data: st.DataObject):
    text, model = data.draw(st.sampled_from(BASES))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        gone = data.draw(st.integers(0, 3))
        text = (
            text[:at]
            + data.draw(st.sampled_from("\n\t:-{}[]&*!%@`\"'#,?|> 09é\0") | st.just(""))
            + text[at + gone :]
        )
    take(text, model)


@settings(max_examples=120, deadline=None)
@given(st.lists(st.sampled_from(CEL), max_size=30).map("".join))
def test_a_condition_is_compiled_or_refused_with_a_type(condition: str):
    rule = {"name": "one", "condition": condition, "result": "healthy"}
    take(yaml.safe_dump({"rules": [rule]}), PolicyFile)


def _many(key: str, count: int) -> str:
    return f"{key}: [{', '.join(f'r{number}' for number in range(count))}]"


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\npools: [*c, *c]\n",
        "pools: " + "[" * 30_000,
        "pools: " + "{a: " * 30_000,
        "pools:\n" + "  - { name: a }\n" * 20_000,
        NEWER.replace("regions: [r1, r2], zones: []", f"{_many('regions', 4_000)}, {_many('zones', 4_000)}"),
        NEWER.replace("    max_nodes: 3", "    min_nodes: 100000\n    max_nodes: 100000"),
        DOCUMENT.replace("0.0.0.0:50051", "a:" + "9" * 5_000),
        NEWER.replace("heartbeat_interval: 10s", "heartbeat_interval: 15000w").replace(
            "heartbeat_timeout: 1m", ""
        ),
    ],
    ids=[
        "aliases",
        "deep-lists",
        "deep-maps",
        "many-pools",
        "many-places",
        "many-nodes",
        "long-port",
        "long-interval",
    ],
)
def test_bombs_are_refused_or_decided_on_in_bounded_time(text: str):
    take(text, ConfigFile)
