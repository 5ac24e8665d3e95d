"""The parts of an installation on AWS, as a real API server holds them."""

from neorion.devservers.client.aws_facts import read_aws_facts
from neorion.devservers.decide.aws_installation import check_aws
from neorion.keel.base import Severity
from neorion.keel.kube.client import Client
from neorion.keel.kube.core import SERVICE


async def check_the_parts_of_aws(client: Client) -> None:
    """The cluster has no drivers, no Karpenter and no machines of EC2: these are named, and nothing else is an error."""
    bastion = await client.get(SERVICE, "devservers-bastion", "devservers-system")
    assert bastion.spec.type == "LoadBalancer"
    facts = await read_aws_facts(client)
    assert facts.storage_classes["devservers-shared"] == "efs.csi.aws.com"
    assert (facts.default_class, facts.device_plugin, facts.bastion_address) == ("devservers-home", True, "")
    assert (facts.drivers, facts.node_pools, facts.flavors["p5.48xlarge"]) == (
        frozenset(),
        None,
        "p5.48xlarge",
    )
    errors = {one.subject for one in check_aws(facts) if one.severity is Severity.ERROR}
    assert errors == {"ebs.csi.aws.com", "devservers-bastion", *facts.flavors}
