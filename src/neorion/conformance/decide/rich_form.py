"""A run as one HTML file: verdicts, assertions, controls, environments, digests and validity. Everything is escaped."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from neorion.conformance.decide.explain import method_of
from neorion.conformance.model import CheckResult, Environment, Run, Verdict
from neorion.conformance.model.requirement import title_of
from neorion.keel.base import Finding

_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#1c2430}"
    "table{border-collapse:collapse;width:100%;margin:.5rem 0 1rem}td,th{border-bottom:1px solid #d5dbe3;"
    "padding:.3rem .6rem;text-align:left;vertical-align:top;overflow-wrap:anywhere}code{font-size:.85em;overflow-wrap:anywhere}"
    ".PASS{color:#17693a}.FAIL,.ERROR{color:#a4161a}.other{color:#8a5a00}.warn{background:#fff4d6;padding:.6rem}"
)
_PROGRAM_YEAR: Final = "one year from the date of certification"


def rich_report(run: Run, problems: Sequence[Finding]) -> str:
    """`problems` are those that verifying the run has found; a report of changed evidence says so first."""
    body = [
        f"<h1>AI conformance of {escape(run.server)}</h1>",
        *_warnings(run, problems),
        _facts(run),
        "<h2>Requirements</h2>",
        _table(
            ("Requirement", "Level", "Verdict", "Controls", "Environment", "Seconds"), map(_row, run.results)
        ),
        *(_detail(result) for result in run.results),
        "<h2>Artefacts</h2>",
        _table(
            ("File", "SHA-256"),
            ((escape(name), f"<code>{digest}</code>") for name, digest in run.artefacts.items()),
        ),
    ]
    head = f'<meta charset="utf-8"><title>AI conformance {escape(run.id)}</title><style>{_STYLE}</style>'
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n'
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _warnings(run: Run, problems: Sequence[Finding]) -> Iterable[str]:
    for each in problems:
        yield f'<p class="warn"><b>{escape(each.subject)}</b>: {escape(each.sentence)}</p>'
    if run.interrupted:
        yield '<p class="warn">The run was interrupted.</p>'
    found = {result.outcome.environment for result in run.results} - {None, Environment.HARDWARE}
    if found:
        yield (
            '<p class="warn">Some evidence does not come from hardware. It shows how the control plane behaves, '
            "never that devices are isolated or that drivers work.</p>"
        )


def _facts(run: Run) -> str:
    rows = (
        ("Run", run.id),
        ("Version of the program", run.version),
        ("Kubernetes", run.kubernetes),
        ("Accelerator profile", run.profile),
        ("Started", run.started),
        ("Finished", run.finished),
        ("Valid", _PROGRAM_YEAR),
        ("End of the chain of evidence", run.evidence_head),
    )
    return _table(("Fact", "Value"), ((escape(name), escape(value)) for name, value in rows))


def _row(result: CheckResult) -> tuple[str, ...]:
    outcome = result.outcome
    tripped = sum(each.tripped for each in outcome.controls)
    return (
        f'<a href="#{result.requirement}">{escape(title_of(result.requirement))}</a>',
        escape(result.level),
        _verdict(result.verdict),
        f"{tripped} of {len(outcome.controls)} tripped",
        escape(outcome.environment or "none"),
        f"{result.seconds:.1f}",
    )


def _detail(result: CheckResult) -> str:
    outcome, method = result.outcome, method_of(result.requirement)
    parts = [
        f'<h3 id="{escape(result.requirement)}">{escape(title_of(result.requirement))} {_verdict(result.verdict)}</h3>',
        f"<p>{escape(result.reason)}</p>",
    ]
    if outcome.assertions:
        rows = (
            (escape(each.name), "held" if each.held else "failed", escape(each.detail))
            for each in outcome.assertions
        )
        parts.append(_table(("Assertion", "Result", "Observed"), rows))
    if outcome.controls:
        rows = (
            (escape(each.name), "tripped" if each.tripped else "silent", escape(each.failure))
            for each in outcome.controls
        )
        parts.append(_table(("Negative control", "Result", "Failure that it produced"), rows))
    parts += [f"<p>Limit: {escape(each)}</p>" for each in outcome.limits]
    parts += [f'<p class="warn">Left behind: {escape(each)}</p>' for each in result.left_behind]
    parts.append(f"<p>Only hardware can show: {escape(method.hardware)}</p>")
    return "\n".join(parts)


def _verdict(verdict: Verdict) -> str:
    name = verdict if verdict in {Verdict.PASS, Verdict.FAIL, Verdict.ERROR} else "other"
    return f'<span class="{name}">{escape(verdict)}</span>'


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The head is a text; cells are HTML that is escaped already."""
    top = "".join(f"<th>{escape(each)}</th>" for each in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{top}</tr>{body}</table>"
