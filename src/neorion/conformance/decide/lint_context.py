"""The facts beside the file that the linter knows, and the words that its findings share."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from neorion.keel.base import Finding, Severity, did_you_mean


class LintContext(Struct, frozen=True):
    """`files` are those of the product's folder. `artefacts` holds the tests of each that the validator would parse."""

    files: frozenset[str] = frozenset()
    artefacts: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    # The version in the folder's path, as in v1.35/product/PRODUCT.yaml; empty where there is none.
    folder_version: str = ""


def error(code: str, subject: str, sentence: str, hint: str = "") -> Finding:
    return Finding(Severity.ERROR, f"lint.{code}", subject, sentence, hint)


def warning(code: str, subject: str, sentence: str, hint: str = "") -> Finding:
    return Finding(Severity.WARNING, f"lint.{code}", subject, sentence, hint)


def lint_keys(subject: str, mapping: Mapping[str, object], known: Sequence[str]) -> Iterator[Finding]:
    for key in mapping:
        if str(key) not in known:
            yield error("unknown_key", subject, f'"{key}" is not a known key.', did_you_mean(str(key), known))
