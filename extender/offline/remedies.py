"""Why one node refuses a pod, in more words than kube-scheduler's: with the numbers and names, and what would help.

Each function knows the reasons of one built-in plugin. Reasons of other plugins are shown as they are.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from extender.cluster.node_matching import required_affinity
from extender.cluster.pods import PlacedPod, PodQuery
from extender.cluster.ports import in_conflict
from extender.cluster.snapshot import Snapshot
from extender.objects.matching import Requirement
from extender.objects.node import Node
from extender.objects.tolerations import untolerated
from extender.offline.amounts import readable

INSUFFICIENT: Final = "Insufficient "
_MOST_NAMES: Final = 3
_CORDON_TAINT: Final = "node.kubernetes.io/unschedulable"


def explained(plugin: str, reason: str, pod: PodQuery, cluster: Snapshot, row: int) -> str:
    """*reason*, which *plugin* gave against the node in *row*, followed by what is behind it where that is known."""
    known = _BY_PLUGIN.get(plugin)
    more = known(reason, pod, cluster, row) if known else ""
    return f"{reason}: {more}" if more else reason


def wanted(pod: PodQuery, resource: str, cluster: Snapshot) -> tuple[int, int]:
    """The id of a resource, and how much of it the pod asks for in base units."""
    number = cluster.vocabulary.resources.id(resource)
    return number, dict(pod.shape.asked).get(number, 0)


def _resources(reason: str, pod: PodQuery, cluster: Snapshot, row: int) -> str:
    view = cluster.view()
    if not reason.startswith(INSUFFICIENT):
        return f"{int(view.pod_count[row])} are there, {int(view.allowed_pods[row])} is the most"
    resource = reason.removeprefix(INSUFFICIENT)
    number, wants = wanted(pod, resource, cluster)
    there = int(view.allocatable(number)[row])
    free = there - int(view.requested(number)[row])

    def text(amount: int) -> str:
        return readable(resource, amount)

    if not there:
        return f"wants {text(wants)}, the node has none"
    hopeless = f", and only {text(there)} with nothing else on the node" if there < wants else ""
    return f"wants {text(wants)}, {text(free)} free{hopeless}; {text(wants - free)} short"


def _taint(_reason: str, pod: PodQuery, cluster: Snapshot, row: int) -> str:
    taint = untolerated(cluster.nodes[row].spec.taints, pod.shape.tolerations)
    if taint is None:
        return ""
    if taint.key == _CORDON_TAINT:
        return "uncordon the node"
    value = f"={taint.value}" if taint.value else ""
    return f"tolerate {taint.key}{value}:{taint.effect}, or remove it from the node"


def _cordon(_reason: str, _pod: PodQuery, _cluster: Snapshot, _row: int) -> str:
    return "uncordon the node"


def _node_affinity(reason: str, pod: PodQuery, cluster: Snapshot, row: int) -> str:
    if "enforced" in reason:
        return "see addedAffinity in the arguments of NodeAffinity"
    node = cluster.nodes[row]
    required = required_affinity(pod)
    unmet = list(_unmet(required.selector.requirements, node.metadata.labels))
    if not unmet and required.terms is not None:
        terms = [list(_unmet_in_term(term.labels, term.fields, node)) for term in required.terms.terms]
        unmet = min(terms, key=len, default=[])  # the term that lacks least
    return "; ".join(unmet)


def _unmet_in_term(labels: tuple[Requirement, ...], fields: tuple[Requirement, ...], node: Node) -> Iterator[str]:
    yield from _unmet(labels, node.metadata.labels)
    yield from _unmet(fields, {"metadata.name": node.metadata.name})


def _unmet(rules: tuple[Requirement, ...], labels: Mapping[str, str]) -> Iterator[str]:
    for rule in rules:
        value = labels.get(rule.key)
        if not rule.matches(value):
            has = "the node lacks it" if value is None else f'the node has "{value}"'
            yield f"wants {_written(rule)}, {has}"


def _written(rule: Requirement) -> str:
    match rule.operator:
        case "Exists":
            return f"label {rule.key}"
        case "DoesNotExist":
            return f"no label {rule.key}"
        case "In" if len(rule.values) == 1:
            return f"{rule.key}={rule.values[0]}"
    return f"{rule.key} {rule.operator} {', '.join(rule.values)}"


def _ports(_reason: str, pod: PodQuery, cluster: Snapshot, row: int) -> str:
    for other in cluster.pods_on(cluster.names[row]).values():
        for port in pod.shape.host_ports:
            if in_conflict((port,), other.shape.host_ports):
                return f"{port[1]}/{port[0]} is taken by {other.key}"
    return ""


def _spread(_reason: str, pod: PodQuery, cluster: Snapshot, row: int) -> str:
    labels = cluster.nodes[row].metadata.labels
    hard = [c for c in pod.spec.topology_spread_constraints if c.when_unsatisfiable == "DoNotSchedule"]
    lacking = [c.topology_key for c in hard if c.topology_key not in labels]
    if lacking:
        return f"label the node with {', '.join(lacking)}"
    return "; ".join(f"maxSkew {c.max_skew} over {c.topology_key}, {labels[c.topology_key]} is ahead" for c in hard[:1])


def _pod_affinity(reason: str, pod: PodQuery, cluster: Snapshot, row: int) -> str:
    labels = cluster.nodes[row].metadata.labels
    terms = pod.shape.affinity
    if "anti-affinity" not in reason:
        keys = dict.fromkeys(term.topology_key for term in terms.required)
        lacking = [key for key in keys if key not in labels]
        if lacking:
            return f"label the node with {', '.join(lacking)}"
        return f"no pod it wants to be near to is in {', '.join(f'{key}={labels[key]}' for key in keys)}"
    existing = "existing" in reason
    blocking = [other.key for other in _neighbours(pod, cluster, row, existing=existing)]
    names = ", ".join(blocking[:_MOST_NAMES])
    if len(blocking) > _MOST_NAMES:
        names += f" and {len(blocking) - _MOST_NAMES} more"
    if not names:
        return ""
    return f"{names} will not have it near" if existing else f"it will not be near {names}"


def _neighbours(pod: PodQuery, cluster: Snapshot, row: int, *, existing: bool) -> Iterator[PlacedPod]:
    """The pods in the domain of a node that *pod* keeps away from, or that keep away from it (*existing*)."""
    labels = cluster.nodes[row].metadata.labels
    for other in cluster.placed_pods():
        carrier, target = (other, pod) if existing else (pod, other)
        space = cluster.namespace_labels(target.namespace)
        there = cluster.nodes[cluster.row(other.node_name) or 0].metadata.labels
        for term in carrier.shape.affinity.required_anti:
            domain = labels.get(term.topology_key)
            same = domain is not None and there.get(term.topology_key) == domain
            if same and term.term.matches(target.namespace, target.labels, space):
                yield other
                break


_BY_PLUGIN: Final[Mapping[str, Callable[[str, PodQuery, Snapshot, int], str]]] = {
    "NodeResourcesFit": _resources,
    "TaintToleration": _taint,
    "NodeUnschedulable": _cordon,
    "NodeAffinity": _node_affinity,
    "NodePorts": _ports,
    "PodTopologySpread": _spread,
    "InterPodAffinity": _pod_affinity,
}
