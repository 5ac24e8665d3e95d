"""Distributed servers on two real nodes: commands on ranks, names of ranks, and runs of a script."""

import json
import re
from pathlib import Path

import pytest

from tests.node.devservers import Devctl
from tests.node.pods import NEEDS

pytestmark = [NEEDS, pytest.mark.timeout(480)]

RANKS = 4


@pytest.fixture(scope="module")
def gang(devctl: Devctl) -> str:
    """Four ranks that tests reach into and leave as they are."""
    made = devctl("create", "gang", "--distributed", "--replicas", "4", "--home-size", "1Gi", "--wait")
    assert made.returncode == 0, made.stderr
    assert re.search(
        r"All 4 ranks were ready after [0-9.]+ s, and had their nodes after [0-9]+ s\.", made.stderr
    )
    return "gang"


def lines(text: str) -> dict[int, list[str]]:
    """What each rank wrote."""
    found: dict[int, list[str]] = {rank: [] for rank in range(RANKS)}
    for line in text.splitlines():
        mark = re.fullmatch(r"\[(\d)\] (.*)", line)
        assert mark is not None, line
        found[int(mark[1])].append(mark[2])
    return found


def test_the_ranks_of_a_server_are_on_both_nodes_and_listed(devctl: Devctl, gang: str):
    shown = json.loads(devctl.good("describe", gang, "-o", "json"))
    assert [one["pod"] for one in shown["ranks"]] == [f"gang-{rank}" for rank in range(RANKS)]
    assert all(one["ready"] for one in shown["ranks"])
    assert len({one["node"] for one in shown["ranks"]}) == 2
    [listed] = [one for one in json.loads(devctl.good("list", "-o", "json")) if one["name"] == gang]
    assert listed["ranks"] == "4/4"
    rows = json.loads(devctl.good("monitor", gang, "--once", "-o", "json"))
    assert [(one["rank"], one["status"]) for one in rows] == [(rank, "Running") for rank in range(RANKS)]


def test_a_command_runs_on_all_ranks_and_each_line_says_on_which(devctl: Devctl, gang: str):
    show = "echo $PET_NODE_RANK of $PET_NNODES; hostname; printf last"
    done = devctl.good("exec", gang, "--all", "--", "sh", "-c", show)
    assert lines(done) == {rank: [f"{rank} of 4", f"gang-{rank}", "last"] for rank in range(RANKS)}
    failing = "[ $PET_NODE_RANK -lt 2 ] || { echo no >&2; exit $((PET_NODE_RANK + 5)); }"
    failed = devctl("exec", gang, "--all", "--", "sh", "-c", failing)
    assert (failed.returncode, failed.stdout) == (7, "")
    assert lines(failed.stderr) == {0: [], 1: [], 2: ["no"], 3: ["no"]}


def test_every_rank_reaches_every_other_by_its_name(devctl: Devctl, gang: str):
    reach = f"for rank in 0 1 2 3; do ping -c 1 -W 5 {gang}-$rank.{gang} >/dev/null && echo $rank; done"
    met = lines(devctl.good("exec", gang, "--all", "--", "sh", "-c", reach))
    assert met == {rank: ["0", "1", "2", "3"] for rank in range(RANKS)}


def test_one_rank_is_entered_by_its_number(devctl: Devctl, gang: str):
    assert devctl("ssh", gang, "--rank", "2", say="hostname; exit 4\n").stdout == "gang-2\n"
    assert devctl.good("exec", gang, "--", "hostname") == "gang-0\n"
    assert devctl.good("exec", "--rank", "3", gang, "--", "hostname") == "gang-3\n"
    none = devctl("exec", gang, "--rank", "4", "--", "true")
    assert none.returncode == 125
    assert "gang has no rank 4." in none.stderr


def test_files_reach_all_ranks_and_each_keeps_its_own(devctl: Devctl, gang: str, tmp_path: Path):
    (tmp_path / "train.py").write_text("train")
    devctl.good("cp", "--all", str(tmp_path / "train.py"), f"{gang}:train.py")
    devctl.good("exec", gang, "--all", "--", "sh", "-c", "hostname >own")
    held = lines(devctl.good("exec", gang, "--all", "--", "sh", "-c", "cat train.py; echo; cat own"))
    assert held == {rank: ["train", f"gang-{rank}"] for rank in range(RANKS)}
    devctl.good("cp", "--rank", "3", f"{gang}:own", str(tmp_path / "own"))
    assert (tmp_path / "own").read_text() == "gang-3\n"


def test_the_logs_of_all_ranks_are_told_apart(devctl: Devctl, gang: str):
    devctl.good("exec", gang, "--all", "--", "sh", "-c", "hostname >/proc/1/fd/1")
    logs = lines(devctl.good("logs", gang, "--all"))
    assert all(f"gang-{rank}" in logs[rank] for rank in range(RANKS))
    assert devctl.good("logs", gang, "--rank", "2").splitlines()[-1] == "gang-2"


def test_a_rank_that_is_killed_comes_back_with_its_home(devctl: Devctl, gang: str):
    devctl.good("exec", gang, "--rank", "1", "--", "sh", "-c", "echo kept >mark")
    devctl.kubectl("delete", "pod", "gang-1", "--grace-period=1", "--wait=true")
    devctl.kubectl("wait", "--for=create", "pod/gang-1", "--timeout=120s")
    devctl.kubectl("wait", "--for=condition=Ready", "pod/gang-1", "--timeout=120s")
    devctl.until_phase(gang, "Running")
    assert devctl.good("exec", gang, "--rank", "1", "--", "cat", "mark") == "kept\n"
    assert lines(devctl.good("exec", gang, "--all", "--", "hostname"))[1] == ["gang-1"]


def test_a_shared_home_is_the_same_on_all_ranks(devctl: Devctl):
    devctl.good(
        "create", "pair", "--distributed", "--replicas", "2", "--shared-home", "--home-size", "1Gi", "--wait"
    )
    devctl.good("exec", "pair", "--rank", "0", "--", "sh", "-c", "echo shared >file")
    assert devctl.good("exec", "pair", "--rank", "1", "--", "cat", "file") == "shared\n"
    devctl.good("delete", "pair", "--yes")


def test_a_script_runs_on_machines_of_its_own_which_are_given_back(devctl: Devctl, tmp_path: Path):
    script, log = tmp_path / "train.sh", tmp_path / "run.log"
    script.write_text('echo "$1 on $PET_NODE_RANK"; exit $((PET_NODE_RANK * 4))\n')
    run = (
        "submit",
        str(script),
        "--replicas",
        "2",
        "--name",
        "once",
        "--home-size",
        "1Gi",
        "--log",
        str(log),
    )
    done = devctl(*run, "--", "epoch")
    assert done.returncode == 4, done.stderr
    assert sorted(done.stdout.splitlines()) == ["[0] epoch on 0", "[1] epoch on 1"]
    assert sorted(log.read_text().splitlines()) == ["[0] epoch on 0", "[1] epoch on 1"]
    devctl.until_gone("devserver/once")
    # The output is kept in the home, and a server of the same name gets it back.
    devctl.good("create", "once", "--distributed", "--replicas", "2", "--home-size", "1Gi", "--wait")
    kept = devctl.good("exec", "once", "--rank", "1", "--", "sh", "-c", "cat runs/once/log runs/once/code")
    assert kept == "epoch on 1\n4\n"
    devctl.good("delete", "once", "--yes")
