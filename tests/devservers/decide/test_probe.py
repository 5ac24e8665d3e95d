"""What the probe said in real containers, and what is made of it."""

import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neorion.devservers.decide import PROBE, ActivitySource, ProbeReading, read

RECORDED = Path(__file__).parent / "probes"
SECOND = timedelta(seconds=1)


def recorded(name: str) -> ProbeReading:
    reading = read((RECORDED / f"{name}.txt").read_text())
    assert reading is not None
    return reading


def said(*lines: str) -> ProbeReading:
    reading = read("\n".join(("now 1000000", *lines, "cpu 5000000", "end\n")))
    assert reading is not None
    return reading


@pytest.mark.parametrize("image", ["busybox", "debian"])
def test_a_quiet_container_shows_no_use_and_hides_nothing(image: str):
    reading = recorded(f"{image}-quiet")
    assert (reading.ages, reading.unknown) == ((), frozenset())
    assert reading.cpu is not None


def test_a_terminal_and_a_job_are_seen_in_any_image():
    assert recorded("busybox-terminal").ages == ((ActivitySource.TERMINAL, 5 * SECOND),)
    assert recorded("debian-terminal").ages == (
        (ActivitySource.TERMINAL, 5 * SECOND),
        (ActivitySource.PROCESS, timedelta(0)),
    )


def test_a_terminal_is_as_old_as_its_last_key():
    assert said("terminal 999400", "terminal 999990").ages == (
        (ActivitySource.TERMINAL, 600 * SECOND),
        (ActivitySource.TERMINAL, 10 * SECOND),
    )


def test_a_session_a_job_and_a_busy_gpu_are_use_at_this_moment():
    reading = said("session open", "job torchrun", "gpu 0", "gpu 87")
    assert set(reading.ages) == {
        (ActivitySource.SESSION, timedelta(0)),
        (ActivitySource.PROCESS, timedelta(0)),
        (ActivitySource.GPU, timedelta(0)),
    }
    assert (reading.cpu, reading.unknown) == (5 * SECOND, frozenset())


def test_a_kernel_is_used_while_it_is_busy_and_as_it_was_last():
    busy = '[{"id": "1", "execution_state": "busy", "last_activity": "1970-01-12T13:40:00Z"}]'
    idle = '[{"id": "1", "execution_state": "idle", "last_activity": "1970-01-12T13:40:00Z"}]'
    assert said(f"kernels {busy}").ages == ((ActivitySource.NOTEBOOK, timedelta(0)),)
    assert said(f"kernels {idle}").ages == ((ActivitySource.NOTEBOOK, 400 * SECOND),)
    assert said("kernels ", "kernels <html>", "kernels [1]").ages == ()


@pytest.mark.parametrize(
    ("line", "source"),
    [
        ("terminal unknown", ActivitySource.TERMINAL),
        ("session unknown", ActivitySource.SESSION),
        ("gpu unknown", ActivitySource.GPU),
        ("gpu [N/A]", ActivitySource.GPU),
        (f"gpu {'9' * 5000}", ActivitySource.GPU),
    ],
)
def test_what_is_there_and_cannot_be_read_is_unknown(line: str, source: ActivitySource):
    assert said(line).unknown == {source}


@pytest.mark.parametrize("words", ["", "end", "now 12\ncpu 1\n", "now soon\nend", "sh: not found"])
def test_half_an_answer_is_none(words: str):
    assert read(words) is None


@given(st.text())
def test_no_words_break_the_reader(words: str):
    read(f"now 1\n{words}\nend")


def test_the_probe_runs_in_the_shell_of_this_machine():
    done = subprocess.run(["sh", "-c", PROBE], capture_output=True, text=True, check=True)
    assert read(done.stdout) is not None
