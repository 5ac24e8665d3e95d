"""The linter of PRODUCT.yaml: the program's own rules without a network, and stricter ones that reviewers ask for.

Takes the file as plain mappings, lists and texts, because a file that does not fit the schema has to be explained too.
"""

from collections.abc import Mapping
from typing import cast

from neorion.conformance.decide.lint_context import LintContext, error, lint_keys
from neorion.conformance.decide.lint_metadata import lint_metadata, version_of
from neorion.conformance.decide.lint_spec import lint_spec
from neorion.keel.base import Finding

_ROOTS = ("metadata", "spec")


def lint(raw: object, context: LintContext) -> list[Finding]:
    """All findings, in the order of the file."""
    if not isinstance(raw, Mapping):
        return [
            error(
                "file",
                "PRODUCT.yaml",
                "The file is not a mapping.",
                "Begin with: neorion conformance product init.",
            )
        ]
    product = cast("Mapping[str, object]", raw)
    found = list(lint_keys("PRODUCT.yaml", product, _ROOTS))
    parts: dict[str, Mapping[str, object]] = {}
    for root in _ROOTS:
        value = product.get(root)
        if isinstance(value, Mapping):
            parts[root] = cast("Mapping[str, object]", value)
        else:
            found.append(
                error("root", root, f'"{root}" is missing or is not a mapping.', f"Add the section {root}.")
            )
    if "metadata" in parts:
        found += lint_metadata(parts["metadata"], context)
    version = version_of(parts.get("metadata", {}))
    if "spec" in parts and version:
        found += lint_spec(parts["spec"], version, context)
    return found
