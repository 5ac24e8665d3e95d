"""What an installation on AWS lacks is named, each part by itself."""

from dataclasses import replace
from typing import Any

import pytest

from neorion.devservers.decide.aws_installation import AwsFacts, NodePoolOffer, check_aws
from neorion.keel.base import Severity

SOUND = AwsFacts(
    drivers=frozenset({"ebs.csi.aws.com", "efs.csi.aws.com"}),
    storage_classes={"devservers-home": "ebs.csi.aws.com", "devservers-shared": "efs.csi.aws.com"},
    default_class="devservers-home",
    flavors={"g5.xlarge": "g5.xlarge", "p5.48xlarge": "p5.48xlarge"},
    node_types=frozenset({"m7i.large"}),
    node_pools=(NodePoolOffer(families=frozenset({"g5"})), NodePoolOffer(types=frozenset({"p5.48xlarge"}))),
    gpu_flavors=frozenset({"g5.xlarge", "p5.48xlarge"}),
    device_plugin=True,
    bastion_address="bastion-1.elb.us-east-1.amazonaws.com",
    bastion_type="LoadBalancer",
    metrics_role="arn:aws:iam::111122223333:role/devservers-devservers-metrics",
)


def test_a_sound_installation_has_no_complaint():
    assert {one.severity for one in check_aws(SOUND)} == {Severity.INFO}


@pytest.mark.parametrize(
    ("change", "severity", "subject", "sentence"),
    [
        ({"drivers": frozenset({"efs.csi.aws.com"})}, "error", "ebs.csi.aws.com", "The CSI driver of homes is not installed."),
        ({"drivers": frozenset({"ebs.csi.aws.com"})}, "warning", "efs.csi.aws.com", "The CSI driver of shared volumes is not installed."),
        ({"storage_classes": {"devservers-shared": "efs.csi.aws.com"}}, "error", "devservers-home", "There is no storage class devservers-home of ebs.csi.aws.com."),
        ({"storage_classes": {"devservers-home": "ebs.csi.aws.com"}}, "warning", "devservers-shared", "There is no storage class devservers-shared of efs.csi.aws.com."),
        ({"default_class": "gp2"}, "warning", "devservers-home", "The default storage class is gp2, and homes that name no class get that."),
        ({"node_pools": None, "node_types": frozenset({"g5.xlarge", "p5.48xlarge"})}, "warning", "karpenter", "Karpenter is not installed: machines are not bought when servers wait for them."),
        ({"node_pools": (NodePoolOffer(families=frozenset({"g5"})),)}, "error", "p5.48xlarge", "There is no node of type p5.48xlarge, and no NodePool buys one."),
        ({"device_plugin": False}, "error", "nvidia-device-plugin", "No device plugin offers NVIDIA GPUs, and 2 flavors need them."),
        ({"bastion_address": None}, "warning", "devservers-bastion", "There is no SSH bastion."),
        ({"bastion_address": ""}, "error", "devservers-bastion", "The bastion's load balancer has no address."),
        ({"bastion_address": "", "bastion_type": "ClusterIP"}, "warning", "devservers-bastion", "The bastion is reached from inside the cluster alone."),
        ({"metrics_role": ""}, "warning", "devservers-metrics", "The account that publishes metrics has no role."),
    ],
)  # fmt: skip
def test_what_is_missing_is_named_and_nothing_else(
    change: dict[str, Any], severity: str, subject: str, sentence: str
):
    complaints = [one for one in check_aws(replace(SOUND, **change)) if one.severity is not Severity.INFO]
    assert [(one.severity, one.subject, one.sentence) for one in complaints] == [
        (severity, subject, sentence)
    ]
    assert all(one.hint for one in complaints)


def test_without_flavors_of_ec2_nothing_is_asked_of_machines():
    bare = replace(SOUND, flavors={}, gpu_flavors=frozenset(), node_pools=(), device_plugin=False)
    assert {one.severity for one in check_aws(bare)} == {Severity.INFO}
