"""From a run to its folder, to PRODUCT.yaml, and back: nothing changed unseen, nothing claimed that was not shown."""

import subprocess
from pathlib import Path

import hypothesis
import msgspec
import pytest
from hypothesis import strategies as st

from neorion.cli import app
from neorion.conformance.adapters.product_file import lint_context, read_product, read_raw, write_product
from neorion.conformance.adapters.run_folder import RunFolder, load_run, verify_run
from neorion.conformance.adapters.signing import sign_run, signature_problems
from neorion.conformance.decide.diff import changes_between
from neorion.conformance.decide.lint import lint
from neorion.conformance.decide.product_file import blank_product, filled_product
from neorion.conformance.decide.rich_form import rich_report
from neorion.conformance.decide.verdict import conclude
from neorion.conformance.model import (
    Assertion,
    CheckResult,
    Control,
    Environment,
    Metadata,
    Outcome,
    Run,
    Verdict,
    requirements,
)
from neorion.keel.base import Invalid, Severity
from neorion.keel.cli import run as run_command
from neorion.keel.clock import SystemClock

HOSTILE = "<script>alert(1)</script>\x1b[31m&\"'"
METADATA = Metadata(
    kubernetes_version="v1.37",
    platform_name="Pier",
    platform_version="2.1",
    vendor_name="Harbour Works",
    website_url="https://harbour.test/pier",
    documentation_url="https://harbour.test/docs",
    product_logo_url="https://harbour.test/pier.svg",
    description="A platform.",
    contact_email_address="pier@harbour.test",
    k8s_conformance_url="https://github.com/cncf/k8s-conformance/tree/master/v1.37/pier",
)


def passed(environment: Environment, detail: str = "as it should") -> Outcome:
    return Outcome(
        environment,
        (Assertion("a", held=True, detail=detail),),
        (Control("c", tripped=True, failure=detail),),
    )


def make_run(folder: Path, outcome: Outcome, version: str = "1.37") -> Run:
    writer = RunFolder(folder, SystemClock())
    writer.record("request", {"verb": "get", "path": "/version", "status": 200})
    results: list[CheckResult] = []
    for each in requirements(version):
        verdict, reason = conclude(outcome)
        results.append(CheckResult(each.id, each.level, verdict, reason, outcome, 1.5))
        writer.record("result", msgspec.to_builtins(results[-1]))
    facts = (
        "run-0000abcd1234",
        version,
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:01:00Z",
        "v1.36.3",
        "https://x",
        "nvidia",
    )
    return writer.finish(Run(*facts, tuple(results), {}, ""))


def test_an_unchanged_run_verifies(tmp_path: Path):
    run = make_run(tmp_path / "run", passed(Environment.HARDWARE))
    assert verify_run(tmp_path / "run") == []
    assert load_run(tmp_path / "run") == run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("runs") / "run"
    make_run(found, passed(Environment.HARDWARE), "1.33")
    return found


@hypothesis.given(st.data())
def test_every_change_of_one_byte_in_any_file_is_found(folder: Path, data: st.DataObject):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = data.draw(st.sampled_from(files))
    content = path.read_bytes()
    place = data.draw(st.integers(0, len(content) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != content[place]))
    path.write_bytes(content[:place] + bytes([other]) + content[place + 1 :])
    try:
        assert any(found.severity is Severity.ERROR for found in verify_run(folder))
    finally:
        path.write_bytes(content)


@pytest.mark.parametrize(
    "name", ["evidence.jsonl", "run.json", "SEAL", "e2e.log", "gang_scheduling/junit.xml"]
)
def test_a_file_that_is_gone_is_found(tmp_path: Path, name: str):
    make_run(tmp_path / "run", passed(Environment.HARDWARE))
    (tmp_path / "run" / name).unlink()
    assert verify_run(tmp_path / "run")


def test_a_verdict_that_the_observations_do_not_support_is_found(tmp_path: Path):
    """Also where hashes and seal are made anew for it."""
    doubtful = Outcome(Environment.HARDWARE, (Assertion("a", held=True),), (Control("c", tripped=False),))
    writer = RunFolder(tmp_path / "run", SystemClock())
    result = CheckResult("gang_scheduling", "MUST", Verdict.PASS, "as told", doubtful)
    writer.record("result", msgspec.to_builtins(result))
    writer.finish(Run("run-x", "1.33", "", "", "", "", "", (result,), {}, ""))
    assert [found.subject for found in verify_run(tmp_path / "run")] == ["gang_scheduling"]


def filled(tmp_path: Path, environment: Environment, *, allow_simulated: bool) -> Path:
    """A product in its folder, filled from a run on that kind of device, with the artefacts beside it."""
    place = tmp_path / "v1.37" / "pier"
    place.mkdir(parents=True)
    run = make_run(place / "results", passed(environment))
    product = msgspec.structs.replace(blank_product("1.37"), metadata=METADATA)
    write_product(
        place / "PRODUCT.yaml", filled_product(product, run, "results", allow_simulated=allow_simulated)
    )
    return place / "PRODUCT.yaml"


