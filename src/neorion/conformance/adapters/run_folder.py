"""A run on disk: the chain of evidence, the artefacts made from it, and the seal over all of them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from neorion.conformance.decide.artefacts import e2e_log, junit, results_json
from neorion.conformance.decide.evidence import GENESIS, digest_of, link, read_chain
from neorion.conformance.decide.redact import redacted
from neorion.conformance.decide.verdict import conclude
from neorion.conformance.model import CheckResult, Run, Verdict
from neorion.keel.base import Finding, Invalid, NotFound, Severity
from neorion.keel.clock import Clock

EVIDENCE: Final = "evidence.jsonl"
RUN: Final = "run.json"
SEAL: Final = "SEAL"
SIGNATURE: Final = "SEAL.sig"
# Of one run. A hostile cluster must not fill the disk; what comes later is counted and left out.
EVIDENCE_BYTES_MAX: Final = 256 * 1024 * 1024
# These follow from what was observed; the others are decided by the engine.
_DERIVED: Final = frozenset(
    {Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.NOT_APPLICABLE, Verdict.UNKNOWN}
)


class RunFolder:
    """The folder of one run that is being written."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=False)
        self.folder = folder
        self._clock = clock
        self._evidence = folder / EVIDENCE
        self._evidence.touch(mode=0o600)
        self._size = 0
        self._left_out = 0
        self.head = GENESIS

    def record(self, kind: str, fields: Mapping[str, object]) -> None:
        # Results are few and must not be lost; all else stops at the limit.
        if self._size > EVIDENCE_BYTES_MAX and kind != "result":
            self._left_out += 1
            return
        entry = {
            "kind": kind,
            "at": str(self._clock.now()),
            "monotonic": round(self._clock.monotonic(), 6),
            **({"left_out_before": self._left_out} if self._left_out else {}),
            "fields": redacted(fields),
        }
        line, self.head = link(self.head, entry)
        # Opened for each line: a run that is broken off holds nothing open, and has what was recorded so far.
        with self._evidence.open("ab") as file:
            file.write(line)
        self._size += len(line)

    def finish(self, run: Run) -> Run:
        """Writes the artefacts, the run and the seal. Returns the run with their digests, and redacted as the evidence is."""
        results = msgspec.convert(redacted(msgspec.to_builtins(run.results)), tuple[CheckResult, ...])
        run = msgspec.structs.replace(run, results=results)
        texts = artefact_texts(run)
        for name, text in texts.items():
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
        digests = {name: digest_of(text.encode()) for name, text in texts.items()}
        sealed = msgspec.structs.replace(run, artefacts=digests, evidence_head=self.head)
        content = msgspec.json.format(msgspec.json.encode(sealed), indent=1) + b"\n"
        (self.folder / RUN).write_bytes(content)
        (self.folder / SEAL).write_text(_seal(content), "utf-8")
        return sealed


def artefact_texts(run: Run) -> dict[str, str]:
    """Every artefact of a run by its path: one set for each requirement, because one failed test voids a whole file."""
    found = {"e2e.log": e2e_log(run.results)}
    for result in run.results:
        found[f"{result.requirement}/junit.xml"] = junit([result], run.id)
        found[f"{result.requirement}/results.json"] = results_json([result], run.started)
        found[f"{result.requirement}/e2e.log"] = e2e_log([result])
    return found


def load_run(folder: Path) -> Run:
    try:
        return msgspec.json.decode((folder / RUN).read_bytes(), type=Run)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(
            "conformance.no_run",
            f"{folder} is not a finished run.",
            hint="Name the folder that neorion conformance run printed.",
        ) from None
    except msgspec.DecodeError as error:
        raise Invalid(
            "conformance.run_form",
            f"{folder / RUN} is damaged: {error}.",
            hint="See: neorion conformance verify.",
        ) from None


def verify_run(folder: Path) -> list[Finding]:
    """Recomputes everything that can be recomputed: hashes, seal, digests, verdicts and artefacts."""
    try:
        content = (folder / RUN).read_bytes()
        evidence = (folder / EVIDENCE).read_bytes()
        seal = (folder / SEAL).read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        name = Path(str(error.filename)).name
        return [_error(name, "The file is missing.", "Repeat the run: an unfinished run proves nothing.")]
    if seal != _seal(content).encode():
        return [_error(SEAL, f"The seal does not fit {RUN}.", "Do not trust this run.")]
    try:
        run = msgspec.json.decode(content, type=Run)
    except msgspec.DecodeError:
        return [_error(RUN, "The file is damaged.", "Do not trust this run.")]
    return [*_evidence_problems(run, evidence), *_artefact_problems(run, folder), *_verdict_problems(run)]


def _evidence_problems(run: Run, evidence: bytes) -> Iterator[Finding]:
    chain = read_chain(evidence)
    for problem in chain.problems:
        yield _error(f"{EVIDENCE}:{problem.line}", problem.sentence, "Do not trust this run.")
    if not chain.problems and chain.head != run.evidence_head:
        yield _error(
            EVIDENCE, "The evidence is shorter or longer than the run says.", "Do not trust this run."
        )
    recorded = [entry["fields"] for entry in chain.entries if entry.get("kind") == "result"]
    expected = [redacted(msgspec.to_builtins(result)) for result in run.results]
    if not chain.problems and recorded != expected:
        yield _error(RUN, "The results are not those that the evidence holds.", "Do not trust this run.")


def _artefact_problems(run: Run, folder: Path) -> Iterator[Finding]:
    texts = artefact_texts(run)
    for name in sorted({*run.artefacts, *texts}):
        path = folder / name
        if not path.is_file():
            yield _error(name, "The artefact is missing.", "Do not trust this run.")
            continue
        content = path.read_bytes()
        if digest_of(content) != run.artefacts.get(name):
            yield _error(name, "The artefact was changed.", "Do not trust this run.")
        elif content != texts.get(name, "").encode():
            yield _error(
                name,
                "The artefact does not follow from the results.",
                "Verify with the version that made the run.",
            )
    known = {EVIDENCE, RUN, SEAL, SIGNATURE, *texts}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and (name := str(path.relative_to(folder))) not in known:
            yield Finding(
                Severity.WARNING, "verify.extra", name, "The file is not part of the run.", "Remove it."
            )


def _verdict_problems(run: Run) -> Iterator[Finding]:
    for result in run.results:
        derived = conclude(result.outcome).verdict
        if result.verdict in _DERIVED and derived is not result.verdict:
            sentence = f"The verdict is {result.verdict}, and the observations say {derived}."
            yield _error(result.requirement, sentence, "Do not trust this run.")


def results_of(run: Run) -> dict[str, CheckResult]:
    return {result.requirement: result for result in run.results}


def _seal(content: bytes) -> str:
    return f"sha256:{digest_of(content)}  {RUN}\n"


def _error(subject: str, sentence: str, hint: str) -> Finding:
    return Finding(Severity.ERROR, "verify.broken", subject, sentence, hint)
