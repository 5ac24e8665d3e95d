"""Rules for the section `metadata`."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from neorion.conformance.decide.lint_context import LintContext, error, lint_keys, warning
from neorion.conformance.model import PLACEHOLDER, VERSIONS
from neorion.keel.base import Finding

_KEYS: Final = (
    "kubernetesVersion",
    "platformName",
    "platformVersion",
    "vendorName",
    "websiteUrl",
    "repoUrl",
    "documentationUrl",
    "productLogoUrl",
    "description",
    "contactEmailAddress",
    "k8sConformanceUrl",
)
_OPTIONAL: Final = frozenset({"repoUrl"})
_URLS: Final = ("websiteUrl", "repoUrl", "documentationUrl", "productLogoUrl", "k8sConformanceUrl")
_URL: Final = re.compile(r"https?://[^\s/]+\.[^\s/]+(/\S*)?")
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_LOGO: Final = re.compile(r"(?i)\.(svg|eps|ai)([?#].*)?$")
_CONFORMANCE: Final = re.compile(
    r"https://github\.com/cncf/k8s-conformance/tree/(master|main)/(v1\.\d+)/[^/\s]+/?"
)
# Values of the program's own instructions, which merged files still carry.
_EXAMPLES: Final = re.compile(r"(?i)yoyo\.dyne|yoyodyne|\bexample\.(com|org|net)\b")


def is_example(value: str) -> bool:
    return _EXAMPLES.search(value) is not None


def snake_case(key: str) -> str:
    return re.sub(r"([A-Z])", lambda found: f"_{found[1].lower()}", key)


def version_of(metadata: Mapping[str, object]) -> str:
    """The version that the file is for, if it is one of the program's."""
    text = str(_value(metadata, "kubernetesVersion"))
    found = re.fullmatch(r"v?(1\.\d+)(\.\d+)?", text)
    return found[1] if found is not None and found[1] in VERSIONS else ""


def lint_metadata(metadata: Mapping[str, object], context: LintContext) -> Iterator[Finding]:
    yield from lint_keys("metadata", metadata, [*_KEYS, *map(snake_case, _KEYS)])
    for key in _KEYS:
        yield from _lint_value(key, metadata)
    yield from _lint_version(metadata, context)
    yield from _lint_forms(metadata)


def _lint_value(key: str, metadata: Mapping[str, object]) -> Iterator[Finding]:
    subject = f"metadata.{key}"
    snake = snake_case(key)
    if key in metadata and snake in metadata and snake != key:
        yield error("twice", subject, f"{key} and {snake} are both given.", f"Keep {key}.")
    elif snake in metadata and snake != key:
        yield warning("snake_case", subject, f"The program's report does not read {snake}.", f"Write {key}.")
    value = _value(metadata, key)
    if not isinstance(value, str):
        yield error("not_text", subject, "The value is not a text.", "Write one line of text.")
    elif not value:
        if key not in _OPTIONAL:
            yield error("missing", subject, "The value is missing.", f"Fill in {key}.")
    elif PLACEHOLDER.match(value):
        yield error("placeholder", subject, f"The value is still the template's: {value}.", f"Fill in {key}.")
    else:
        yield from _lint_text(subject, value)


def _lint_text(subject: str, value: str) -> Iterator[Finding]:
    if is_example(value):
        yield error("example", subject, f"The value is an example: {value[:80]}.", "Write the product's own.")
    if value != value.strip():
        yield warning("spaces", subject, "The value begins or ends with a space.", "Remove it.")
    if "\n" in value.strip():
        yield error(
            "lines", subject, "The value has several lines, which break the report.", "Write one line."
        )


def _lint_version(metadata: Mapping[str, object], context: LintContext) -> Iterator[Finding]:
    text = str(_value(metadata, "kubernetesVersion"))
    version, subject = version_of(metadata), "metadata.kubernetesVersion"
    if text and not PLACEHOLDER.match(text) and not version:
        yield error(
            "version",
            subject,
            f'"{text[:40]}" is not a version of the program.',
            f"Write one of v{', v'.join(VERSIONS)}.",
        )
    if version and not text.startswith("v"):
        yield warning(
            "version_form", subject, f'The program writes versions as "v{version}".', f"Write v{version}."
        )
    if version and context.folder_version and version != context.folder_version:
        yield error(
            "folder",
            subject,
            f"The file is for {version} and lies in v{context.folder_version}.",
            "Correct the version or move the file.",
        )


def _lint_forms(metadata: Mapping[str, object]) -> Iterator[Finding]:
    given = {
        key: value
        for key in _KEYS
        if isinstance(value := _value(metadata, key), str) and value and not PLACEHOLDER.match(value)
    }
    for key in _URLS:
        if key in given and not _URL.fullmatch(given[key]):
            yield error("url", f"metadata.{key}", f'"{given[key][:80]}" is not a URL.', "Write https://….")
        elif given.get(key, "").startswith("http://"):
            yield warning("insecure_url", f"metadata.{key}", "The URL is not encrypted.", "Write https://….")
    if "contactEmailAddress" in given and not _EMAIL.fullmatch(given["contactEmailAddress"]):
        yield error(
            "email", "metadata.contactEmailAddress", "The value is not an email address.", "Write name@host."
        )
    if "productLogoUrl" in given and not _LOGO.search(given["productLogoUrl"]):
        yield error(
            "logo", "metadata.productLogoUrl", "The logo is not SVG, EPS or AI.", "Link a vector image."
        )
    yield from _lint_conformance(given.get("k8sConformanceUrl", ""), version_of(metadata))


def _lint_conformance(url: str, version: str) -> Iterator[Finding]:
    subject = "metadata.k8sConformanceUrl"
    found = _CONFORMANCE.fullmatch(url)
    if url and found is None:
        yield error(
            "conformance_url",
            subject,
            "The URL is not one of cncf/k8s-conformance.",
            "Write https://github.com/cncf/k8s-conformance/tree/master/v1.NN/PRODUCT.",
        )
    elif found is not None and version and found[2] != f"v{version}":
        yield error(
            "conformance_version",
            subject,
            f"The URL is of {found[2]} and the product of v{version}.",
            "Link the submission of the same version.",
        )


def _value(metadata: Mapping[str, object], key: str) -> object:
    value = metadata.get(key, metadata.get(snake_case(key), ""))
    return "" if value is None else value
