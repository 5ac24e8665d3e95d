"""The files that the program's validator parses: junit.xml, results.json and e2e.log. All from the results of a run."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple
from xml.sax.saxutils import escape, quoteattr

import msgspec

from neorion.conformance.model import CheckResult, Verdict

_PACKAGE: Final = "neorion/conformance"
_SKIPPED: Final = frozenset({Verdict.SKIP, Verdict.NOT_APPLICABLE, Verdict.UNKNOWN, Verdict.INCONCLUSIVE})
_WORDS: Final = {"pass": "PASS", "fail": "FAIL", "skip": "SKIP"}


class Case(NamedTuple):
    """One test case: of a requirement as a whole, or of one assertion or control of it."""

    name: str
    action: str
    message: str
    seconds: float


def test_name(requirement: str) -> str:
    """Our own name of a requirement's test: those of the upstream suite would claim that it was run."""
    return "Neorion" + "".join(word.capitalize() for word in requirement.split("_"))


def cases_of(result: CheckResult) -> Iterator[Case]:
    """The case of the requirement, then those of its assertions and controls.

    A control that tripped is a passing case: it did what it had to.
    """
    name = test_name(result.requirement)
    action = "pass" if result.verdict is Verdict.PASS else "skip" if result.verdict in _SKIPPED else "fail"
    yield Case(name, action, f"{result.verdict}: {result.reason}", result.seconds)
    for each in result.outcome.assertions:
        yield Case(f"{name}/{_part(each.name)}", "pass" if each.held else "fail", each.detail, 0.0)
    for each in result.outcome.controls:
        yield Case(
            f"{name}/control:_{_part(each.name)}", "pass" if each.tripped else "skip", each.failure, 0.0
        )


def junit(results: Sequence[CheckResult], run: str) -> str:
    cases = [case for result in results for case in cases_of(result)]
    counts = {action: sum(case.action == action for case in cases) for action in _WORDS}
    total = sum(result.seconds for result in results)
    head = (
        f'<testsuite name={quoteattr(_PACKAGE)} tests="{len(cases)}" failures="{counts["fail"]}" errors="0" '
        f'skipped="{counts["skip"]}" time="{total:.3f}">'
    )
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>", f"  {head}"]
    lines += ["    <properties>", f'      <property name="run" value={quoteattr(run)}/>']
    for result in results:
        environment = str(result.outcome.environment or "none")
        named = quoteattr(f"environment.{result.requirement}")
        lines.append(f"      <property name={named} value={quoteattr(environment)}/>")
    lines += [
        "    </properties>",
        *(_junit_case(case) for case in cases),
        "  </testsuite>",
        "</testsuites>",
        "",
    ]
    return "\n".join(lines)


def results_json(results: Sequence[CheckResult], at: str) -> str:
    """Lines in the form of `go test -json`."""
    lines: list[bytes] = []
    for case in (case for result in results for case in cases_of(result)):
        about = {"Time": at, "Package": _PACKAGE, "Test": case.name}
        lines += [
            msgspec.json.encode({**about, "Action": "run"}),
            msgspec.json.encode({**about, "Action": "output", "Output": f"{_log_line(case)}\n"}),
            msgspec.json.encode({**about, "Action": case.action, "Elapsed": round(case.seconds, 3)}),
        ]
    return "".join(f"{line.decode()}\n" for line in lines)


def e2e_log(results: Sequence[CheckResult]) -> str:
    lines: list[str] = []
    for result in results:
        environment = result.outcome.environment or "none"
        lines.append(f"=== {result.requirement} environment={environment} verdict={result.verdict}")
        for case in cases_of(result):
            lines.append(_log_line(case))
            lines.append(f"    {_one_line(case.message)}")
    return "\n".join([*lines, ""])


def _log_line(case: Case) -> str:
    return f"--- {_WORDS[case.action]}: {case.name} ({case.seconds:.2f}s)"


def _junit_case(case: Case) -> str:
    head = (
        f'    <testcase classname={quoteattr(_PACKAGE)} name={quoteattr(case.name)} time="{case.seconds:.3f}"'
    )
    message = quoteattr(_one_line(case.message))
    match case.action:
        case "fail":
            return f"{head}><failure message={message}/></testcase>"
        case "skip":
            return f"{head}><skipped message={message}/></testcase>"
        case _:
            return f"{head}><system-out>{escape(_one_line(case.message))}</system-out></testcase>"


def _part(name: str) -> str:
    return "_".join(name.split())


def _one_line(text: str) -> str:
    """XML has no place for most control characters."""
    return "".join(each if each.isprintable() else " " for each in text)
