"""The page `/metrics/resources`: requests and limits of each pod.

Source: pkg/scheduler/metrics/resources/resources.go, podResourceCollector.CollectWithStability (1.36).
"""

from collections.abc import Iterable, Iterator
from typing import Final, Literal

from extender.api.container_requests import Quantities, add_resources, parse_resources, sum_containers
from extender.api.kinds.pod import Pod, ResourceRequirements
from extender.api.quantity import Quantity
from extender.api.requests import is_attachable_volumes_resource, is_hugepages_resource, is_pod_level_resource

ResourceField = Literal["requests", "limits"]

_RESOURCES_IN_BYTES: Final = frozenset(("memory", "storage", "ephemeral-storage"))
_TERMINAL_PHASES: Final = frozenset(("Succeeded", "Failed"))
_FAMILIES: Final[tuple[tuple[str, ResourceField, str], ...]] = (
    ("kube_pod_resource_limit", "limits", "Resource limits of a pod; unit cores, bytes or integer."),
    ("kube_pod_resource_request", "requests", "Resource requests of a pod; unit cores, bytes or integer."),
)


def render_pod_resources(pods: Iterable[tuple[Pod, str]], batch_size: int = 1000) -> Iterator[str]:
    """Yield the page in chunks; the event loop can run other tasks between two chunks.

    Assigned pods that have finished, and amounts of zero, are omitted.

    *pods* are pairs of a pod and its node name, which is empty for unassigned pods. A chunk has *batch_size* pods.
    """
    active_pods = [(pod, node) for pod, node in pods if not (node and pod.status.phase in _TERMINAL_PHASES)]
    if not active_pods:
        return
    for name, field, help_text in _FAMILIES:
        yield f"# HELP {name} [STABLE] {help_text}\n# TYPE {name} gauge\n"
        for start in range(0, len(active_pods), batch_size):
            yield "".join(
                _format_line(name, pod, node, resource, amount)
                for pod, node in active_pods[start : start + batch_size]
                for resource, amount in sorted(sum_pod_resources(pod, field).items())
                if amount.unscaled
            )


def sum_pod_resources(pod: Pod, field: ResourceField) -> Quantities:
    """Return the requests or limits of a pod's spec: the maximum sum of concurrent containers, plus the overhead.

    Source: pkg/scheduler/util/utils.go, IsScalarResourceName; component-helpers/resource/helpers.go, PodRequests
    (1.36).
    """
    total = sum_containers(pod, lambda container: _parse_amounts(container.resources, field), {})
    if pod.spec.resources is not None:
        pod_level_amounts = _parse_amounts(pod.spec.resources, field)
        total.update((name, amount) for name, amount in pod_level_amounts.items() if is_pod_level_resource(name))
    overhead = parse_resources(pod.spec.overhead)
    if field == "limits":  # overhead is added only to existing limits
        overhead = {name: amount for name, amount in overhead.items() if name in total and total[name].unscaled}
    add_resources(total, overhead)
    return total


def _parse_amounts(resources: ResourceRequirements, field: ResourceField) -> Quantities:
    return parse_resources(resources.requests if field == "requests" else resources.limits)


def _format_line(metric: str, pod: Pod, node: str, resource: str, amount: Quantity) -> str:
    priority = "" if pod.spec.priority is None else str(pod.spec.priority)
    labels = {
        "namespace": pod.metadata.namespace,
        "node": node,
        "pod": pod.metadata.name,
        "priority": priority,
        "resource": resource,
        "scheduler": pod.spec.scheduler_name,
        "unit": get_resource_unit(resource),
    }
    label_text = ",".join(f'{key}="{_escape_label(value)}"' for key, value in labels.items())
    return f"{metric}{{{label_text}}} {_format_amount(amount)}\n"


def _format_amount(amount: Quantity) -> str:
    """Return *amount* as a floating-point number; beyond its range, infinity.

    Source: apimachinery/pkg/api/resource/quantity.go, Quantity.AsApproximateFloat64 (1.36).
    """
    try:
        return repr(amount.unscaled * 10.0**amount.scale)
    except OverflowError:
        return "+Inf" if amount.unscaled > 0 else "-Inf"


def _escape_label(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def get_resource_unit(resource: str) -> str:
    """Return the unit of a resource; empty for extended resources."""
    if resource == "cpu":
        return "cores"
    if resource in _RESOURCES_IN_BYTES or is_hugepages_resource(resource):
        return "bytes"
    return "integer" if is_attachable_volumes_resource(resource) else ""
