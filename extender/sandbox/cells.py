"""What the cells of a table say of pods, nodes and others, in the words of `kubectl get`.

Source: pkg/printers/internalversion/printers.go.
"""

from collections.abc import Iterable
from typing import Any

from extender.sandbox.metadata import seconds_of
from extender.sandbox.served import Object

_SHORT_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def at(thing: Object, path: str, absent: Any = "") -> Any:
    """A field of an object; *absent* where it is not there."""
    here: Any = thing
    for part in path.split("."):
        here = here.get(part) if isinstance(here, dict) else None
    return absent if here is None else here


def texts(values: Iterable[Any], absent: str = "<none>") -> str:
    """Values with commas."""
    return ",".join(str(value) for value in values) or absent


def pairs(labels: Object | None) -> str:
    """Labels as a selector."""
    return texts(f"{key}={value}" for key, value in sorted((labels or {}).items()))


def span(seconds: float) -> str:
    """A time span as people read it: `5s`, `3m20s`, `2d`. Source: duration.HumanDuration."""
    whole = int(seconds)
    if whole < 0:
        return "0s" if whole >= -1 else "<invalid>"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _two(days, "d", hours % 24, "h")
    years = days // 365
    if years < 2:
        return f"{days}d"
    return _two(years, "y", days % 365, "d") if years < 8 else f"{years}y"


def _two(first: int, unit: str, second: int, smaller: str) -> str:
    return f"{first}{unit}{second}{smaller}" if second else f"{first}{unit}"


def age(thing: Object, now: float, path: str = "metadata.creationTimestamp") -> str:
    """How long ago something was."""
    time = at(thing, path)
    return span(now - seconds_of(time)) if time else "<unknown>"


def pod_ready(pod: Object, _: float) -> str:
    """How many containers are ready, of how many."""
    ready = sum(1 for each in at(pod, "status.containerStatuses", []) if each.get("ready"))
    return f"{ready}/{len(at(pod, 'spec.containers', []))}"


def pod_status(pod: Object, _: float) -> str:
    """What a pod is doing."""
    reason = at(pod, "status.reason") or at(pod, "status.phase")
    for condition in at(pod, "status.conditions", []):
        if condition["type"] == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    if at(pod, "metadata.deletionTimestamp") and at(pod, "status.phase") not in {"Succeeded", "Failed"}:
        return "Terminating"
    return "Completed" if reason == "Succeeded" else str(reason)


def pod_restarts(pod: Object, _: float) -> str:
    """How often its containers began again."""
    return str(sum(int(each.get("restartCount", 0)) for each in at(pod, "status.containerStatuses", [])))


def pod_gates(pod: Object, _: float) -> str:
    """How many readiness gates are open, of how many."""
    gates = at(pod, "spec.readinessGates", [])
    true = {each["type"] for each in at(pod, "status.conditions", []) if each["status"] == "True"}
    return f"{sum(gate.get('conditionType') in true for gate in gates)}/{len(gates)}" if gates else "<none>"


def node_status(node: Object, _: float) -> str:
    """Whether a node is ready, and whether it takes pods."""
    ready = next((each["status"] for each in at(node, "status.conditions", []) if each["type"] == "Ready"), "")
    word = {"True": "Ready", "": "Unknown"}.get(ready, "NotReady")
    return f"{word},SchedulingDisabled" if at(node, "spec.unschedulable", False) else word


def node_roles(node: Object, _: float) -> str:
    """The roles that labels give a node."""
    prefix = "node-role.kubernetes.io/"
    labels = at(node, "metadata.labels", {})
    roles = {label.removeprefix(prefix) for label in labels if label.startswith(prefix) and label != prefix}
    return texts(sorted(roles | ({labels["kubernetes.io/role"]} if labels.get("kubernetes.io/role") else set())))


def node_address(node: Object, wanted: str) -> str:
    """One of a node's addresses."""
    found = (str(each["address"]) for each in at(node, "status.addresses", []) if each["type"] == wanted)
    return next(found, "<none>")


def claim_state(claim: Object, _: float) -> str:
    """What a resource claim is."""
    states = ["deleted"] if at(claim, "metadata.deletionTimestamp") else []
    states += ["allocated"] if at(claim, "status.allocation", None) is not None else []
    states += ["reserved"] if at(claim, "status.reservedFor", []) else []
    return ",".join(states) or "pending"


def modes(thing: Object, path: str) -> str:
    """Access modes, short."""
    return ",".join(_SHORT_MODES.get(mode, mode) for mode in at(thing, path, []))


def volume_claim(volume: Object, _: float) -> str:
    """The claim a volume is bound to."""
    name = at(volume, "spec.claimRef.name")
    return f"{at(volume, 'spec.claimRef.namespace')}/{name}" if name else ""


def class_name(thing: Object, _: float) -> str:
    """A storage class, with a mark if it is the default."""
    default = at(thing, "metadata.annotations", {}).get("storageclass.kubernetes.io/is-default-class") == "true"
    return f"{thing['metadata']['name']}{' (default)' if default else ''}"


def service_ports(service: Object, _: float) -> str:
    """The ports of a service."""
    return texts(
        f"{port['port']}{':' + str(port['nodePort']) if port.get('nodePort') else ''}/{port.get('protocol', 'TCP')}"
        for port in at(service, "spec.ports", [])
    )


def event_object(event: Object, _: float) -> str:
    """What an event is about."""
    kind = str(at(event, "involvedObject.kind")).lower()
    return f"{kind}/{at(event, 'involvedObject.name')}"


def event_seen(event: Object, now: float) -> str:
    """When an event was last seen, and how often."""
    last = at(event, "series.lastObservedTime") or at(event, "lastTimestamp") or at(event, "eventTime")
    first = at(event, "firstTimestamp") or at(event, "eventTime")
    if not last:
        return "<unknown>"
    ago = span(now - seconds_of(last))
    count = int(at(event, "series.count", 0) or at(event, "count", 0) or 1)
    if count > 1 and first:
        return f"{ago} (x{count} over {span(now - seconds_of(first))})"
    return ago


def event_first_seen(event: Object, now: float) -> str:
    """When an event was first seen."""
    first = at(event, "firstTimestamp") or at(event, "eventTime")
    return span(now - seconds_of(first)) if first else "<unknown>"


def event_count(event: Object, _: float) -> int:
    """How often an event was seen."""
    return int(at(event, "series.count", 0) or at(event, "count", 0) or 1)


def event_source(event: Object, _: float) -> str:
    """Who told an event, and where."""
    component = at(event, "source.component") or at(event, "reportingComponent")
    place = at(event, "source.host") or at(event, "reportingInstance")
    return ", ".join(str(part) for part in (component, place) if part)


def selector(workload: Object, _: float) -> str:
    """The label selector of a workload; that of a replication controller is labels only."""
    found = at(workload, "spec.selector", {})
    return pairs(found.get("matchLabels") if "matchLabels" in found else found)
