"""Signatures of runs, made and verified by OpenSSH: of the seal, which stands for the whole run."""

import subprocess
import tempfile
from pathlib import Path
from typing import Final

from neorion.conformance.adapters.run_folder import SEAL, SIGNATURE
from neorion.keel.base import Finding, Invalid, NotFound, Severity

_PROGRAM: Final = "ssh-keygen"
# Keeps a signature from being used for anything else.
_NAMESPACE: Final = "neorion-conformance"
_SIGNER: Final = "signer"


def require_signing_key(key: Path) -> None:
    """Refuses a key that does not exist before a run, not after it."""
    if not key.is_file():
        raise NotFound(
            "conformance.no_key",
            f"There is no key {key}.",
            hint="Name a private key of OpenSSH: ssh-keygen -t ed25519.",
        )


def sign_run(folder: Path, key: Path) -> None:
    """Writes the signature beside the seal. OpenSSH asks for the passphrase, or for the agent's key."""
    command = [_PROGRAM, "-q", "-Y", "sign", "-f", str(key), "-n", _NAMESPACE, str(folder / SEAL)]
    (folder / SIGNATURE).unlink(missing_ok=True)
    done = _run(command, b"")
    if done.returncode or not (folder / SIGNATURE).is_file():
        raise Invalid(
            "conformance.not_signed",
            f"{folder} was not signed with {key}: {_reason(done)}",
            hint="Sign with a private key of OpenSSH.",
        )


def signature_problems(folder: Path, key: Path) -> list[Finding]:
    """The problems of a run's signature. `key` is the signer's public key."""
    try:
        signer = key.read_text("utf-8").split("#", 1)[0].strip()
    except (OSError, UnicodeDecodeError):
        raise NotFound(
            "conformance.no_key", f"There is no key {key}.", hint="Name the signer's public key."
        ) from None
    if not signer.startswith(("ssh-", "ecdsa-", "sk-")) or "\n" in signer:
        raise Invalid(
            "conformance.key_form",
            f"{key} is not one public key of OpenSSH.",
            hint="Name the signer's public key.",
        )
    if not (folder / SIGNATURE).is_file():
        return [_problem("The run is not signed.")]
    with tempfile.TemporaryDirectory() as scratch:
        allowed = Path(scratch) / "allowed"
        allowed.write_text(f'{_SIGNER} namespaces="{_NAMESPACE}" {signer}\n', "utf-8")
        command = [_PROGRAM, "-Y", "verify", "-f", str(allowed), "-I", _SIGNER, "-n", _NAMESPACE]
        done = _run([*command, "-s", str(folder / SIGNATURE)], (folder / SEAL).read_bytes())
    return [_problem(f"The signature is not that of {key}: {_reason(done)}")] if done.returncode else []


def _run(command: list[str], given: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(command, input=given, capture_output=True, check=False)  # noqa: S603 -- no shell, no input of others
    except FileNotFoundError:
        raise NotFound(
            "conformance.no_ssh_keygen", f"{_PROGRAM} is not installed.", hint="Install OpenSSH's client."
        ) from None


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    return done.stderr.decode(errors="replace").strip()[:200] or "ssh-keygen gave no reason."


def _problem(sentence: str) -> Finding:
    return Finding(Severity.ERROR, "verify.signature", SIGNATURE, sentence, "Do not trust this run.")
