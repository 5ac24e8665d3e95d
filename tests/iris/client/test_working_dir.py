"""Files that travel with a job, from Python."""

from pathlib import Path

import pytest

from neorion.iris.client import Invalid, IrisClient


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/cfg.json").write_text('{"size": 3}')
    (tmp_path / "main.py").write_text("from helper import NAME; print(NAME)")
    (tmp_path / "helper.py").write_text("NAME = 'helped'")
    (tmp_path / "secret.key").write_text("canary")
    return tmp_path


def test_a_command_finds_the_projects_files(client: IrisClient, project: Path):
    job = client.submit("python -B main.py && ls", "files", working_dir=str(project), exclude=["*.key"])
    client.wait(job, timeout=60)
    assert job.logs().split() == ["helped", "data", "helper.py", "main.py"]


def test_a_function_and_a_map_read_them(client: IrisClient, project: Path):
    def size(_: int = 0) -> str:
        return Path("data/cfg.json").read_text()

    job = client.submit(size, "reads", working_dir=str(project))
    assert client.wait(job, timeout=60) == '{"size": 3}'
    assert client.map(size, [1, 2], "reads-map", working_dir=str(project)) == ['{"size": 3}'] * 2


def test_a_folder_that_is_none_is_refused(client: IrisClient, tmp_path: Path):
    with pytest.raises(Invalid) as refused:
        client.submit("true", "nowhere", working_dir=str(tmp_path / "nowhere"))
    assert refused.value.code == "iris.working_dir"
