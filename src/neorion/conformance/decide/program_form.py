"""The program's own form of a report, PRODUCT.md, byte for byte."""

from collections.abc import Sequence
from typing import Final

from neorion.conformance.model import PLACEHOLDER, Category, Entry, Level, Metadata, Product, Status
from neorion.conformance.model.requirement import title_of

CATEGORY_NAMES: Final = {
    Category.ACCELERATORS: "Accelerators",
    Category.NETWORKING: "Networking",
    Category.SCHEDULING: "Scheduling & Orchestration",
    Category.OBSERVABILITY: "Observability",
    Category.SECURITY: "Security",
    Category.OPERATOR: "Operator Support",
}
_CATEGORY_ICONS: Final = {
    Category.ACCELERATORS: "🚀",
    Category.NETWORKING: "🌐",
    Category.SCHEDULING: "📅",
    Category.OBSERVABILITY: "📊",
    Category.SECURITY: "🔒",
    Category.OPERATOR: "⚙️",
}
_ICONS: Final = {
    Status.IMPLEMENTED: "✅",
    Status.PARTIAL: "🟡",
    Status.MISSING: "❌",
    Status.NOT_APPLICABLE: "⚪",
}
_NO_STATUS: Final = "⬜"
# Of a link's label, in bytes.
_LABEL_MAX: Final = 60
_LABEL_CUT: Final = 57
_RULE: Final = "---"


def program_report(product: Product) -> str:
    """PRODUCT.md. An empty status is shown and not counted, as the program's own generator has it."""
    entries = product.entries
    lines = [
        f"# {product.metadata.platform_name} — AI Conformance Report",
        "",
        *_platform(product.metadata),
        *_summary([entry for _, entry in entries]),
        *_glance(entries),
        "## Detailed Requirements",
        "",
    ]
    for category in Category:
        if own := product.spec.get(category, ()):
            lines += [f"### {_CATEGORY_ICONS[category]} {CATEGORY_NAMES[category]}", ""]
            lines += [line for entry in own for line in _detail(entry)]
    return "\n".join([*lines, _RULE, "", "*Generated from PRODUCT.yaml*", ""])


def _platform(meta: Metadata) -> list[str]:
    rows = [
        ("Vendor", meta.vendor_name),
        ("Platform", meta.platform_name),
        ("Platform Version", meta.platform_version),
        ("Kubernetes Version", meta.kubernetes_version),
    ]
    if _is_given(meta.website_url):
        rows.append(("Website", f"[{meta.website_url}]({meta.website_url})"))
    if _is_given(meta.documentation_url):
        rows.append(("Documentation", f"[Link]({meta.documentation_url})"))
    lines = [
        "## Platform Information",
        "",
        "| | |",
        "|:--|:--|",
        *(f"| **{name}** | {value} |" for name, value in rows),
        "",
    ]
    if _is_given(meta.description):
        lines += [f"> {meta.description}", ""]
    return [*lines, _RULE, ""]


def _summary(entries: Sequence[Entry]) -> list[str]:
    counts = {status: sum(entry.status == status for entry in entries) for status in _ICONS}
    lines = ["## Compliance Summary", "", "| Status | Count |", "|:-------|:-----:|"]
    lines += [
        f"| {_ICONS[status]} {status} | {count} |"
        for status, count in counts.items()
        if count > 0 or status is Status.IMPLEMENTED
    ]
    return [*lines, f"| **Total** | **{sum(counts.values())}** |", ""]


def _glance(entries: Sequence[tuple[Category, Entry]]) -> list[str]:
    lines = [
        "### Requirements at a Glance",
        "",
        "| Category | Requirement | Level | Status |",
        "|:---------|:------------|:-----:|:------:|",
    ]
    lines += [
        f"| {CATEGORY_NAMES[category]} | {title_of(entry.id)} | {entry.level} | {_icon(entry)} |"
        for category, entry in entries
    ]
    return [*lines, "", _RULE, ""]


def _detail(entry: Entry) -> list[str]:
    badge = "🔴 MUST" if entry.level == Level.MUST else "🟡 SHOULD"
    lines = [
        f"#### {_icon(entry)} {title_of(entry.id)}",
        "",
        f"**Level:** {badge} | **Status:** {entry.status}",
        "",
    ]
    lines += [f"> {entry.description}", ""]
    evidence = [each for each in entry.evidence if each]
    if evidence:
        lines += ["**Evidence:**", "", *(f"- [{_label(each)}]({each})" for each in evidence), ""]
    if entry.notes:
        lines += ["**Notes:**", "", f"> {entry.notes}", ""]
    return lines


def _icon(entry: Entry) -> str:
    return next((icon for status, icon in _ICONS.items() if status == entry.status), _NO_STATUS)


def _label(url: str) -> str:
    short = url.removeprefix("https://").removeprefix("http://").encode()
    return (short[:_LABEL_CUT] + b"..." if len(short) > _LABEL_MAX else short).decode(errors="ignore")


def _is_given(value: str) -> bool:
    return bool(value) and PLACEHOLDER.match(value) is None
