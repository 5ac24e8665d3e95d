"""Rules for the section `spec`: every requirement of the version, as its template has it, with a claim that can stand."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, cast

from neorion.conformance.decide.lint_context import LintContext, error, lint_keys, warning
from neorion.conformance.decide.lint_evidence import lint_evidence
from neorion.conformance.decide.verdict import FORCED_NOTE
from neorion.conformance.model import Category, Level, Requirement, Status, requirement_ids, requirements
from neorion.keel.base import Finding, did_you_mean

_KEYS: Final = ("id", "description", "level", "status", "evidence", "notes")
# From so many requirements on, one link is not evidence of any of them.
_REUSED: Final = 3
# "N/A" says that the context does not apply, never that the platform cannot.
_CANNOT: Final = re.compile(r"(?i)\b(not|n't|no)\b.{0,20}\b(support|implement|available yet)")

Entry = Mapping[str, object]


def lint_spec(spec: Mapping[str, object], version: str, context: LintContext) -> Iterator[Finding]:
    wanted = {each.id: each for each in requirements(version)}
    yield from lint_keys("spec", spec, list(Category))
    entries: list[tuple[Category, str, Entry]] = []
    for category in Category:
        value = spec.get(category)
        if value is None or value == "":
            continue
        if not isinstance(value, list):
            yield error(
                "not_list",
                f"spec.{category}",
                "The category is not a list.",
                "Write one item per requirement.",
            )
            continue
        for place, each in enumerate(cast("list[object]", value)):
            subject = f"spec.{category}[{place}]"
            if isinstance(each, Mapping):
                entries.append((category, subject, cast("Entry", each)))
            else:
                yield error(
                    "not_entry",
                    subject,
                    "The item is not a mapping.",
                    "Write id, status, evidence and notes.",
                )
    for category, subject, entry in entries:
        yield from _lint_entry(category, subject, entry, wanted, version)
    yield from _lint_presence(entries, wanted)
    for _, subject, entry in entries:
        named = _text(entry, "id") or subject
        yield from lint_evidence(named, entry.get("evidence"), version, context)
    yield from _lint_claims([entry for _, _, entry in entries], wanted)
    yield from _lint_reuse([entry for _, _, entry in entries])


def _lint_entry(
    category: Category, subject: str, entry: Entry, wanted: Mapping[str, Requirement], version: str
) -> Iterator[Finding]:
    name = _text(entry, "id")
    if not name:
        yield error("no_id", subject, "The entry has no id.", "Take it from the template.")
        return
    yield from lint_keys(name, entry, _KEYS)
    requirement = wanted.get(name)
    if requirement is None:
        if name in requirement_ids():
            yield error(
                "other_version",
                name,
                f"Version {version} does not have this requirement.",
                "Remove the entry.",
            )
        else:
            yield error("unknown_id", name, "This is not an id of the program.", did_you_mean(name, wanted))
        return
    if category is not requirement.category:
        yield error(
            "category", name, f"The entry stands in {category}.", f"Move it to {requirement.category}."
        )
    if _text(entry, "description") != requirement.description:
        yield error(
            "description",
            name,
            "The description is not the template's.",
            f"Copy it from the template of {version}.",
        )
    if _text(entry, "level") != requirement.level:
        yield error("level", name, f'The level is "{_text(entry, "level")}".', f"Write {requirement.level}.")
    for key in ("status", "notes"):
        if not isinstance(entry.get(key, ""), str):
            yield error("entry_text", name, f"{key} is not a text.", "Write one line of text.")


def _lint_presence(
    entries: list[tuple[Category, str, Entry]], wanted: Mapping[str, Requirement]
) -> Iterator[Finding]:
    names = [_text(entry, "id") for _, _, entry in entries]
    for name, count in Counter(names).items():
        if name and count > 1:
            yield error("twice", name, f"The requirement is there {count} times.", "Keep one entry.")
    for name in wanted:
        if name not in names:
            yield error("absent", name, "The requirement is missing.", "Add its entry from the template.")
    present = list(dict.fromkeys(name for name in names if name in wanted))
    if present != [name for name in wanted if name in present]:
        yield warning(
            "order", "spec", "The entries are not in the template's order.", "Keep the order of the template."
        )


def _lint_claims(entries: list[Entry], wanted: Mapping[str, Requirement]) -> Iterator[Finding]:
    for entry in entries:
        requirement = wanted.get(_text(entry, "id"))
        if requirement is not None:
            yield from _lint_claim(requirement, entry)


def _lint_claim(requirement: Requirement, entry: Entry) -> Iterator[Finding]:
    name, must = requirement.id, requirement.level is Level.MUST
    text, notes = _text(entry, "status"), _text(entry, "notes")
    evidence = [each for each in _list(entry) if each]
    if text not in list(Status):
        yield error(
            "status",
            name,
            f'"{text[:40]}" is not a status.',
            did_you_mean(text, [each for each in Status if each]),
        )
        return
    match Status(text):
        case Status.IMPLEMENTED if not evidence:
            say = error if must else warning
            yield say("no_evidence", name, "The claim has no evidence.", "Link a test result or a document.")
        case Status.EMPTY if must:
            yield error("no_status", name, "A MUST has no status.", "State one.")
        case Status.EMPTY if evidence:
            yield error(
                "evidence_without_status", name, "There is evidence and no status.", "State a status."
            )
        case Status.PARTIAL | Status.MISSING if must:
            yield error("must", name, f'A MUST is "{text}".', "The program accepts Implemented alone.")
        case Status.PARTIAL if not notes:
            yield warning("partial_notes", name, "Nothing says what is missing.", "Say it in notes.")
        case Status.NOT_APPLICABLE:
            yield from _lint_not_applicable(requirement, notes)
        case _:
            pass
    if FORCED_NOTE in notes:
        yield warning(
            "simulated", name, "The claim rests on simulated evidence.", "Repeat the check on hardware."
        )


def _lint_not_applicable(requirement: Requirement, notes: str) -> Iterator[Finding]:
    name = requirement.id
    if not notes:
        yield error(
            "no_reason", name, "N/A has no reason.", "Say in notes why the requirement does not apply."
        )
    elif _CANNOT.search(notes):
        yield error(
            "cannot",
            name,
            "The notes say that the platform cannot.",
            'Write "Not Implemented", or why the context does not apply.',
        )
    if requirement.level is Level.MUST:
        # The validator lets this one through, with a warning.
        say = warning if name == "cluster_autoscaling" else error
        yield say(
            "must_not_applicable",
            name,
            "A MUST is N/A, which the validator refuses or flags.",
            "Expect questions.",
        )


def _lint_reuse(entries: list[Entry]) -> Iterator[Finding]:
    users: dict[str, list[str]] = {}
    for entry in entries:
        for each in dict.fromkeys(_list(entry)):
            users.setdefault(each, []).append(_text(entry, "id"))
    for url, names in users.items():
        if url and "#" not in url and len(names) >= _REUSED:
            yield warning(
                "reused",
                names[0],
                f"{url[:80]} is the evidence of {len(names)} requirements.",
                "Link what shows each of them.",
            )


def _text(entry: Entry, key: str) -> str:
    value = entry.get(key, "")
    return value if isinstance(value, str) else ""


def _list(entry: Entry) -> list[str]:
    value = entry.get("evidence")
    return (
        [each for each in cast("list[object]", value) if isinstance(each, str)]
        if isinstance(value, list)
        else []
    )