def test_a_product_from_a_run_on_hardware_lints_clean(tmp_path: Path):
    path = filled(tmp_path, Environment.HARDWARE, allow_simulated=False)
    assert lint(read_raw(path), lint_context(path)) == []
    assert {entry.status for _, entry in read_product(path).entries} == {"Implemented"}


def test_a_product_from_a_simulated_run_claims_nothing_by_itself(tmp_path: Path):
    path = filled(tmp_path, Environment.SIMULATED, allow_simulated=False)
    assert {entry.status for _, entry in read_product(path).entries} == {""}


def test_a_forced_claim_has_no_error_and_a_warning_for_each(tmp_path: Path):
    path = filled(tmp_path, Environment.SIMULATED, allow_simulated=True)
    findings = lint(read_raw(path), lint_context(path))
    assert {(found.severity, found.code) for found in findings} == {(Severity.WARNING, "lint.simulated")}
    assert len(findings) == len(requirements("1.37"))


def test_a_hostile_answer_is_escaped_in_every_form(tmp_path: Path):
    run = make_run(tmp_path / "run", passed(Environment.SIMULATED, HOSTILE), "1.33")
    texts = [rich_report(run, verify_run(tmp_path / "run"))]
    texts += [path.read_text("utf-8") for path in (tmp_path / "run").rglob("*.xml")]
    for text in texts:
        assert "<script>" not in text
        assert "\x1b" not in text
    assert "\x1b" not in (tmp_path / "run" / "evidence.jsonl").read_text("utf-8")
    assert "\x1b" not in (tmp_path / "run" / "e2e.log").read_text("utf-8")


def test_two_runs_are_compared(tmp_path: Path):
    before = make_run(tmp_path / "before", passed(Environment.SIMULATED), "1.33")
    after = make_run(tmp_path / "after", passed(Environment.HARDWARE), "1.33")
    assert list(changes_between(before, before)) == []
    assert len(list(changes_between(before, after))) == len(requirements("1.33"))


def test_the_commands_go_from_a_template_to_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    product, run = str(tmp_path / "PRODUCT.yaml"), str(tmp_path / "run")
    make_run(tmp_path / "run", passed(Environment.SIMULATED), "1.33")
    steps = (
        (0, ("product", "init", product, "--version", "1.33")),
        (5, ("product", "init", product)),
        (0, ("product", "fill", product, "--run", run, "--allow-simulated")),
        # Its metadata are still the template's.
        (1, ("product", "lint", product)),
        (0, ("verify", run)),
        (0, ("diff", run, run)),
        (0, ("report", product)),
        (0, ("report", run, "--form", "rich", "--file", str(tmp_path / "report.html"))),
        (0, ("run", "--plan", "--version", "1.33")),
        (3, ("explain", "gang_sheduling")),
    )
    for code, step in steps:
        assert run_command(app, ["conformance", *step]) == code, step
    assert "| ✅ Implemented | 9 |" in capsys.readouterr().out
    assert (tmp_path / "results-abcd1234" / "gang_scheduling" / "junit.xml").is_file()


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The private keys of two people."""
    folder = tmp_path_factory.mktemp("keys")
    found = (folder / "own", folder / "other")
    for key in found:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    return found


def test_a_signed_run_verifies_with_its_signers_key_alone(tmp_path: Path, keys: tuple[Path, Path]):
    own, other = keys
    run = tmp_path / "run"
    make_run(run, passed(Environment.HARDWARE), "1.33")
    verify = ["conformance", "verify", str(run), "--key"]
    assert run_command(app, [*verify, f"{own}.pub"]) == 1, "it is not signed yet"
    sign_run(run, own)
    assert verify_run(run) == []
    assert run_command(app, [*verify, f"{own}.pub"]) == 0
    assert run_command(app, [*verify, f"{other}.pub"]) == 1
    # A run that was sealed anew is not the signed one.
    signature = (run / "SEAL.sig").read_bytes()
    make_run(tmp_path / "forged", passed(Environment.HARDWARE, "forged"), "1.33")
    (tmp_path / "forged" / "SEAL.sig").write_bytes(signature)
    assert verify_run(tmp_path / "forged") == []
    assert [each.code for each in signature_problems(tmp_path / "forged", Path(f"{own}.pub"))] == [
        "verify.signature"
    ]


@pytest.mark.parametrize("content", ["", "ssh-ed25519 AAAA\nssh-ed25519 AAAB", "-----BEGIN"])
def test_what_is_not_one_public_key_is_refused(tmp_path: Path, content: str):
    (tmp_path / "key").write_text(content)
    with pytest.raises(Invalid):
        signature_problems(tmp_path, tmp_path / "key")


def test_a_key_that_does_not_exist_is_refused_before_the_run(tmp_path: Path):
    command = ["conformance", "run", "--sign", str(tmp_path / "none"), "--folder", str(tmp_path / "runs")]
    assert run_command(app, command) == 3
    assert not (tmp_path / "runs").exists()
