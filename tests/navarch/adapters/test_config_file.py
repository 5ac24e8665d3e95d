"""The configuration file: the document's form, the newer form, and what is said about mistakes."""

from pathlib import Path

import pytest

from neorion.capacity.gpu import Remedy
from neorion.keel.base import Duration
from neorion.keel.config import InvalidConfig, loads
from neorion.navarch.adapters.config_file import (
    ConfigFile,
    PolicyFile,
    default_policy,
    policies_of,
    pool_specs,
)
from neorion.navarch.model import PoolSpec
from neorion.navarch.model.spec import (
    CommonCause,
    CompositeAutoscaler,
    CompositeMode,
    CountOrPercent,
    QueueAutoscaler,
    ReactiveAutoscaler,
    RepairLadder,
    ScheduledAutoscaler,
    Strategy,
)

DOCUMENT = """
server:
  address: 0.0.0.0:50051
  heartbeat_interval: 30s
  health_check_interval: 60s
  autoscale_interval: 30s

providers:
  lambda:
    api_key_env: LAMBDA_API_KEY
  gcp:
    project: my-gcp-project

pools:
  # Training pool: large H100 instances, conservative scaling
  - name: training
    provider: lambda
    instance_type: gpu_8x_h100_sxm5
    region: us-west-2

    scaling:
      min_nodes: 2
      max_nodes: 20
      cooldown_period: 10m

      autoscaler:
        type: composite
        mode: max
        autoscalers:
          - type: reactive
            scale_up_threshold: 80
            scale_down_threshold: 20
          - type: queue
            jobs_per_node: 8

    health:
      unhealthy_threshold: 2
      auto_replace: true

    labels:
      workload: training

  # Inference pool: smaller instances, aggressive scaling
  - name: inference
    provider: gcp
    instance_type: a2-highgpu-1g
    region: us-central1

    scaling:
      min_nodes: 4
      max_nodes: 100
      cooldown_period: 2m

      autoscaler:
        type: reactive
        scale_up_threshold: 60
        scale_down_threshold: 30

    health:
      unhealthy_threshold: 1
      auto_replace: true

    labels:
      workload: inference
"""

NEWER = """
server:
  address: ":50051"
  heartbeat_interval: 10s
  heartbeat_timeout: 1m
providers:
  cheap: { type: fake }
  dear: { type: fake }
pools:
  training:
    providers:
      - { name: cheap, priority: 1, regions: [r1, r2], zones: [] }
      - { name: dear, priority: 2, instance_type: other, spot: true }
    strategy: cost
    instance_type: gpu_8x_h100_sxm5
    min_nodes: 1
    max_nodes: 8
    cooldown: 1m
    spares: 2
    max_price: 30
    autoscaling:
      type: scheduled
      schedule:
        - { days: [monday, tuesday], start: "22:00", end: "06:30", min_nodes: 4, max_nodes: 8, timezone: Europe/Berlin }
      fallback: { type: reactive, scale_up_at: 70, scale_down_at: 10 }
    health:
      unhealthy_after: 3
      approval: [replace]
      budgets:
        - max_unavailable: 25%
        - { max_unavailable: 1, per: 1h, reasons: [thermal] }
      ladder: { tries: 1, pause: 0s, max_treatments: 3, lemon_nodes: 4 }
      common_cause: { share: 50%, at_least: 5, within: 1m, wait: 0s }
  plain:
    provider: cheap
    instance_type: x
    max_nodes: 3
defaults:
  health: { auto_replace: false }
  ssh_user: root
"""


def pools(text: str) -> dict[str, PoolSpec]:
    return pool_specs(loads(text, ConfigFile, {}))


def mistakes(text: str) -> list[tuple[str, str, str]]:
    with pytest.raises(InvalidConfig) as wrong:
        loads(text, ConfigFile, {})
    return [(found.subject.partition(" ")[2], found.sentence, found.hint) for found in wrong.value.findings]


def test_the_documents_complete_example_loads_as_it_stands():
    file = loads(DOCUMENT, ConfigFile, {})
    assert file.server.bind_address[1] == 50051
    training, inference = pool_specs(file).values()
    assert (training.scaling.least, training.scaling.most) == (2, 20)
    assert training.scaling.cooldown == Duration.of(minutes=10)
    assert training.scaling.autoscaler == CompositeAutoscaler(
        CompositeMode.MAX, (ReactiveAutoscaler(80, 20), QueueAutoscaler(8))
    )
    assert training.health.unhealthy_after == 2
    assert training.labels == (("workload", "training"),)
    assert inference.offers[0].provider == "gcp"
    assert inference.health.auto_replace


