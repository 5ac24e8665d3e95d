"""The Terraform folders hold together, and their IAM policies allow what is called and nothing beside it."""

from pathlib import Path

import pytest

from tests.infra.iam import VALUES, allows, policy
from tests.infra.terraform import Module

ROOT = Path(__file__).parent.parent.parent
AWS = ROOT / "infra/aws"
FOLDERS = (AWS, ROOT / "infra/coreweave")
ACCOUNT, REGION = VALUES["account"], VALUES["region"]
OURS = {"kubernetes.io/cluster/devservers": "owned"}
EC2 = f"arn:aws:ec2:{REGION}:{ACCOUNT}"
ELB = f"arn:aws:elasticloadbalancing:{REGION}:{ACCOUNT}"
ACCESS_POINT = f"arn:aws:elasticfilesystem:{REGION}:{ACCOUNT}:access-point/fsap-1"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_reference_exists_and_everything_is_used(folder: Path):
    module = Module.read(folder)
    assert len(module.blocks) > 10
    assert module.flaws() == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_variables_and_outputs_are_explained(folder: Path):
    blocks = Module.read(folder).blocks
    named = {address: body for address, body in blocks.items() if address.startswith(("var.", "output."))}
    assert [address for address, body in named.items() if "description" not in body] == []


@pytest.mark.parametrize(
    ("text", "flaw"),
    [
        ('resource "aws_vpc" "b" { cidr_block = var.cidr }', "aws_vpc.b: var.cidr is not defined"),
        ('resource "aws_vpc" "b" { cidr_block = aws_vpc.c.id }', "aws_vpc.b: aws_vpc.c is not defined"),
        ('output "b" { value = "x-${data.aws_vpc.c.id}" }', "output.b: data.aws_vpc.c is not defined"),
        ('output "b" { value = "${local.arn}:${local.name}" }', "output.b: local.name is not defined"),
        ('variable "idle" { type = string }', "var.idle is not used"),
        ('locals { idle = "x" }', "local.idle is not used"),
        ('resource "google_vpc" "b" {}', "google_vpc.b: no provider is required for it"),
        (
            'resource "aws_vpc" "b" { x = aws_vpc.c.id }\nresource "aws_vpc" "c" { x = aws_vpc.b.id }',
            "cycle: ",
        ),
    ],
)
def test_a_flaw_is_found(text: str, flaw: str):
    module = Module.read(AWS)
    module.add(text)
    assert any(one.startswith(flaw) for one in module.flaws())


def test_each_service_account_has_a_policy_and_each_policy_has_its_account():
    accounts = Module.read(AWS).blocks["local.service_accounts"]
    names = {name.strip('"') for name in accounts if not name.startswith("__")}
    of_resources = {"efs-file-system", "interruption-queue"}
    assert {file.stem for file in AWS.glob("policies/*.json")} == names | of_resources


