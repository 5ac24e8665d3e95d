import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from neorion.keel.telemetry import correlated, current, logger
from neorion.keel.telemetry.metrics import LoopMetrics, Metrics
from neorion.keel.telemetry.setup import VALUE_CHARS_MAX, LogFormat, setup


@pytest.fixture
def out() -> Iterator[io.StringIO]:
    """A stream for the log; afterwards logging is as it was."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield io.StringIO()
    root.handlers[:] = before
    root.setLevel(level)


def lines(out: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_line_is_an_event_with_named_values_under_its_folders_name(out: io.StringIO):
    setup(LogFormat.JSON, stream=out)
    logger("neorion.iris.controllers.apply").info("task lost: 100%", task="t-1", tries=2)
    (line,) = lines(out)
    assert line["event"] == "task lost: 100%"
    assert line["logger"] == "iris.controllers.apply"
    assert (line["task"], line["tries"], line["level"]) == ("t-1", 2, "info")
    assert str(line["timestamp"]).endswith("Z")


def test_the_correlation_id_follows_the_request_and_no_further(out: io.StringIO):
    setup(LogFormat.JSON, stream=out)
    with correlated("req-7"):
        assert current() == "req-7"
        logger("neorion.a").info("inside")
    logger("neorion.a").info("outside")
    assert [line.get("correlation") for line in lines(out)] == ["req-7", None]


def test_a_failure_carries_its_traceback(out: io.StringIO):
    setup(LogFormat.JSON, stream=out)
    logger("neorion.a").failure("ship lost", RuntimeError("sank"), ship="argo")
    (line,) = lines(out)
    assert "RuntimeError: sank" in str(line["exception"])
    assert line["level"] == "error"


def test_people_get_one_readable_line_without_colour_off_a_terminal(out: io.StringIO):
    setup(LogFormat.PEOPLE, stream=out)
    logger("neorion.a.b").warning("slow disk", seconds=3)
    assert "slow disk" in out.getvalue()
    assert "seconds=3" in out.getvalue()
    assert "\x1b" not in out.getvalue()


def test_what_would_break_the_line_or_play_with_the_terminal_is_shown_as_what_it_is(out: io.StringIO):
    setup(LogFormat.PEOPLE, stream=out)
    logger("neorion.a").info("two\nlines", name="\x1b[2J")
    assert out.getvalue().count("\n") == 1
    assert "\x1b" not in out.getvalue()


def test_lines_below_the_level_cost_nothing_and_third_parties_look_the_same(out: io.StringIO):
    setup(LogFormat.JSON, level="warning", stream=out)
    logger("neorion.a").info("quiet")
    logging.getLogger("third.party").warning("loud %d", 7)
    (line,) = lines(out)
    assert (line["event"], line["logger"]) == ("loud 7", "third.party")


def test_a_huge_value_is_cut_and_says_so(out: io.StringIO):
    setup(LogFormat.JSON, stream=out)
    logger("neorion.a").info("read", body="x" * 100_000)
    (line,) = lines(out)
    assert len(str(line["body"])) < VALUE_CHARS_MAX + 50
    assert "100000 characters" in str(line["body"])


CHATTER = """
import sys
from pathlib import Path
from neorion.keel.telemetry import logger, setup
setup.FILE_BYTES_MAX = 5000
setup.setup(setup.LogFormat.JSON, own_file=Path(sys.argv[1]))
for number in range(1000):
    logger("neorion.a").info("line", number=number)
    if number == 500:
        Path(sys.argv[1]).parent.rename(sys.argv[2])
    if number == 600:
        Path(sys.argv[2]).rename(Path(sys.argv[1]).parent)
raise SystemExit("last words")
"""


def test_a_file_of_its_own_does_not_grow_for_ever_and_has_the_last_words(tmp_path: Path):
    own = tmp_path / "here" / "log"
    own.parent.mkdir()
    with own.open("a") as errors:
        command = [sys.executable, "-c", CHATTER, own, tmp_path / "away"]
        assert subprocess.run(command, stderr=errors, check=False).returncode == 1
    now, before = own.read_text().splitlines(), own.with_name("log.old").read_text().splitlines()
    assert now.pop() == "last words"
    numbers = [json.loads(line)["number"] for line in before + now]
    assert numbers == list(range(numbers[0], 1000))
    assert sorted(path.name for path in own.parent.iterdir()) == ["log", "log.old"]
    assert own.stat().st_size < 6000


def test_metrics_are_exposed_in_prometheus_form_with_loops_measured():
    metrics = Metrics()
    metrics.gauge("iris_queue_depth", "Tasks that wait.", ["band"]).labels("batch").set(3)
    watch = LoopMetrics(metrics)
    watch("iris.schedule", 0.002, failed=False)
    watch("iris.schedule", 0.5, failed=True)
    text = metrics.exposition().decode()
    assert 'iris_queue_depth{band="batch"} 3.0' in text
    assert 'neorion_loop_tick_seconds_count{loop="iris.schedule"} 2.0' in text
    assert 'neorion_loop_failures_total{loop="iris.schedule"} 1.0' in text


@pytest.mark.parametrize("name", ["depth", "Iris_depth", "iris_wait_ms", "iris_things_total", "iris-depth"])
def test_a_gauge_with_a_misleading_name_is_refused(name: str):
    with pytest.raises(ValueError, match=name):
        Metrics().gauge(name, "Wrong.")


def test_a_counter_must_end_in_total():
    with pytest.raises(ValueError, match="iris_things"):
        Metrics().counter("iris_things", "Wrong.")


def test_the_front_does_not_load_prometheus():
    code = "import sys, neorion.keel.telemetry; sys.exit('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
