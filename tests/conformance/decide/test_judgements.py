"""Each judgement on what a broken platform shows: a stand-in for every id must be judged to fail."""

from collections.abc import Callable
from typing import Any

import pytest

from neorion.conformance.decide import access, dra, exposition, gang, monitoring, operator, scaling, traffic
from neorion.conformance.model import Assertion

Json = dict[str, Any]


def pod(node: str = "", uid: str = "u", owner: str = "") -> Json:
    owners = [{"uid": owner}] if owner else []
    return {"metadata": {"uid": uid, "ownerReferences": owners}, "spec": {"nodeName": node}}


def claim(*devices: str) -> Json:
    results = [{"driver": "d", "pool": "p", "device": device} for device in devices]
    return {"status": {"allocation": {"devices": {"results": results}}}}


def sight(*devices: str, ids: tuple[str, ...] = (), opened: tuple[str, ...] = ()) -> access.Sight:
    return access.Sight(dict.fromkeys(devices, "c3:0"), ids, opened)


def metrics(*ids: str, name: str = "UTIL") -> exposition.Exposition:
    return exposition.read_exposition("".join(f'{name}{{UUID="{each}"}} 1\n' for each in ids))


def sample(value: int, **labels: str) -> Json:
    return {"metric": labels, "value": [0, str(value)]}


VERBS = {"create", "get", "list", "watch", "update", "patch", "delete"}
SERVED = {name: set(VERBS) for name in dra.KINDS}
WEIGHTS = {"a": 70, "b": 30, "c": 0}
DENIED = 'admission webhook "w" denied the request: no'
CALLED = 'Internal error occurred: failed calling webhook "w": connection refused'

