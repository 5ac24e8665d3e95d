"""The work of `neorion conformance run` and `cleanup`."""

from pathlib import Path

from neorion.conformance.app.runs import Choice, check_cluster, clean, show_plan
from neorion.keel.cli.kit import Output


def run_command(out: Output, *, context: str, kubeconfig: Path | None, **choice: object) -> int:
    chosen = Choice.of(choice)
    return show_plan(out, chosen) if chosen.plan else check_cluster(out, chosen, context, kubeconfig)


def cleanup_command(out: Output, *, run: str, context: str, kubeconfig: Path | None) -> int:
    return clean(out, run.lower(), context, kubeconfig)
