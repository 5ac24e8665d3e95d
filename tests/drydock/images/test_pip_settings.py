"""What of this machine's pip settings a build gets."""

from pathlib import Path

from neorion.drydock.images.build import pip_settings


def test_later_files_win_and_the_environment_wins_over_all(tmp_path: Path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("[global]\nindex-url = one\nproxy = one\ntimeout = 1\n")
    second.write_text("[global]\nindex-url = two\nproxy = two\n")
    found = pip_settings({"PIP_INDEX_URL": "three"}, [first, second, tmp_path / "none"])
    assert (found["index-url"], found["proxy"], found["timeout"]) == ("three", "two", "1")


def test_places_on_this_machine_are_not_passed_on(tmp_path: Path):
    config = tmp_path / "pip.conf"
    config.write_text("[global]\nfind-links = /somewhere\ncache-dir = /else\n")
    assert not {"find-links", "cache-dir"} & set(pip_settings({"PIP_FIND_LINKS": "/x"}, [config]))