def test_the_newer_form_loads_too():
    found = pools(NEWER)
    training, plain = found["training"], found["plain"]
    assert [offer.provider for offer in training.offers] == ["cheap", "dear"]
    assert training.offers[0].regions == ("r1", "r2")
    assert training.offers[1].instance_type == "other"
    assert training.strategy is Strategy.COST
    assert training.scaling.spares == 2
    assert isinstance(training.scaling.autoscaler, ScheduledAutoscaler)
    assert training.health.unhealthy_after == 3
    assert training.health.approval == {Remedy.REPLACE}
    assert [budget.most for budget in training.health.budgets] == [
        CountOrPercent(percent=25),
        CountOrPercent(count=1),
    ]
    assert training.health.ladder == RepairLadder(tries=1, pause=Duration(0), most=3, lemon=4)
    assert training.health.cause == CommonCause(50.0, 5, Duration.of(minutes=1), Duration(0))
    assert (plain.health.ladder, plain.health.cause) == (RepairLadder(), CommonCause())
    assert training.timing.silence == Duration.of(minutes=1)
    assert not plain.health.auto_replace
    assert plain.bootstrap.user == "root"


def test_a_silent_node_is_lost_after_three_heartbeats_if_nothing_is_said():
    assert pools(DOCUMENT)["training"].timing.silence == Duration.of(seconds=90)


@pytest.mark.parametrize(
    ("before", "after", "path", "says"),
    [
        (
            "unhealthy_threshold: 2",
            "unhealthy_treshold: 2",
            "pools[0].health.unhealthy_treshold",
            "not a known key",
        ),
        ("    provider: lambda", "    provider: lamda", "pools[0].provider", 'no provider "lamda"'),
        ("min_nodes: 2\n", "min_nodes: 21\n", "pools[0].scaling.min_nodes", "more than the 20"),
        ("type: queue", "type: queu", "pools[0].scaling.autoscaler.autoscalers[1]", "queu"),
        ("name: inference", "name: training", "pools[1].name", "two pools"),
        ("  lambda:\n", "  lambada:\n", "providers.lambada", "which cloud"),
        (
            "    project: my-gcp-project",
            "    api_key_env: X",
            "providers.gcp.api_key_env",
            "means nothing to gcp",
        ),
        ("address: 0.0.0.0:50051", "address: nowhere", "server.address", "no address"),
        (
            "scale_up_threshold: 60",
            "scale_up_threshold: 20",
            "pools[1].scaling.autoscaler",
            "nothing lies between",
        ),
        ("heartbeat_interval: 30s", "heartbeat_interval: 1ms", "server.heartbeat_interval", "too short"),
    ],
)
def test_a_mistake_is_told_with_its_place(before: str, after: str, path: str, says: str):
    assert before in DOCUMENT
    found = mistakes(DOCUMENT.replace(before, after, 1))
    assert any(where.startswith(path) and says in sentence for where, sentence, _ in found), found


def test_a_misspelt_key_gets_a_suggestion_in_both_forms():
    (older,) = mistakes(DOCUMENT.replace("cooldown_period: 10m", "cooldown_perid: 10m"))
    assert older[2] == 'did you mean "cooldown_period"?'
    (newer,) = mistakes(NEWER.replace("cooldown: 1m", "cooldwn: 1m"))
    assert newer[2] == 'did you mean "cooldown"?'


def test_two_names_for_one_thing_are_refused_together():
    text = NEWER.replace("unhealthy_after: 3", "unhealthy_after: 3\n      unhealthy_threshold: 2")
    assert any("one thing under two names" in sentence for _, sentence, _ in mistakes(text))


def test_a_pools_own_policy_is_read_beside_the_configuration(tmp_path: Path):
    (tmp_path / "mine.yaml").write_text("rules: [{name: all, condition: 'true', result: healthy}]\n")
    found = pools(
        NEWER.replace("      unhealthy_after: 3", "      unhealthy_after: 3\n      policy: mine.yaml")
    )
    policies = policies_of(found, tmp_path, {})
    assert [rule.name for rule in policies["mine.yaml"].rules] == ["all"]
    assert policies["default"] == default_policy()


def test_a_rule_that_is_no_cel_is_found_with_the_file():
    text = "rules:\n  - {name: a, condition: 'evnt.xid == 1', result: healthy}\n"
    with pytest.raises(InvalidConfig) as wrong:
        loads(text, PolicyFile, {})
    (found,) = wrong.value.findings
    assert "rules[0].condition" in found.subject
    assert found.hint == 'did you mean "event"?'