@pytest.mark.parametrize(
    ("role", "action", "resource", "context"),
    [
        ("devservers-metrics", "cloudwatch:PutMetricData", "*", {"cloudwatch:namespace": "Neorion/DevServers"}),
        ("ebs-csi", "ec2:DescribeVolumes", "*", {}),
        ("ebs-csi", "ec2:CreateVolume", f"{EC2}:volume/v", {"aws:RequestTag/ebs.csi.aws.com/cluster": "true"}),
        ("ebs-csi", "ec2:CreateTags", f"{EC2}:volume/v", {"ec2:CreateAction": "CreateVolume"}),
        ("ebs-csi", "ec2:DeleteVolume", f"{EC2}:volume/v", {"ec2:ResourceTag/ebs.csi.aws.com/cluster": "true"}),
        ("ebs-csi", "ec2:AttachVolume", f"{EC2}:instance/i", {"ec2:ResourceTag/kubernetes.io/cluster/devservers": "owned"}),
        ("efs-csi", "elasticfilesystem:CreateAccessPoint", VALUES["efs_file_system"], {"aws:RequestTag/efs.csi.aws.com/cluster": "true"}),
        ("efs-csi", "elasticfilesystem:DeleteAccessPoint", ACCESS_POINT, {"aws:ResourceTag/efs.csi.aws.com/cluster": "true"}),
        ("karpenter", "ec2:RunInstances", f"{EC2}:instance/i", {f"aws:RequestTag/{key}": value for key, value in OURS.items()}),
        ("karpenter", "ec2:RunInstances", f"{EC2}:subnet/s", {}),
        ("karpenter", "ec2:TerminateInstances", f"{EC2}:instance/i", {f"aws:ResourceTag/{key}": value for key, value in OURS.items()}),
        ("karpenter", "iam:PassRole", VALUES["node_role"], {"iam:PassedToService": "ec2.amazonaws.com"}),
        ("karpenter", "sqs:ReceiveMessage", VALUES["interruption_queue"], {}),
        ("karpenter", "eks:DescribeCluster", f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/devservers", {}),
        ("load-balancer-controller", "elasticloadbalancing:CreateLoadBalancer", f"{ELB}:loadbalancer/net/x/1", {"aws:RequestTag/elbv2.k8s.aws/cluster": "devservers"}),
        ("load-balancer-controller", "elasticloadbalancing:RegisterTargets", f"{ELB}:targetgroup/x/1", {"aws:ResourceTag/elbv2.k8s.aws/cluster": "devservers"}),
    ],
)  # fmt: skip
def test_what_a_program_calls_is_allowed(role: str, action: str, resource: str, context: dict[str, str]):
    assert allows(policy(AWS / f"policies/{role}.json"), action, resource, context)


@pytest.mark.parametrize(
    ("role", "action", "resource", "context"),
    [
        ("devservers-metrics", "cloudwatch:PutMetricData", "*", {"cloudwatch:namespace": "AWS/Billing"}),
        ("devservers-metrics", "cloudwatch:PutMetricData", "*", {}),
        ("devservers-metrics", "cloudwatch:DeleteAlarms", "*", {"cloudwatch:namespace": "Neorion/DevServers"}),
        ("ebs-csi", "ec2:DeleteVolume", f"{EC2}:volume/of-a-database", {}),
        ("ebs-csi", "ec2:CreateTags", f"{EC2}:volume/of-a-database", {}),
        ("ebs-csi", "ec2:AttachVolume", f"{EC2}:instance/of-others", {}),
        ("ebs-csi", "ec2:TerminateInstances", f"{EC2}:instance/i", {}),
        ("efs-csi", "elasticfilesystem:CreateAccessPoint", f"arn:aws:elasticfilesystem:{REGION}:{ACCOUNT}:file-system/fs-2", {"aws:RequestTag/efs.csi.aws.com/cluster": "true"}),
        ("efs-csi", "elasticfilesystem:DeleteAccessPoint", ACCESS_POINT, {}),
        ("efs-csi", "elasticfilesystem:DeleteFileSystem", VALUES["efs_file_system"], {}),
        ("karpenter", "ec2:TerminateInstances", f"{EC2}:instance/of-others", {}),
        ("karpenter", "ec2:TerminateInstances", f"{EC2}:instance/i", {"aws:ResourceTag/kubernetes.io/cluster/other": "owned"}),
        ("karpenter", "ec2:RunInstances", f"{EC2}:instance/i", {}),
        ("karpenter", "ec2:CreateTags", f"{EC2}:instance/of-others", {f"aws:RequestTag/{key}": value for key, value in OURS.items()}),
        ("karpenter", "iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/administrator", {"iam:PassedToService": "ec2.amazonaws.com"}),
        ("karpenter", "iam:PassRole", VALUES["node_role"], {"iam:PassedToService": "lambda.amazonaws.com"}),
        ("karpenter", "iam:CreateRole", f"arn:aws:iam::{ACCOUNT}:role/new", {}),
        ("karpenter", "sqs:ReceiveMessage", f"arn:aws:sqs:{REGION}:{ACCOUNT}:payments", {}),
        ("load-balancer-controller", "elasticloadbalancing:DeleteLoadBalancer", f"{ELB}:loadbalancer/net/x/1", {}),
        ("load-balancer-controller", "ec2:AuthorizeSecurityGroupIngress", f"{EC2}:security-group/sg-1", {}),
        ("load-balancer-controller", "iam:CreateServiceLinkedRole", "*", {}),
    ],
)  # fmt: skip
def test_what_no_program_calls_is_denied(role: str, action: str, resource: str, context: dict[str, str]):
    assert not allows(policy(AWS / f"policies/{role}.json"), action, resource, context)


@pytest.mark.parametrize(
    ("name", "action", "context", "allowed"),
    [
        ("efs-file-system", "elasticfilesystem:ClientMount", {"elasticfilesystem:AccessedViaMountTarget": "true"}, True),
        ("efs-file-system", "elasticfilesystem:ClientMount", {}, False),
        ("efs-file-system", "elasticfilesystem:ClientMount", {"elasticfilesystem:AccessedViaMountTarget": "true", "aws:SecureTransport": "false"}, False),
        ("efs-file-system", "elasticfilesystem:ClientRootAccess", {"elasticfilesystem:AccessedViaMountTarget": "true"}, False),
        ("interruption-queue", "sqs:SendMessage", {"aws:SourceAccount": ACCOUNT}, True),
        ("interruption-queue", "sqs:SendMessage", {"aws:SourceAccount": "999999999999"}, False),
    ],
)  # fmt: skip
def test_policies_of_resources(name: str, action: str, context: dict[str, str], *, allowed: bool):
    resource = VALUES["efs_file_system" if name.startswith("efs") else "interruption_queue"]
    assert allows(policy(AWS / f"policies/{name}.json"), action, resource, context) is allowed


@pytest.mark.parametrize("file", sorted(AWS.glob("policies/*.json")), ids=lambda file: file.stem)
def test_no_policy_allows_everything(file: Path):
    for statement in policy(file):
        assert statement["Effect"] == "Deny" or "*" not in statement["Action"]
