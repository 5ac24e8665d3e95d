"""All objects of one server as it was seen: of its mode, and with homes as large as they can be."""

from neorion.devservers.decide import manifests
from neorion.devservers.decide.decision import Observed
from neorion.devservers.decide.flavor_change import ClusterFacts, with_actual_home_size
from neorion.devservers.decide.manifests import Manifest, OperatorSettings
from neorion.devservers.decide.names import TEMPLATE_LABEL, rank_home_name
from neorion.devservers.decide.quota import eviction, is_admitted, on_assigned_nodes, workload_manifest
from neorion.devservers.decide.stateful_set import distributed_objects, sign_template, stateful_set
from neorion.devservers.model import DevServerFlavorSpec, Distributed
from neorion.devservers.model.kueue import QUEUE_LABEL


def objects_of(
    seen: Observed,
    flavor: DevServerFlavorSpec,
    settings: OperatorSettings,
    resources: Manifest | None = None,
) -> tuple[Manifest, ...]:
    """In an order in which each finds what it needs; what makes the Pods is last. `resources` keep Pods as they are."""
    spec = with_actual_home_size(seen.server.spec, seen.home, seen.around)
    machine, distributed = on_assigned_nodes(flavor, seen.quota), spec.distributed
    if distributed is None:
        made = manifests.all_of(seen.identity, spec, machine, settings, resources, seen.user_keys)
    else:
        keys = (seen.user_keys, seen.server.status.ssh_host_key)
        made = (
            *homes_of(seen, seen.around),
            *distributed_objects(seen.identity, spec, distributed, settings, keys),
            _ranks(seen, distributed, machine, settings, resources),
        )
    return made if seen.quota is None else _within_quota(seen, flavor, made)


def _within_quota(
    seen: Observed, flavor: DevServerFlavorSpec, made: tuple[Manifest, ...]
) -> tuple[Manifest, ...]:
    """The objects and the request for quota. Pods wait for its admission.

    A server that runs asks for other machines while it holds its own. One without Pods gives its own back first.
    """
    *others, body = made
    body["metadata"]["labels"].pop(QUEUE_LABEL, None)
    if not is_admitted(seen.quota) and not seen.waits_to_move:
        body["spec"]["replicas"] = 0
    earlier = seen.quota is not None and bool(seen.quota.others) and not seen.pods
    if earlier or not seen.server.spec.running or eviction(seen.quota) is not None:
        return (*others, body)
    return (*others, workload_manifest(seen.identity, seen.server.spec, flavor), body)


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