# What a sound platform shows, and what a broken one does.
ROWS: list[tuple[str, Callable[[], Assertion], Callable[[], Assertion]]] = [
    ("dra: a kind is not served", lambda: dra.serves_all(SERVED), lambda: dra.serves_all({**SERVED, "resourceslices": set()})),
    ("dra: a verb is missing", lambda: dra.serves_all(SERVED), lambda: dra.serves_all({**SERVED, "deviceclasses": VERBS - {"watch"}})),
    ("dra: selectors are ignored", lambda: dra.got_one_of("n", claim("large"), ["d/p/large"]), lambda: dra.got_one_of("n", claim("small"), ["d/p/large"])),
    ("dra: two devices for one", lambda: dra.got_one_of("n", claim("a"), ["d/p/a"]), lambda: dra.got_one_of("n", claim("a", "b"), ["d/p/a"])),
    ("dra: a device that is not there", lambda: dra.waits("n", {"status": {}}, 5), lambda: dra.waits("n", claim("a"), 5)),
    ("dra: a shared claim parts its pods", lambda: dra.together([pod("n1"), pod("n1")]), lambda: dra.together([pod("n1"), pod("n2")])),
    ("gang: placed in part", lambda: gang.whole_or_not_at_all([0], 4, 5), lambda: gang.whole_or_not_at_all([0, 3], 4, 5)),
    ("gang: placed though it does not fit", lambda: gang.waits_for_room([0], 4), lambda: gang.waits_for_room([4], 4)),
    ("gang: never placed", lambda: gang.placed_whole(4, 4, 1), lambda: gang.placed_whole(0, 4, 60)),
    ("gang: two wait for each other", lambda: gang.both_finish({"a": True, "b": True}), lambda: gang.both_finish({"a": True, "b": False})),
    ("gateway: weights ignored", lambda: traffic.split_as("n", {"a": 348, "b": 152}, WEIGHTS), lambda: traffic.split_as("n", {"a": 250, "b": 250}, WEIGHTS)),
    ("gateway: weight 0 answers", lambda: traffic.split_as("n", {"a": 350, "b": 150}, WEIGHTS), lambda: traffic.split_as("n", {"a": 350, "b": 149, "c": 1}, WEIGHTS)),
    ("gateway: some requests fail", lambda: traffic.split_as("n", {"a": 350, "b": 150}, WEIGHTS), lambda: traffic.split_as("n", {"a": 350, "b": 149, "status 502": 1}, WEIGHTS)),
    ("gateway: no answer at all", lambda: traffic.split_as("n", {"a": 70, "b": 30}, WEIGHTS), lambda: traffic.split_as("n", {}, WEIGHTS)),
    ("gateway: the header is ignored", lambda: traffic.all_from("n", {"c": 50}, "c", 50), lambda: traffic.all_from("n", {"c": 49, "a": 1}, "c", 50)),
    ("gateway: a stream is buffered", lambda: traffic.streamed(0, 1, 1), lambda: traffic.streamed(1, 1, 1)),
    ("gateway: an unknown host is served", lambda: traffic.refused(404), lambda: traffic.refused(200)),
    ("gateway: accepted alone", lambda: traffic.programmed(gateway("Accepted", "Programmed")), lambda: traffic.programmed(gateway("Accepted"))),
    ("gateway: programmed for an older generation", lambda: traffic.programmed(gateway("Accepted", "Programmed")), lambda: traffic.programmed(gateway("Accepted", "Programmed", generation=2))),
    ("HPA: frozen", lambda: scaling.scaled_to("n", 3, 3, 1), lambda: scaling.scaled_to("n", 1, 3, 60)),
    ("HPA: moves at its target", lambda: scaling.stays_at("n", [1, 1], 1, 20), lambda: scaling.stays_at("n", [1, 2, 1], 1, 20)),
    ("HPA: another value is served", lambda: scaling.metric_is([{"value": "10"}], "10"), lambda: scaling.metric_is([{"value": "0"}], "10")),
    ("HPA: pods without accelerators", lambda: scaling.hold_accelerators([{}, {}], 2, 2), lambda: scaling.hold_accelerators([{}, {}], 2, 0)),
    ("autoscaler: frozen", lambda: scaling.grew_for("n", "new", {"old"}, 1), lambda: scaling.grew_for("", "", {"old"}, 60)),
    ("autoscaler: a known node under a new name", lambda: scaling.grew_for("n", "new", {"old"}, 1), lambda: scaling.grew_for("n2", "old", {"old"}, 1)),
    ("autoscaler: never shrinks", lambda: scaling.shrank_back(set(), 1), lambda: scaling.shrank_back({"new"}, 120)),
    ("autoscaler: takes another node", lambda: scaling.untouched({"a"}, {"a", "b"}), lambda: scaling.untouched({"a", "b"}, {"a"})),
    ("exporter: one device missing", lambda: exposition.covers("u", metrics("a", "b"), "UTIL", "UUID", 2), lambda: exposition.covers("u", metrics("a"), "UTIL", "UUID", 2)),
    ("exporter: one device twice", lambda: exposition.covers("u", metrics("a", "b"), "UTIL", "UUID", 2), lambda: exposition.covers("u", metrics("a", "a"), "UTIL", "UUID", 2)),
    ("exporter: names that look alike", lambda: exposition.covers("u", metrics("a"), "UTIL", "UUID", 1), lambda: exposition.covers("u", metrics("a", name="process_UTIL"), "UTIL", "UUID", 1)),
    ("exporter: no exposition", lambda: exposition.readable(metrics("a")), lambda: exposition.readable(exposition.read_exposition("<html>{</html>"))),
    ("monitoring: a request is lost", lambda: monitoring.counted("n", [sample(7)], 7), lambda: monitoring.counted("n", [sample(6)], 7)),
    ("monitoring: nothing is found", lambda: monitoring.counted("n", [sample(7)], 7), lambda: monitoring.counted("n", [], 7)),
    ("monitoring: another pod's labels", lambda: monitoring.labelled([sample(7, namespace="n", pod="p")], "n", "p"), lambda: monitoring.labelled([sample(7, namespace="n", pod="q")], "n", "p")),
    ("monitoring: never stale", lambda: monitoring.gone([], 1), lambda: monitoring.gone([sample(7)], 60)),
    ("access: a runtime that leaks", lambda: access.sees_exactly("n", sight(), 0), lambda: access.sees_exactly("n", sight("/dev/nvidia0"), 0)),
    ("access: one device too many", lambda: access.sees_exactly("n", sight("/dev/nvidia0"), 1), lambda: access.sees_exactly("n", sight("/dev/nvidia0", "/dev/nvidia1"), 1)),
    ("access: the probe never ended", lambda: access.sees_exactly("n", sight(), 0), lambda: access.sees_exactly("n", None, 0)),
    ("access: one device for two pods", lambda: access.disjoint(sight(ids=("a",)), sight(ids=("b",))), lambda: access.disjoint(sight(ids=("a",)), sight(ids=("a",)))),
    ("access: more ids than asked for", lambda: access.ids_agree(sight(ids=("a",)), 1), lambda: access.ids_agree(sight(ids=("a", "b")), 1)),
    ("access: a number opens a device", lambda: access.cannot_open(sight(), {"x": "c3:0"}), lambda: access.cannot_open(sight(opened=("c3:0",)), {"x": "c3:0"})),
    ("operator: a dead webhook", lambda: operator.refused_by("w", DENIED), lambda: operator.refused_by("w", CALLED)),
    ("operator: no webhook", lambda: operator.refused_by("w", DENIED), lambda: operator.refused_by("w", "")),
    ("operator: another's refusal", lambda: operator.refused_by("w", DENIED), lambda: operator.refused_by("w", "forbidden: User cannot create")),
    ("operator: stopped", lambda: operator.has_child("o", [pod(owner="o")], 1), lambda: operator.has_child("o", [pod()], 60)),
    ("operator: a child stays away", lambda: operator.recreated("u1", [pod(uid="u2")]), lambda: operator.recreated("u1", [pod(uid="u1")])),
    ("operator: children stay", lambda: operator.all_gone([]), lambda: operator.all_gone([pod()])),
    ("operator: an old generation", lambda: operator.has_condition("n", queue(1), "Active", "True"), lambda: operator.has_condition("n", queue(0), "Active", "True")),
]  # fmt: skip


