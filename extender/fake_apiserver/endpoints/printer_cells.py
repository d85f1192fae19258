"""Format the table cells of pods, nodes and other objects, as in `kubectl get`.

Source: pkg/printers/internalversion/printers.go, printPod, printNode (1.36).
"""

from collections.abc import Iterable
from typing import Any

from extender.fake_apiserver.registry.metadata import parse_timestamp
from extender.fake_apiserver.registry.resources import Object

_SHORT_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def get_field(content: Object, path: str, default: Any = "") -> Any:
    """Return the field of an object at a path such as `spec.nodeName`, or *default* if the field is absent."""
    value: Any = content
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return default if value is None else value


def join_values(values: Iterable[Any], default: str = "<none>") -> str:
    """Join values with commas, or return *default* if there are no values."""
    return ",".join(str(value) for value in values) or default


def format_labels(labels: Object | None) -> str:
    """Format labels as a label selector, such as `app=web,tier=front`."""
    return join_values(f"{key}={value}" for key, value in sorted((labels or {}).items()))


def format_human_duration(seconds: float) -> str:
    """Format a duration: `5s`, `3m20s`, `2d`.

    Source: apimachinery/pkg/util/duration/duration.go, HumanDuration (1.36).
    """
    whole_seconds = int(seconds)
    if whole_seconds < 0:
        return "0s" if whole_seconds >= -1 else "<invalid>"
    minutes, hours, days = whole_seconds // 60, whole_seconds // 3600, whole_seconds // 86400
    if whole_seconds < 120:
        return f"{whole_seconds}s"
    if minutes < 10:
        return _format_two_units(minutes, "m", whole_seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _format_two_units(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _format_two_units(days, "d", hours % 24, "h")
    years = days // 365
    if years < 2:
        return f"{days}d"
    return _format_two_units(years, "y", days % 365, "d") if years < 8 else f"{years}y"


def _format_two_units(count: int, unit: str, smaller_count: int, smaller_unit: str) -> str:
    return f"{count}{unit}{smaller_count}{smaller_unit}" if smaller_count else f"{count}{unit}"


def format_age(content: Object, now: float, path: str = "metadata.creationTimestamp") -> str:
    """Return the time since the timestamp at *path*."""
    timestamp = get_field(content, path)
    return format_human_duration(now - parse_timestamp(timestamp)) if timestamp else "<unknown>"


def format_ready_containers(pod: Object, _: float) -> str:
    """Return the number of ready containers and of all containers, such as `1/2`."""
    ready_count = sum(1 for status in get_field(pod, "status.containerStatuses", []) if status.get("ready"))
    return f"{ready_count}/{len(get_field(pod, 'spec.containers', []))}"


def format_pod_status(pod: Object, _: float) -> str:
    """Return the status of a pod, such as `Running`, `Completed` or `Terminating`."""
    status_text = get_field(pod, "status.reason") or get_field(pod, "status.phase")
    for condition in get_field(pod, "status.conditions", []):
        if condition["type"] == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            status_text = "SchedulingGated"
    if get_field(pod, "metadata.deletionTimestamp") and get_field(pod, "status.phase") not in {"Succeeded", "Failed"}:
        return "Terminating"
    return "Completed" if status_text == "Succeeded" else str(status_text)


def format_pod_restarts(pod: Object, _: float) -> str:
    """Return the sum of the containers' restart counts."""
    return str(sum(int(status.get("restartCount", 0)) for status in get_field(pod, "status.containerStatuses", [])))


def format_pod_readiness_gates(pod: Object, _: float) -> str:
    """Return the number of true readiness gates and of all gates, such as `1/2`."""
    gates = get_field(pod, "spec.readinessGates", [])
    true_conditions = {
        condition["type"] for condition in get_field(pod, "status.conditions", []) if condition["status"] == "True"
    }
    return f"{sum(gate.get('conditionType') in true_conditions for gate in gates)}/{len(gates)}" if gates else "<none>"


def format_node_status(node: Object, _: float) -> str:
    """Return the status of a node: `Ready`, `NotReady` or `Unknown`, and `SchedulingDisabled` if it is cordoned."""
    ready_status = next(
        (condition["status"] for condition in get_field(node, "status.conditions", []) if condition["type"] == "Ready"),
        "",
    )
    status_text = {"True": "Ready", "": "Unknown"}.get(ready_status, "NotReady")
    return f"{status_text},SchedulingDisabled" if get_field(node, "spec.unschedulable", False) else status_text


def format_node_roles(node: Object, _: float) -> str:
    """Return the roles that a node's labels give it."""
    prefix = "node-role.kubernetes.io/"
    labels = get_field(node, "metadata.labels", {})
    roles = {label.removeprefix(prefix) for label in labels if label.startswith(prefix) and label != prefix}
    return join_values(sorted(roles | ({labels["kubernetes.io/role"]} if labels.get("kubernetes.io/role") else set())))


def find_node_address(node: Object, address_type: str) -> str:
    """Return the first address of *address_type* of a node, or `<none>`."""
    addresses = (
        str(address["address"])
        for address in get_field(node, "status.addresses", [])
        if address["type"] == address_type
    )
    return next(addresses, "<none>")


def format_claim_state(claim: Object, _: float) -> str:
    """Return the state of a resource claim, such as `allocated,reserved` or `pending`."""
    states = ["deleted"] if get_field(claim, "metadata.deletionTimestamp") else []
    states += ["allocated"] if get_field(claim, "status.allocation", None) is not None else []
    states += ["reserved"] if get_field(claim, "status.reservedFor", []) else []
    return ",".join(states) or "pending"


def format_access_modes(content: Object, path: str) -> str:
    """Return the access modes in short form."""
    return ",".join(_SHORT_MODES.get(mode, mode) for mode in get_field(content, path, []))


def format_volume_claim(volume: Object, _: float) -> str:
    """Return the claim of a volume as `namespace/name`; empty if it has none."""
    name = get_field(volume, "spec.claimRef.name")
    return f"{get_field(volume, 'spec.claimRef.namespace')}/{name}" if name else ""


def format_storage_class_name(content: Object, _: float) -> str:
    """Return the name of a storage class, followed by ` (default)` if it is the default."""
    is_default = (
        get_field(content, "metadata.annotations", {}).get("storageclass.kubernetes.io/is-default-class") == "true"
    )
    return f"{content['metadata']['name']}{' (default)' if is_default else ''}"


def format_service_ports(service: Object, _: float) -> str:
    """Return the ports of a service, such as `80:30080/TCP,443/TCP`."""
    return join_values(
        f"{port['port']}{':' + str(port['nodePort']) if port.get('nodePort') else ''}/{port.get('protocol', 'TCP')}"
        for port in get_field(service, "spec.ports", [])
    )


def format_event_object(event: Object, _: float) -> str:
    """Return the object that an event is about, such as `pod/web-1`."""
    kind = str(get_field(event, "involvedObject.kind")).lower()
    return f"{kind}/{get_field(event, 'involvedObject.name')}"


def format_event_last_seen(event: Object, now: float) -> str:
    """Return the time since an event was last seen, and its count."""
    last_time = (
        get_field(event, "series.lastObservedTime")
        or get_field(event, "lastTimestamp")
        or get_field(event, "eventTime")
    )
    first_time = get_field(event, "firstTimestamp") or get_field(event, "eventTime")
    if not last_time:
        return "<unknown>"
    last_seen = format_human_duration(now - parse_timestamp(last_time))
    count = get_event_count(event, now)
    if count > 1 and first_time:
        return f"{last_seen} (x{count} over {format_human_duration(now - parse_timestamp(first_time))})"
    return last_seen


def format_event_first_seen(event: Object, now: float) -> str:
    """Return the time since an event was first seen."""
    first_time = get_field(event, "firstTimestamp") or get_field(event, "eventTime")
    return format_human_duration(now - parse_timestamp(first_time)) if first_time else "<unknown>"


def get_event_count(event: Object, _: float) -> int:
    """Return the count of an event."""
    return int(get_field(event, "series.count", 0) or get_field(event, "count", 0) or 1)


def format_event_source(event: Object, _: float) -> str:
    """Return the component and host that reported an event."""
    component = get_field(event, "source.component") or get_field(event, "reportingComponent")
    host = get_field(event, "source.host") or get_field(event, "reportingInstance")
    return ", ".join(str(part) for part in (component, host) if part)


def format_workload_selector(workload: Object, _: float) -> str:
    """Return the label selector of a workload. A ReplicationController has only a map of labels."""
    label_selector = get_field(workload, "spec.selector", {})
    return format_labels(label_selector.get("matchLabels") if "matchLabels" in label_selector else label_selector)
