"""From the file to the values that rules and platforms take."""

from collections.abc import Mapping

from neorion.iris.adapters.cluster_file.file import ClusterFile
from neorion.iris.adapters.cluster_file.scale_groups import Accelerator, ScaleGroupConfig
from neorion.iris.adapters.cluster_file.sections import ON_MACHINE, NodePools, RuntimeName, UserLimit
from neorion.iris.adapters.platforms.fault_injection import FaultProfile
from neorion.iris.adapters.platforms.kubernetes import GroupTemplate, KubernetesSettings, PoolTemplate
from neorion.iris.model import Quota, Resources, UserQuotas
from neorion.iris.model.scale_group import ScaleGroup
from neorion.keel.base import Duration, Invalid


def scale_groups(file: ClusterFile) -> tuple[ScaleGroup, ...]:
    """In the order of the file."""
    pace, timeouts = file.defaults.autoscaler, file.defaults.timeouts
    return tuple(
        ScaleGroup(
            name=name,
            shape=_shape(group),
            machines=group.num_vms,
            min_slices=group.min_slices,
            max_slices=group.max_slices,
            priority=group.priority,
            attributes=_attributes(file, name, group),
            scale_up_delay=pace.scale_up_delay,
            scale_down_delay=pace.scale_down_delay,
            startup_grace=pace.startup_grace_period,
            boot_timeout=timeouts.boot_timeout,
            init_timeout=timeouts.init_timeout,
        )
        for name, group in file.scale_groups.items()
    )


def behaviours(file: ClusterFile) -> Mapping[str, FaultProfile]:
    """Faults that the simulated platform injects into each scale group."""
    pieces = {name: group.slice_template.local for name, group in file.scale_groups.items()}
    return {
        name: FaultProfile(
            boot_delay=piece.boot_delay,
            quota=piece.faults.quota,
            no_capacity=piece.faults.no_capacity,
            stuck=piece.faults.stuck,
            lost_after=piece.faults.lost_after,
        )
        for name, piece in pieces.items()
        if piece is not None
    }


def caps(file: ClusterFile) -> UserQuotas:
    """Quotas of users."""
    usual = file.limits
    default = Quota(usual.running_tasks, usual.cpu.milli, usual.memory.whole, usual.gpus)
    return UserQuotas(default, {user: _quota(default, limit) for user, limit in usual.users.items()})


def runtime(file: ClusterFile, group: ScaleGroupConfig) -> RuntimeName:
    return group.runtime or file.defaults.bootstrap.runtime or RuntimeName.PROCESS


def container_flags(file: ClusterFile, group: str) -> tuple[str, ...]:
    """The options of a worker of this machine that runs its tasks in containers; none for processes."""
    chosen, bootstrap = runtime(file, file.scale_groups[group]), file.defaults.bootstrap
    if chosen not in ON_MACHINE:
        return ()
    flags = [f"--runtime={chosen}", f"--task-image={bootstrap.task_image}"]
    flags += [f"--task-mount={mount}" for mount in bootstrap.task_mounts]
    return (*flags, *([f"--runtime-socket={bootstrap.runtime_socket}"] if bootstrap.runtime_socket else []))


def kubernetes_settings(file: ClusterFile) -> KubernetesSettings:
    """Settings of the platform for worker Pods. The file must have a section for one."""
    platform, service = file.platform.in_cluster, file.controller.service
    if platform is None or service is None:
        raise Invalid(
            "iris.platform",
            "The cluster file has no section for worker Pods.",
            hint="Write platform.kubernetes or platform.coreweave.",
        )
    coreweave = file.platform.coreweave
    patience = coreweave.capacity_patience if coreweave is not None else Duration(0)
    shared = coreweave is not None and coreweave.node_pools is NodePools.PER_GROUP
    return KubernetesSettings(
        namespace=platform.namespace,
        controller=f"{service.service_name}.{platform.namespace}.svc.cluster.local:{service.port}",
        image=file.defaults.bootstrap.docker_image,
        task_image=file.defaults.bootstrap.task_image or file.defaults.bootstrap.docker_image,
        groups={
            name: _template(group, runtime(file, group), shared=shared)
            for name, group in file.scale_groups.items()
        },
        label_prefix=file.platform.label_prefix,
        pull_secrets=tuple(platform.image_pull_secrets),
        host_network=platform.host_network,
        variables=file.defaults.bootstrap.env_vars,
        stop_grace=platform.stop_grace,
        capacity_patience=patience,
    )


def _template(group: ScaleGroupConfig, runtime: RuntimeName, *, shared: bool) -> GroupTemplate:
    task_pods = runtime is RuntimeName.KUBERNETES
    bought, waiting = group.slice_template.coreweave, group.slice_template.kubernetes
    if bought is not None:
        pool = PoolTemplate(bought.instance_type, bought.compute_class.value, bought.annotations, shared)
        return GroupTemplate(pool, infiniband=bought.infiniband, task_pods=task_pods)
    if waiting is not None:
        return GroupTemplate(
            node_selector=waiting.node_selector, infiniband=waiting.infiniband, task_pods=task_pods
        )
    return GroupTemplate()


def _quota(usual: Quota, limit: UserLimit) -> Quota:
    return Quota(
        usual.tasks if limit.running_tasks is None else limit.running_tasks,
        usual.cpu_milli if limit.cpu is None else limit.cpu.milli,
        usual.memory if limit.memory is None else limit.memory.whole,
        usual.gpus if limit.gpus is None else limit.gpus,
    )


def _shape(group: ScaleGroupConfig) -> Resources:
    resources = group.resources
    return Resources(
        cpu_milli=resources.cpu.milli,
        memory=resources.ram.whole,
        disk=resources.disk.whole,
        gpus=resources.gpu_count,
        gpu_variant=group.accelerator_variant if resources.gpu_count else "",
    )


def _attributes(file: ClusterFile, name: str, group: ScaleGroupConfig) -> tuple[tuple[str, str], ...]:
    found = {**group.attributes, "scale-group": name, "accelerator-type": group.accelerator_type.value}
    if group.accelerator_type is Accelerator.GPU:
        found["accelerator-variant"] = group.accelerator_variant
    platform, pool = file.platform.coreweave, group.slice_template.coreweave
    if platform is not None and pool is not None:
        found["region"] = platform.region
        found["instance-type"] = pool.instance_type
        if pool.infiniband:
            found["infiniband"] = "true"
    return tuple(sorted(found.items()))
