"""From verdicts to the health of a node."""

from msgspec.structs import replace

from neorion.capacity.gpu import Remedy
from neorion.keel.base import Duration
from neorion.navarch.decide import ClearAilment, ReportSilence, diagnose, incidents, plan
from neorion.navarch.model import EventKind, Health, HealthEvent, NodeHeartbeat, PolicyResult
from neorion.navarch.model.spec import HealthRules
from neorion.navarch.testing import NOW, ailment, later, node, nodes, pool_view, spec

RULES = HealthRules(unhealthy_after=2)
MAYBE = PolicyResult("doubt", Health.UNHEALTHY, Remedy.RESET_GPU)
SURE = PolicyResult("certainty", Health.UNHEALTHY, Remedy.REPLACE, certain=True)
WELL = PolicyResult("fine", Health.HEALTHY)


def xid(code: int, at: float = 0) -> HealthEvent:
    return HealthEvent(later(at), EventKind.XID, gpu=0, xid=code)


def test_what_is_certain_needs_to_be_seen_once():
    assert diagnose(node(), xid(79), SURE, RULES).health is Health.UNHEALTHY


def test_a_doubt_becomes_certain_at_the_threshold_and_a_burst_counts_once():
    after = diagnose(node(), xid(74), MAYBE, RULES)
    assert after.health is Health.DEGRADED
    burst = diagnose(diagnose(after, xid(74, 10), MAYBE, RULES), xid(74, 170), MAYBE, RULES)
    assert burst.health is Health.DEGRADED
    again = diagnose(burst, xid(74, 600), MAYBE, RULES)
    assert again.health is Health.UNHEALTHY
    assert again.ailment is not None
    assert again.ailment.bursts == 2


def test_sightings_too_far_apart_do_not_add_up():
    after = diagnose(node(), xid(74), MAYBE, RULES)
    assert diagnose(after, xid(74, 25 * 3_600), MAYBE, RULES).health is Health.DEGRADED


def test_a_milder_finding_does_not_hide_a_worse_one():
    ill = diagnose(node(), xid(79), SURE, RULES)
    assert diagnose(ill, xid(74, 5), MAYBE, RULES) == ill


def test_a_clean_verdict_heals_only_what_it_is_about():
    hot = diagnose(node(), HealthEvent(NOW, EventKind.THERMAL), SURE, RULES)
    assert diagnose(hot, xid(13), WELL, RULES) == hot
    assert diagnose(hot, HealthEvent(later(1), EventKind.THERMAL), WELL, RULES).health is Health.HEALTHY


def test_a_doubt_that_nothing_confirmed_and_an_applications_error_are_let_go_and_a_certainty_is_not():
    doubt = replace(ailment(seen=later(-25 * 3_600)), result=Health.DEGRADED)
    sure = ailment(seen=later(-25 * 3_600))
    work = ailment("xid 13", Remedy.RESTART_WORKLOAD, seen=later(-25 * 3_600))
    sick = [node(1, ailment=doubt), node(2, ailment=sure), node(3, ailment=work)]
    told = [a.node for a in plan(pool_view(spec(3), sick), NOW).actions if isinstance(a, ClearAilment)]
    assert told == ["node-0001", "node-0003"]


def test_a_node_that_is_not_heard_for_too_long_is_noticed_once():
    quiet = {one.id: NodeHeartbeat(heard=later(-91)) for one in nodes(1)}
    view = pool_view(spec(1), nodes(1), heartbeats=quiet)
    assert [a.node for a in plan(view, NOW).actions if isinstance(a, ReportSilence)] == ["node-0001"]
    known = [node(1, ailment=ailment("silence", Remedy.REBOOT), health=Health.UNHEALTHY)]
    assert not [
        a
        for a in plan(pool_view(spec(1), known, heartbeats=quiet), NOW).actions
        if isinstance(a, ReportSilence)
    ]


def test_the_same_event_on_many_nodes_is_one_incident():
    members = nodes(5)
    events = {one.id: (xid(13, -index),) for index, one in enumerate(members)}
    (incident,) = incidents(pool_view(spec(5), members, events=events), NOW)
    assert len(incident.nodes) == 5
    assert "the workload did it" in incident.sentence
    driver = {one.id: (xid(9),) for one in members}
    (blamed,) = incidents(pool_view(spec(5), members, events=driver), NOW)
    assert "the workload" not in blamed.sentence
    assert "a new driver" in blamed.sentence
    few = {one.id: (xid(13),) for one in members[:2]}
    assert incidents(pool_view(spec(5), members, events=few), NOW) == []
    old = NOW + Duration.of(hours=1)
    assert incidents(pool_view(spec(5), members, events=events), old) == []
