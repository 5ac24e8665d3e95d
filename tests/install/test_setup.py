"""What `make setup` does before anything is installed."""

import os
import sys
from pathlib import Path

import pytest

from tools import setup

ROOT = Path(__file__).parents[2]


def test_the_locks_pin_every_package_by_hash_and_name_no_host():
    for lock in ("requirements.txt", "constraints.txt"):
        text = (ROOT / lock).read_text()
        entries = [entry for entry in text.split("\n") if "==" in entry]
        assert len(entries) > 20
        assert text.count(" \\\n    --hash=sha256:") >= len(entries)
        assert "://" not in text


def test_the_demo_needs_a_part_of_everything():
    run, everything = (
        {line.split(" ")[0] for line in (ROOT / lock).read_text().splitlines() if "==" in line}
        for lock in ("requirements.txt", "constraints.txt")
    )
    assert run < everything
    assert len(run) < 33


def test_the_pin_of_a_package_has_its_hashes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    pin = setup.pin_of("uv")
    assert pin.startswith("uv==")
    assert "--hash=sha256:" in pin
    assert all(line.startswith(("uv==", "    --hash=")) for line in pin.splitlines())
    with pytest.raises(setup.SetupError, match="does not pin nosuch"):
        setup.pin_of("nosuch")


def test_uv_gets_what_pip_is_configured_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    config = tmp_path / "pip.conf"
    config.write_text(
        "[global]\nindex-url = https://pypi.example/simple\nretries = 1\n[install]\nfind-links = /wheels\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    for name in setup.SETTINGS.values():
        # Set first, so that the test's end takes back what is set in between.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("UV_FIND_LINKS", "/mine")
    setup.hand_on_settings([sys.executable, "-m", "pip"])
    assert os.environ["UV_DEFAULT_INDEX"] == "https://pypi.example/simple"
    assert os.environ["UV_FIND_LINKS"] == "/mine"


def test_without_uv_and_pip_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(setup, "has", {}.get)
    assert setup.main(tmp_path / "env", Path("requirements.txt")) == 1
    assert "apt-get install python3-venv" in capsys.readouterr().out
    assert not (tmp_path / "env").exists()


def test_an_empty_folder_is_not_a_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "emptyfolder").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert [setup.has(module) for module in ("json", "emptyfolder", "nosuch")] == [True, False, False]
