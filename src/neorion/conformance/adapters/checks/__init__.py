"""The checks, one module for each requirement. Each drives the cluster and records what it sees.

Judges nothing: that is in `decide`.
"""

from typing import Final

from neorion.conformance.adapters.check import Check
from neorion.conformance.adapters.checks.accelerator_metrics import ACCELERATOR_METRICS
from neorion.conformance.adapters.checks.ai_inference import AI_INFERENCE
from neorion.conformance.adapters.checks.ai_service_metrics import AI_SERVICE_METRICS
from neorion.conformance.adapters.checks.cluster_autoscaling import CLUSTER_AUTOSCALING
from neorion.conformance.adapters.checks.disaggregated_inference import DISAGGREGATED_INFERENCE
from neorion.conformance.adapters.checks.dra_support import DRA_SUPPORT
from neorion.conformance.adapters.checks.driver_runtime_management import DRIVER_RUNTIME_MANAGEMENT
from neorion.conformance.adapters.checks.gang_scheduling import GANG_SCHEDULING
from neorion.conformance.adapters.checks.gpu_sharing import GPU_SHARING
from neorion.conformance.adapters.checks.high_performance_networking import HIGH_PERFORMANCE_NETWORKING
from neorion.conformance.adapters.checks.pod_autoscaling import POD_AUTOSCALING
from neorion.conformance.adapters.checks.robust_controller import ROBUST_CONTROLLER
from neorion.conformance.adapters.checks.secure_accelerator_access import SECURE_ACCELERATOR_ACCESS
from neorion.conformance.adapters.checks.virtualized_accelerator import VIRTUALIZED_ACCELERATOR
from neorion.conformance.adapters.checks.workload_sandboxing import WORKLOAD_SANDBOXING

CHECKS: Final[dict[str, Check]] = {
    check.requirement: check
    for check in (
        DRA_SUPPORT,
        AI_INFERENCE,
        GANG_SCHEDULING,
        CLUSTER_AUTOSCALING,
        POD_AUTOSCALING,
        ACCELERATOR_METRICS,
        AI_SERVICE_METRICS,
        SECURE_ACCELERATOR_ACCESS,
        ROBUST_CONTROLLER,
        DISAGGREGATED_INFERENCE,
        DRIVER_RUNTIME_MANAGEMENT,
        GPU_SHARING,
        HIGH_PERFORMANCE_NETWORKING,
        VIRTUALIZED_ACCELERATOR,
        WORKLOAD_SANDBOXING,
    )
}
