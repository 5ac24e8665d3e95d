"""Rules for evidence: links of a form that can be followed, files that are there, tests that passed."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, cast
from urllib.parse import urlsplit

from neorion.conformance.decide.artefacts import test_name
from neorion.conformance.decide.lint_context import LintContext, error, warning
from neorion.conformance.decide.lint_metadata import is_example
from neorion.keel.base import Finding

# The first version whose validator parses artefacts.
_ARTEFACTS_SINCE: Final = 37
_ARTEFACTS: Final = ("junit.xml", "results.json", "e2e.log")
_PRIVATE: Final = re.compile(r"localhost|127\.|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|\[?::1")


def lint_evidence(name: str, evidence: object, version: str, context: LintContext) -> Iterator[Finding]:
    if evidence is None or evidence == "":
        return
    if not isinstance(evidence, list):
        yield error(
            "evidence_list",
            name,
            "The evidence is not a list, which breaks the validator.",
            "Write one item per link.",
        )
        return
    items = cast("list[object]", evidence)
    for each, count in Counter(str(item) for item in items).items():
        if count > 1:
            yield warning("evidence_twice", name, f"{each[:80]} is there {count} times.", "Keep one.")
    for item in items:
        if not isinstance(item, str):
            yield error(
                "evidence_text", name, "An item of the evidence is not a text.", "Write a URL or a path."
            )
        elif not item.strip():
            yield warning("evidence_empty", name, "An item of the evidence is empty.", "Remove it.")
        elif item.startswith(("http://", "https://")):
            yield from _lint_link(name, item)
        else:
            yield from _lint_file(name, item, version, context)


def _lint_link(name: str, url: str) -> Iterator[Finding]:
    host = urlsplit(url).hostname or ""
    if " " in url or "." not in host:
        yield error("evidence_url", name, f'"{url[:80]}" is not a URL.', "Correct the link.")
    elif is_example(url):
        yield error(
            "evidence_example", name, f"{url[:80]} is an example.", "Link the product's own evidence."
        )
    elif _PRIVATE.match(host):
        yield error("evidence_private", name, f"{url[:80]} is not public.", "Publish the evidence.")
    elif url.startswith("http://"):
        yield warning("evidence_insecure", name, f"{url[:80]} is not encrypted.", "Write https://….")


def _lint_file(name: str, item: str, version: str, context: LintContext) -> Iterator[Finding]:
    has_scheme = item.startswith("file://")
    path, _, fragment = item.removeprefix("file://").partition("#")
    if "://" in path:
        yield error(
            "evidence_scheme",
            name,
            f'"{item[:80]}" has a scheme that cannot be followed.',
            "Write https://… or a path.",
        )
        return
    if (has_scheme or fragment) and int(version.partition(".")[2]) < _ARTEFACTS_SINCE:
        yield error(
            "artefact_version",
            name,
            f"Version {version} does not parse artefacts.",
            "Link a page, or a path without file://.",
        )
    if path.startswith("/") or ".." in path.split("/"):
        yield error(
            "outside",
            name,
            f"{path[:80]} lies outside the product's folder.",
            "Copy the file into the folder.",
        )
    elif path not in context.files:
        yield error(
            "no_file", name, f"{path[:80]} is not in the product's folder.", "Copy the file into the folder."
        )
    elif fragment:
        yield from _lint_test(name, path, fragment, context)
    elif path.rpartition("/")[2] in _ARTEFACTS and test_name(name) not in context.artefacts.get(path, {}):
        yield error(
            "no_test", name, f"{path[:80]} has no test of this requirement.", f"Name one: {path}#TEST."
        )


def _lint_test(name: str, path: str, test: str, context: LintContext) -> Iterator[Finding]:
    if path.rpartition("/")[2] not in _ARTEFACTS:
        yield error(
            "fragment",
            name,
            f"{path[:80]} is not an artefact that tests can be named in.",
            f"Use {', '.join(_ARTEFACTS)}.",
        )
        return
    action = context.artefacts.get(path, {}).get(test)
    if action is None:
        yield error("no_test", name, f"{path[:80]} has no test {test[:60]}.", "Name a test of the artefact.")
    elif action == "skip":
        yield error("test_skipped", name, f"The test {test[:60]} was skipped.", "Name a test that ran.")
    failed = sorted(each for each, done in context.artefacts.get(path, {}).items() if done == "fail")
    if failed:
        yield error(
            "test_failed", name, f"{path[:80]} has failed tests, as {failed[0][:60]}.", "Repeat the run."
        )
