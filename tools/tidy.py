"""The house rules that no linter knows, as functions from a source file to its violations."""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

LINES_SOFT = 400
LINES_HARD = 800
FUNCTION_LINES_MAX = 60
ARGUMENTS_MAX = 6

# call → the folder that is its home. Ruff bans most of these by import; this list also sees methods and tests.
HOMES = {
    "time.time": "src/neorion/keel/clock",
    "time.time_ns": "src/neorion/keel/clock",
    "time.monotonic": "src/neorion/keel/clock",
    "time.monotonic_ns": "src/neorion/keel/clock",
    "time.clock_gettime": "src/neorion/keel/clock",
    "datetime.now": "src/neorion/keel/clock",
    "datetime.utcnow": "src/neorion/keel/clock",
    "time.sleep": "src/neorion/keel/clock",
    "asyncio.sleep": "src/neorion/keel/clock",
    "anyio.sleep": "src/neorion/keel/clock",
    "uuid.uuid4": "src/neorion/keel/clock",
    "uuid4": "src/neorion/keel/clock",
    "random.random": "src/neorion/keel/clock",
    "random.Random": "src/neorion/keel/clock",
    "asyncio.create_task": "src/neorion/keel/run",
    "asyncio.ensure_future": "src/neorion/keel/run",
    ".create_task": "src/neorion/keel/run",
}
# The simulator is an event loop: it makes the tasks that others ask for, and its tests try what it must refuse.
ALSO_AT_HOME = ("src/neorion/keel/sim/", "tests/keel/sim/")
# A test may measure real time and start tasks in a group of its own; it may not wait by sleeping.
ALLOWED_IN_TESTS = {"time.monotonic", "time.monotonic_ns", "time.clock_gettime", ".create_task"}
# Written in pieces, so that this line is not one of them.
UNFINISHED = re.compile(r"#.*\b(TO" r"DO|FIX" r"ME|X" r"XX)\b")
SKIPS = {"mark.skip", "mark.skipif", "mark.xfail", "pytest.skip", "pytest.xfail"}


@dataclass(frozen=True, slots=True)
class Source:
    """A Python file: its path from the root of the repository, and its text."""

    path: str
    text: str

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        return self.text.count("\n")


def function_size(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length > FUNCTION_LINES_MAX:
            yield f"{source.path}:{node.lineno} {node.name} has {length} lines, {FUNCTION_LINES_MAX} at most"
        wanted = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        count = sum(argument.arg not in {"self", "cls"} for argument in wanted)
        if count > ARGUMENTS_MAX and source.path.startswith("src/"):
            yield f"{source.path}:{node.lineno} {node.name} takes {count} arguments, {ARGUMENTS_MAX} at most"


def package_docstring(source: Source) -> Iterator[str]:
    """What lives here, and after a blank line what must not."""
    if source.path.startswith("src/") and source.path.endswith("__init__.py"):
        doc = ast.get_docstring(source.tree) or ""
        if "\n\n" not in doc:
            yield f"{source.path}: the docstring says what lives here and, in a second paragraph, what must not"


def calls_at_home(source: Source) -> Iterator[str]:
    if source.path.startswith("bench/"):
        return
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Call):
            continue
        for name in _names(node.func):
            home = HOMES.get(name)
            if home is None or source.path.startswith((home, *ALSO_AT_HOME)):
                continue
            if name in ALLOWED_IN_TESTS and source.path.startswith("tests/"):
                continue
            yield f"{source.path}:{node.lineno} {name} is called outside its home {home}"


def reasons(source: Source) -> Iterator[str]:
    """A suppression says why; unfinished work is not committed."""
    for number, line in enumerate(source.text.splitlines(), 1):
        if re.search(r"#\s*(noqa|type: ignore|pyright: ignore|pragma)", line) and " -- " not in line:
            yield f"{source.path}:{number} a suppression gives its reason after ' -- '"
        if UNFINISHED.search(line):
            yield f"{source.path}:{number} unfinished work belongs into an issue, not into a comment"


def skips(source: Source) -> Iterator[str]:
    """A test that does not run here says which part it needs, through the one marker."""
    if source.path.startswith("tests/") and not source.path.endswith("conftest.py"):
        for node in ast.walk(source.tree):
            if not isinstance(node, ast.Attribute):
                continue
            for name in SKIPS & set(_names(node)):
                yield f"{source.path}:{node.lineno} {name}: use @pytest.mark.needs"


RULES: tuple[Callable[[Source], Iterator[str]], ...] = (
    function_size,
    package_docstring,
    calls_at_home,
    reasons,
    skips,
)


def large_modules(sources: list[Source], listed: dict[str, int]) -> Iterator[str]:
    """A module over the soft limit stands in the list with its size; the list may only shrink."""
    sizes = {source.path: source.lines for source in sources}
    for path, size in sizes.items():
        if size > LINES_HARD:
            yield f"{path} has {size} lines, {LINES_HARD} at most"
        elif size > LINES_SOFT and path not in listed:
            yield f"{path} has {size} lines, {LINES_SOFT} at most"
    for path, allowed in listed.items():
        size = sizes.get(path, 0)
        if size > allowed:
            yield f"{path} grew from {allowed} to {size} lines; the list of large modules may only shrink"
        elif size <= LINES_SOFT:
            yield f"{path} has {size} lines: take it off the list of large modules"


def read(root: Path) -> list[Source]:
    """Every Python file of the project that people write."""
    return [
        Source(str(path.relative_to(root)), path.read_text(encoding="utf-8"))
        for top in ("src", "tests", "tools", "bench")
        for path in sorted((root / top).rglob("*.py"))
        if "gen" not in path.relative_to(root).parts
    ]


def _names(node: ast.expr) -> tuple[str, ...]:
    """`loop.create_task` is known as itself and as `.create_task`."""
    match node:
        case ast.Name(id=name):
            return (name,)
        case ast.Attribute(value=ast.Name(id=owner), attr=attribute):
            return (f"{owner}.{attribute}", f".{attribute}")
        case ast.Attribute(value=ast.Attribute(attr=owner), attr=attribute):
            return (f"{owner}.{attribute}", f".{attribute}")
        case ast.Attribute(attr=attribute):
            return (f".{attribute}",)
        case _:
            return ()
