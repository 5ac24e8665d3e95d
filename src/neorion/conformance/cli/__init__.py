"""`neorion conformance`: prove what a cluster can do, and prove that each check can fail.

Declares commands and shows results. What a command does is imported when it is called.
"""

from typing import Final

from neorion.keel.cli import App

_RUN: Final = "Check a cluster"
_EVIDENCE: Final = "Evidence"
_PRODUCT: Final = "Certification"

app = App(
    "conformance",
    help="Kubernetes AI conformance: checks, evidence and the report.",
    env_prefix="NEORION_CONFORMANCE",
)
app.mount("run", "neorion.conformance.app.commands:run_command", help="Check a cluster.", heading=_RUN)
app.mount(
    "cleanup",
    "neorion.conformance.app.commands:cleanup_command",
    help="Remove what interrupted runs have left.",
    heading=_RUN,
)
app.mount(
    "explain",
    "neorion.conformance.cli.catalogue:explain_command",
    help="Explain a requirement and its check.",
    heading=_RUN,
)
app.mount(
    "list",
    "neorion.conformance.cli.catalogue:list_command",
    help="List the requirements of a version.",
    heading=_RUN,
)
app.mount(
    "verify",
    "neorion.conformance.cli.evidence:verify_command",
    help="Verify the evidence of a run.",
    heading=_EVIDENCE,
)
app.mount(
    "diff", "neorion.conformance.cli.evidence:diff_command", help="Compare two runs.", heading=_EVIDENCE
)
app.mount(
    "report",
    "neorion.conformance.cli.report:report_command",
    help="Write the report of a product or a run.",
    heading=_PRODUCT,
)
app.mount(
    "product",
    "neorion.conformance.cli.product:product",
    help="Make, fill and lint PRODUCT.yaml.",
    heading=_PRODUCT,
)

__all__ = ["app"]