def gateway(*conditions: str, generation: int = 1) -> Json:
    found = [{"type": each, "status": "True", "observedGeneration": 1} for each in conditions]
    return {
        "metadata": {"generation": generation},
        "status": {"conditions": found, "addresses": [{"value": "10.0.0.1"}]},
    }


def queue(observed: int) -> Json:
    conditions = [{"type": "Active", "status": "True", "observedGeneration": observed}]
    return {"metadata": {"generation": 1}, "status": {"conditions": conditions}}


@pytest.mark.parametrize(("sound", "broken"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_broken_platform_is_told_from_a_sound_one(
    sound: Callable[[], Assertion], broken: Callable[[], Assertion]
):
    assert sound().held
    assert not broken().held
    assert broken().detail


def test_the_binomial_test_is_exact():
    assert traffic.chance(350, 500, 0.7) == pytest.approx(1.0)
    # By summing the odds by hand: 2 * 0.5 ** 3 of all or none of three.
    assert traffic.chance(3, 3, 0.5) == pytest.approx(0.25)
    assert traffic.chance(0, 3, 0.5) == pytest.approx(0.25)


def test_a_fair_split_is_rarely_called_wrong():
    """As rarely as ALPHA says: the counts that are refused have together at most that chance."""
    total, share = 500, 0.7
    refused = [hits for hits in range(total + 1) if traffic.chance(hits, total, share) < traffic.ALPHA]
    assert 0 < sum(traffic._odds(hits, total, share) for hits in refused) < traffic.ALPHA


def test_a_probe_reports_what_a_shell_sees():
    log = "device /dev/nvidia0 c3:0\nvisible GPU-1,GPU-2\nprobe done\n"
    assert access.sight_of(log) == access.Sight({"/dev/nvidia0": "c3:0"}, ("GPU-1", "GPU-2"), ())
    assert access.sight_of("device /dev/nvidia0 c3:0\n") is None
