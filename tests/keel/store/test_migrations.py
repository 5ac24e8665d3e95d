import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from neorion.keel.base import Invalid
from neorion.keel.store import Migration, migrations_in


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    folder = tmp_path / "some_migrations"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    sys.modules.pop("some_migrations", None)


def test_files_of_a_package_are_read_in_order(package: Path):
    (package / "0002_more.sql").write_text("SELECT 2")
    (package / "0001_first.sql").write_text("SELECT 1")
    (package / "README.md").write_text("not a migration")
    assert migrations_in("some_migrations") == [
        Migration(1, "first", "SELECT 1"),
        Migration(2, "more", "SELECT 2"),
    ]


def test_a_file_with_a_wrong_name_is_refused_not_skipped(package: Path):
    (package / "1_first.sql").write_text("SELECT 1")
    with pytest.raises(Invalid) as caught:
        migrations_in("some_migrations")
    assert caught.value.code == "store.migrations"


def test_line_ends_do_not_change_a_checksum_and_anything_else_does():
    unix, dos = Migration(1, "a", "SELECT 1\n"), Migration(1, "a", "SELECT 1\r\n")
    assert unix.checksum == dos.checksum
    assert Migration(1, "a", "SELECT 2\n").checksum != unix.checksum
