"""All objects of one server as it was seen: of its mode, and with homes as large as they can be."""

from neorion.devservers.decide import manifests
from neorion.devservers.decide.decision import Observed
from neorion.devservers.decide.flavor_change import ClusterFacts, with_actual_home_size
from neorion.devservers.decide.manifests import Manifest, OperatorSettings
from neorion.devservers.decide.names import TEMPLATE_LABEL, rank_home_name
from neorion.devservers.decide.stateful_set import distributed_objects, sign_template, stateful_set
from neorion.devservers.model import DevServerFlavorSpec, Distributed


def objects_of(
    seen: Observed,
    flavor: DevServerFlavorSpec,
    settings: OperatorSettings,
    resources: Manifest | None = None,
) -> tuple[Manifest, ...]:
    """In an order in which each finds what it needs; what makes the Pods is last. `resources` keep Pods as they are."""
    spec = with_actual_home_size(seen.server.spec, seen.home, seen.around)
    distributed = spec.distributed
    if distributed is None:
        return manifests.all_of(seen.identity, spec, flavor, settings, resources, seen.user_keys)
    keys = (seen.user_keys, seen.server.status.ssh_host_key)
    return (
        *homes_of(seen, seen.around),
        *distributed_objects(seen.identity, spec, distributed, settings, keys),
        _ranks(seen, distributed, flavor, settings, resources),
    )


def homes_of(seen: Observed, around: ClusterFacts | None) -> tuple[Manifest, ...]:
    """The volume claims in which its users keep their files, each as large as it can be."""
    spec, server = seen.server.spec, seen.identity
    if spec.distributed is None or not spec.distributed.has_rank_homes:
        return (manifests.home(server, with_actual_home_size(spec, seen.home, around)),)
    return tuple(
        manifests.home_claim(
            server, with_actual_home_size(spec, home, around), rank_home_name(server.name, rank)
        )
        for rank, home in enumerate(seen.homes)
    )


def _ranks(
    seen: Observed,
    distributed: Distributed,
    flavor: DevServerFlavorSpec,
    settings: OperatorSettings,
    resources: Manifest | None,
) -> Manifest:
    """The StatefulSet, without Pods for as long as there are any of another template: ranks never run in two versions."""
    body = stateful_set(seen.identity, seen.server.spec, distributed, flavor, settings)
    if resources is not None:
        body["spec"]["template"]["spec"]["containers"][0]["resources"] = resources
    signature = sign_template(body)
    if any(pod.meta.labels.get(TEMPLATE_LABEL) != signature for pod in seen.working_pods):
        body["spec"]["replicas"] = 0
    return body
