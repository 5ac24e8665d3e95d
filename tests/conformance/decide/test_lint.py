"""Each rule of the linter on the one mistake that it is for; a product without mistakes has no finding."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from neorion.conformance.decide.lint import lint
from neorion.conformance.decide.lint_context import LintContext
from neorion.conformance.decide.product_file import blank_product, product_mapping
from neorion.conformance.decide.verdict import FORCED_NOTE
from neorion.keel.base import Finding, Severity

Raw = dict[str, Any]
CONTEXT = LintContext(
    frozenset({"docs/a.md", "gang_scheduling/junit.xml", "old/junit.xml"}),
    {
        "gang_scheduling/junit.xml": {"NeorionGangScheduling": "pass", "Skipped": "skip"},
        "old/junit.xml": {"NeorionGangScheduling": "pass", "Broken": "fail"},
    },
    "1.35",
)


def good(version: str = "1.35") -> Raw:
    raw: Raw = copy.deepcopy(dict(product_mapping(blank_product(version))))
    raw["metadata"] |= {
        "platformName": "Pier",
        "platformVersion": "2.1",
        "vendorName": "Harbour Works",
        "websiteUrl": "https://harbour.test/pier",
        "repoUrl": "",
        "documentationUrl": "https://harbour.test/docs",
        "productLogoUrl": "https://harbour.test/pier.svg",
        "description": "A platform.",
        "contactEmailAddress": "pier@harbour.test",
        "k8sConformanceUrl": f"https://github.com/cncf/k8s-conformance/tree/master/v{version}/pier",
    }
    for entries in raw["spec"].values():
        for entry in entries:
            entry |= {"status": "Implemented", "evidence": [f"https://harbour.test/{entry['id']}"]}
    return raw


def entry(raw: Raw, name: str = "gang_scheduling") -> Raw:
    return next(each for entries in raw["spec"].values() for each in entries if each["id"] == name)


def meta(**values: object) -> Callable[[Raw], object]:
    return lambda raw: raw["metadata"].update(values)


def claim(name: str = "gang_scheduling", **values: object) -> Callable[[Raw], object]:
    return lambda raw: entry(raw, name).update(values)


def drop(name: str) -> Callable[[Raw], object]:
    return lambda raw: raw["metadata"].pop(name)


def move(raw: Raw) -> None:
    raw["spec"]["security"].append(raw["spec"]["operator"].pop())


def swap(raw: Raw) -> None:
    raw["spec"]["schedulingOrchestration"].reverse()


def again(raw: Raw) -> None:
    raw["spec"]["security"].append(dict(entry(raw, "secure_accelerator_access")))


def reuse(raw: Raw) -> None:
    for name in ("gang_scheduling", "pod_autoscaling", "robust_controller"):
        entry(raw, name)["evidence"] = ["https://harbour.test/all"]


E, W = Severity.ERROR, Severity.WARNING
LINK = "https://harbour.test/x"
ROWS: list[tuple[str, Callable[[Raw], object], str, Severity]] = [
    ("an unknown root", lambda raw: raw.update(spek={}), "unknown_key", E),
    ("no metadata", lambda raw: raw.pop("metadata"), "root", E),
    ("no spec", lambda raw: raw.pop("spec"), "root", E),
    ("a missing value", drop("vendorName"), "missing", E),
    ("a missing conformance URL", drop("k8sConformanceUrl"), "missing", E),
    ("a placeholder", meta(vendorName="[Vendor Name]"), "placeholder", E),
    ("a value that is no text", meta(vendorName=["x"]), "not_text", E),
    ("a misspelled key", meta(vendorname="x"), "unknown_key", E),
    ("a key in snake_case", lambda raw: raw["metadata"].update(website_url=raw["metadata"].pop("websiteUrl")), "snake_case", W),
    ("a key in both cases", meta(website_url="https://harbour.test"), "twice", E),
    ("an example value", meta(repoUrl="https://github.yoyo.dyne/yoyo.git"), "example", E),
    ("a space at the end", meta(vendorName="Harbour "), "spaces", W),
    ("two lines", meta(description="a\nb"), "lines", E),
    ("an unknown version", meta(kubernetesVersion="v1.20"), "version", E),
    ("a version without its v", meta(kubernetesVersion="1.35"), "version_form", W),
    ("another folder's version", meta(kubernetesVersion="v1.34"), "folder", E),
    ("a URL that is none", meta(websiteUrl="harbour"), "url", E),
    ("an unencrypted URL", meta(websiteUrl="http://harbour.test/"), "insecure_url", W),
    ("an address that is none", meta(contactEmailAddress="me"), "email", E),
    ("a logo of pixels", meta(productLogoUrl="https://harbour.test/a.png"), "logo", E),
    ("another repository's URL", meta(k8sConformanceUrl="https://harbour.test/x"), "conformance_url", E),
    ("a conformance of another version", meta(k8sConformanceUrl="https://github.com/cncf/k8s-conformance/tree/main/v1.34/p"), "conformance_version", E),
    ("an unknown category", lambda raw: raw["spec"].update(storage=[]), "unknown_key", E),
    ("a category that is no list", lambda raw: raw["spec"].update(security={}), "not_list", E),
    ("an item that is no mapping", lambda raw: raw["spec"]["security"].append("x"), "not_entry", E),
    ("an entry without an id", lambda raw: raw["spec"]["security"].append({}), "no_id", E),
    ("an unknown id", lambda raw: raw["spec"]["security"].append({"id": "gang_sheduling"}), "unknown_id", E),
    ("an id of another version", lambda raw: raw["spec"]["security"].append({"id": "workload_sandboxing"}), "other_version", E),
    ("an unknown key of an entry", claim(proof="x"), "unknown_key", E),
    ("an entry in another category", move, "category", E),
    ("a changed description", claim(description="Gangs work."), "description", E),
    ("a changed level", claim(level="SHOULD"), "level", E),
    ("a status that is no text", claim(notes=["x"]), "entry_text", E),
    ("an entry twice", again, "twice", E),
    ("an entry that is missing", lambda raw: raw["spec"]["operator"].clear(), "absent", E),
    ("another order", swap, "order", W),
    ("an unknown status", claim(status="implemented"), "status", E),
    ("a MUST without evidence", claim(evidence=[]), "no_evidence", E),
    ("a SHOULD without evidence", claim("gpu_sharing", evidence=[]), "no_evidence", W),
    ("a MUST without a status", claim(status=""), "no_status", E),
    ("a SHOULD with evidence and no status", claim("gpu_sharing", status=""), "evidence_without_status", E),
    ("a MUST in part", claim(status="Partially Implemented"), "must", E),
    ("a MUST that is not implemented", claim(status="Not Implemented"), "must", E),
    ("a part that nothing names", claim("gpu_sharing", status="Partially Implemented"), "partial_notes", W),
    ("N/A without a reason", claim("gpu_sharing", status="N/A"), "no_reason", E),
    ("N/A for what cannot be done", claim("gpu_sharing", status="N/A", notes="We do not support it."), "cannot", E),
    ("a MUST that is N/A", claim(status="N/A", notes="One node."), "must_not_applicable", E),
    ("an absent autoscaler", claim("cluster_autoscaling", status="N/A", notes="Fixed size."), "must_not_applicable", W),
    ("simulated evidence", claim(notes=FORCED_NOTE), "simulated", W),
    ("one link for three", reuse, "reused", W),
    ("evidence that is no list", claim(evidence=LINK), "evidence_list", E),
    ("an item of evidence that is no text", claim(evidence=[{"a": "b"}, LINK]), "evidence_text", E),
    ("an empty item of evidence", claim(evidence=[" ", LINK]), "evidence_empty", W),
    ("evidence twice", claim(evidence=[LINK, LINK]), "evidence_twice", W),
    ("a link that is none", claim(evidence=["https://nowhere"]), "evidence_url", E),
    ("a link to an example", claim(evidence=["https://www.example.com/a"]), "evidence_example", E),
    ("a link to a private address", claim(evidence=["https://10.0.0.1/a"]), "evidence_private", E),
    ("an unencrypted link", claim(evidence=["http://harbour.test/a"]), "evidence_insecure", W),
    ("a scheme that cannot be followed", claim(evidence=["s3://bucket/a"]), "evidence_scheme", E),
    ("a path out of the folder", claim(evidence=["../a.md"]), "outside", E),
    ("a file that is not there", claim(evidence=["docs/b.md"]), "no_file", E),
    ("artefacts before 1.37", claim(evidence=["file://gang_scheduling/junit.xml"]), "artefact_version", E),
    ("an artefact without the test", claim("pod_autoscaling", evidence=["gang_scheduling/junit.xml"]), "no_test", E),
]  # fmt: skip
ROWS_137: list[tuple[str, Callable[[Raw], object], str, Severity]] = [
    ("a test in a page", claim(evidence=["file://docs/a.md#Test"]), "fragment", E),
    ("a test that is not there", claim(evidence=["file://gang_scheduling/junit.xml#None"]), "no_test", E),
    (
        "a test that was skipped",
        claim(evidence=["file://gang_scheduling/junit.xml#Skipped"]),
        "test_skipped",
        E,
    ),
    (
        "a failed test beside it",
        claim(evidence=["file://old/junit.xml#NeorionGangScheduling"]),
        "test_failed",
        E,
    ),
]


def codes(findings: list[Finding]) -> set[tuple[str, Severity]]:
    return {(each.code.removeprefix("lint."), each.severity) for each in findings}


@pytest.mark.parametrize("version", ["1.33", "1.34", "1.35", "1.36", "1.37"])
def test_a_product_without_mistakes_has_no_finding(version: str):
    assert lint(good(version), LintContext()) == []


@pytest.mark.parametrize(
    ("mistake", "code", "severity"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_a_mistake_is_found(mistake: Callable[[Raw], object], code: str, severity: Severity):
    raw = good()
    mistake(raw)
    assert (code, severity) in codes(lint(raw, CONTEXT))


@pytest.mark.parametrize(
    ("mistake", "code", "severity"), [row[1:] for row in ROWS_137], ids=[row[0] for row in ROWS_137]
)
def test_a_mistake_about_tests_is_found(mistake: Callable[[Raw], object], code: str, severity: Severity):
    raw = good("1.37")
    mistake(raw)
    assert (code, severity) in codes(lint(raw, LintContext(CONTEXT.files, CONTEXT.artefacts)))


@pytest.mark.parametrize("raw", [None, "text", [], 3])
def test_a_file_that_is_no_mapping_is_explained(raw: object):
    assert codes(lint(raw, CONTEXT)) == {("file", E)}


def test_a_named_test_that_passed_is_evidence():
    raw = good("1.37")
    entry(raw)["evidence"] = ["file://gang_scheduling/junit.xml#NeorionGangScheduling"]
    files: Mapping[str, Mapping[str, str]] = CONTEXT.artefacts
    assert lint(raw, LintContext(CONTEXT.files, files)) == []
