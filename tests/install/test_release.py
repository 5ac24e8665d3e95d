"""What a release needs: one version, its notes, and workflows that call what exists."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.release import main, notes_of

ROOT = Path(__file__).parents[2]
VERSION: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def test_the_version_has_notes(capsys: pytest.CaptureFixture[str]):
    assert main(f"v{VERSION}") == 0
    assert "### Added" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("tag", "changelog", "said"),
    [("v9.9.9", "## 1.0.0\n- a\n", "the tag v9.9.9"), ("v1.0.0", "## 1.0.1\n- a\n", "no section")],
)
def test_a_wrong_release_is_refused(
    tag: str, changelog: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.0.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(changelog)
    assert main(tag, tmp_path) == 1
    assert said in capsys.readouterr().err


def test_the_notes_of_a_version_end_at_the_next():
    assert (
        notes_of("1.0.0", "# Log\n\n## 1.0.1\n- b\n\n## 1.0.0 (today)\n\n### Added\n- a\n\n## 0.9.0\n- c\n")
        == "### Added\n- a"
    )


def test_the_images_of_a_release_have_its_version():
    tags = {
        (path.relative_to(ROOT).as_posix(), tag)
        for top in ("docs", "infra", "src")
        for path in (ROOT / top).rglob("*")
        if path.suffix in {".md", ".py", ".yaml"}
        for tag in re.findall(
            r"(?:devserver-tools:|devservers-operator:|newTag: )(\d+\.\d+\.\d+)", path.read_text()
        )
    }
    assert "infra/devservers/aws/kustomization.yaml" in {path for path, _ in tags}
    assert {(path, tag) for path, tag in tags if tag != VERSION} == set()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_calls_what_exists_with_few_rights(path: Path):
    workflow: dict[str, Any] = yaml.safe_load(path.read_text())
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert set(job.get("needs", "").split()) <= workflow["jobs"].keys()
        if "uses" in job:
            assert (ROOT / job["uses"]).exists()
        commands = "\n".join(step.get("run", "") for step in job.get("steps", ()))
        assert set(re.findall(r"\bmake ([a-z]+)", commands)) <= targets, name
        for called in re.findall(r"(?:^|python )((?:\.ci|tools)/\S+)", commands, re.MULTILINE):
            assert (ROOT / called).exists(), name
        # Who may publish: the one job that PyPI trusts.
        assert ("id-token" in job.get("permissions", {})) == (
            path.name == "release.yml" and name == "publish"
        )
