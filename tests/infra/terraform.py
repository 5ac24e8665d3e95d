"""Reads a folder of Terraform and finds what `terraform validate` would refuse without a provider's schema."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, cast

import hcl2

# An address in an expression: var.NAME, local.NAME, data.TYPE.NAME or TYPE.NAME.
_REFERENCE = re.compile(r"(?<![\w.])(?:(data)|([a-z]\w*))\.([a-z_]\w*)(?:\.([a-z_]\w*))?")
# Names that an expression brings itself.
_BUILT_IN = frozenset({"count", "each", "path", "self", "terraform"})


@dataclass(slots=True)
class Module:
    """One folder: its blocks by address, the expressions of each, and its providers."""

    folder: Path
    blocks: dict[str, Any] = field(default_factory=dict[str, Any])
    providers: set[str] = field(default_factory=set[str])

    @classmethod
    def read(cls, folder: Path) -> "Module":
        module = cls(folder)
        for file in sorted(folder.glob("*.tf")):
            module.add(file.read_text())
        return module

    def add(self, text: str) -> None:
        for kind, bodies in _labels(hcl2.loads(text)):
            for body in bodies if isinstance(bodies, list) else ():
                self._add(str(kind), cast("dict[str, Any]", body))

    def _add(self, kind: str, body: dict[str, Any]) -> None:
        match kind:
            case "resource" | "data":
                for type_, named in _labels(body):
                    for name, content in _labels(named):
                        self._new(f"{'data.' if kind == 'data' else ''}{type_}.{name}", content)
            case "variable" | "output" | "provider":
                for name, content in _labels(body):
                    self._new(f"{'var' if kind == 'variable' else kind}.{name}", content)
            case "locals":
                for name, content in _labels(body):
                    self._new(f"local.{name}", content)
            case "terraform":
                for required in body["required_providers"]:
                    self.providers |= {name for name, _ in _labels(required)}
            case _:
                raise ValueError(f"unknown block {kind}")

    def _new(self, address: str, content: object) -> None:
        if address in self.blocks:
            raise ValueError(f"{address} is defined twice")
        self.blocks[address] = content

    def references(self, address: str) -> set[str]:
        return {found for text in _texts(self.blocks[address]) for found in _references(text)}

    def flaws(self) -> list[str]:
        return [
            *self._unknown(),
            *self._unused(),
            *self._without_provider(),
            *self._cycles(),
            *self._templates(),
        ]

    def _unknown(self) -> Iterator[str]:
        for address in self.blocks:
            for found in sorted(self.references(address) - self.blocks.keys()):
                yield f"{address}: {found} is not defined"

    def _unused(self) -> Iterator[str]:
        used = {found for address in self.blocks for found in self.references(address)}
        for address in self.blocks.keys() - used:
            if address.startswith(("var.", "local.", "data.")):
                yield f"{address} is not used"

    def _without_provider(self) -> Iterator[str]:
        for address in self.blocks:
            kind, _, rest = address.partition(".")
            type_ = rest if kind == "data" else kind
            if (
                kind not in {"var", "local", "output", "provider"}
                and type_.split("_")[0] not in self.providers
            ):
                yield f"{address}: no provider is required for it"

    def _cycles(self) -> Iterator[str]:
        graph = {
            address: self.references(address) & self.blocks.keys() - {address} for address in self.blocks
        }
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            yield f"cycle: {error.args[1]}"

    def _templates(self) -> Iterator[str]:
        """The placeholders of each file in policies/ against the values that it is given."""
        values = cast("Mapping[str, Any]", self.blocks.get("local.policy_values", {}))
        given, used = {name for name, _ in _labels(values)}, set[str]()
        for file in sorted(self.folder.glob("policies/*.json")):
            found = set(re.findall(r"\$\{(\w+)\}", file.read_text()))
            used |= found
            for name in sorted(found - given):
                yield f"{file.name}: {name} is not given"
        for name in sorted(given - used):
            yield f"local.policy_values: {name} is not used"


def _labels(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, content in body.items():
        if not name.startswith("__"):
            yield name.strip('"'), content


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, content in cast("dict[str, Any]", value).items():
            if name != "__inline_comments__":
                yield name
                yield from _texts(content)
    elif isinstance(value, list):
        for content in cast("list[Any]", value):
            yield from _texts(content)


def _references(text: str) -> Iterator[str]:
    code = _code(text)
    bound = {name for pair in re.findall(r"\bfor (\w+)(?:, (\w+))?", code) for name in pair}
    for found in _REFERENCE.finditer(code):
        data, first, second, third = found.groups()
        if data:
            yield f"data.{second}.{third}"
        elif first not in _BUILT_IN | bound:
            yield f"{first}.{second}"


def _code(text: str) -> str:
    """What stands in `${}`, without the text in quotes in it, but with the code in these quotes."""
    out, modes, at = list[str](), ["text"], 0
    while at < len(text):
        mode, char = modes[-1], text[at]
        if mode != "code" and text.startswith("${", at):
            modes.append("code")
            out.append(" ")
            at += 1
        elif mode == "code" and char in '"{':
            modes.append("quoted" if char == '"' else "code")
        elif (mode == "code" and char == "}") or (mode == "quoted" and char == '"'):
            modes.pop()
        elif mode == "quoted" and char == "\\":
            at += 1
        if modes[-1] == "code" and char not in '"${}':
            out.append(char)
        elif modes[-1] == "code":
            out.append(" ")
        at += 1
    return "".join(out)
