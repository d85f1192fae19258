"""The hard rules of a pod on a node, written from the API documentation and not from the code of a scheduler."""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, Final

from tests.history.cluster_state import ClusterState, Object, uid_of

Rejection = tuple[str, str]
"""The name of a rule and the detail."""

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
HOST: Final = "kubernetes.io/hostname"

_SUFFIXES: Final = {
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "m": Fraction(1, 1000),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
}


def parse_quantity(text: str) -> Fraction:
    """Return the exact value of a quantity such as `1500m` or `2Gi`."""
    for suffix, factor in _SUFFIXES.items():
        if text.endswith(suffix):
            return Fraction(text.removesuffix(suffix)) * factor
    return Fraction(text)


def requested_amounts(pod: Object) -> Counter[str]:
    """Return the requests of the containers, and 1 of `pods`. The workload has no init containers and no overhead."""
    amounts: Counter[str] = Counter({"pods": 1})
    for container in pod["spec"]["containers"]:
        for name, amount in container.get("resources", {}).get("requests", {}).items():
            amounts[name] += parse_quantity(str(amount))  # type: ignore[assignment]  # a Counter counts fractions, too
    return amounts


def find_excess(node: Object, pods: Sequence[Object]) -> Iterator[Rejection]:
    """Yield the resources of which *pods* request more than *node* offers."""
    requested: Counter[str] = Counter()
    for pod in pods:
        requested.update(requested_amounts(pod))
    allocatable = node.get("status", {}).get("allocatable", {})
    for name, amount in sorted(requested.items()):
        offered = parse_quantity(str(allocatable.get(name, "0")))
        if amount > offered:
            yield "allocatable", f"{float(amount):g} of {float(offered):g} {name}"


def find_attribute_rejections(pod: Object, node: Object) -> Iterator[Rejection]:
    """Yield the rules on the labels, taints and the `unschedulable` field of a node that a pod breaks."""
    labels = node["metadata"].get("labels") or {}
    tolerations = pod["spec"].get("tolerations") or ()
    for key, value in (pod["spec"].get("nodeSelector") or {}).items():
        if labels.get(key) != value:
            yield "nodeSelector", f"{key}={value} but the node has {labels.get(key)}"
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {}).get(REQUIRED)
    if affinity and not matches_node_selector(affinity, node):
        yield "nodeAffinity", f"no term matches {labels}"
    for taint in node["spec"].get("taints") or ():
        if taint["effect"] != "PreferNoSchedule" and not _is_tolerated(taint, tolerations):
            yield "taint", f"{taint['key']}:{taint['effect']} is not tolerated"
    unschedulable = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    if node["spec"].get("unschedulable") and not _is_tolerated(unschedulable, tolerations):
        yield "unschedulable", "the node is cordoned"


def _is_tolerated(taint: Object, tolerations: Sequence[Object]) -> bool:
    for toleration in tolerations:
        if toleration.get("effect") and toleration["effect"] != taint["effect"]:
            continue
        if toleration.get("key") and toleration["key"] != taint["key"]:
            continue
        if toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", ""):
            return True
    return False


def matches_node_selector(selector: Object, node: Object) -> bool:
    """Return whether a term of a node selector matches a node. Terms are ORed, their requirements are ANDed."""
    return any(_matches_term(term, node) for term in selector["nodeSelectorTerms"])


def _matches_term(term: Object, node: Object) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    labels = node["metadata"].get("labels") or {}
    name = {"metadata.name": node["metadata"]["name"]}
    return all(_matches_requirement(requirement, labels) for requirement in expressions) and all(
        _matches_requirement(requirement, name) for requirement in fields
    )


def _matches_requirement(requirement: Object, values: Object) -> bool:
    value: Any = values.get(requirement["key"])
    operator = requirement["operator"]
    if operator == "In":
        return value in requirement["values"]
    if operator == "NotIn":
        return value not in requirement["values"]
    if operator in {"Exists", "DoesNotExist"}:
        return (value is not None) == (operator == "Exists")
    if value is None:
        return False
    limit = int(requirement["values"][0])
    return int(value) > limit if operator == "Gt" else int(value) < limit


def find_port_conflicts(pod: Object, others: Sequence[Object]) -> Iterator[Rejection]:
    """Yield the host ports of *pod* that one of *others* on the node uses."""
    for address, protocol, port in _host_ports(pod):
        for other in others:
            for other_address, other_protocol, other_port in _host_ports(other):
                overlaps = "0.0.0.0" in {address, other_address} or address == other_address  # noqa: S104 - compared
                if (protocol, port) == (other_protocol, other_port) and overlaps:
                    yield "hostPort", f"{protocol} {port} is used by {other['metadata']['name']}"


def _host_ports(pod: Object) -> Iterator[tuple[str, str, int]]:
    for container in pod["spec"]["containers"]:
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"]  # noqa: S104


def find_anti_affinity_conflicts(pod: Object, others: Sequence[Object]) -> Iterator[Rejection]:
    """Yield the required anti-affinity terms by host, of *pod* or of *others* on the node, that are broken."""
    for other in others:
        for owner, target in ((pod, other), (other, pod)):
            terms = owner["spec"].get("affinity", {}).get("podAntiAffinity", {}).get(REQUIRED) or ()
            if any(_matches_pod(term, target) for term in terms if term["topologyKey"] == HOST):
                yield "podAntiAffinity", f"of {owner['metadata']['name']} with {target['metadata']['name']}"


def _matches_pod(term: Object, pod: Object) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return all(labels.get(key) == value for key, value in term["labelSelector"]["matchLabels"].items())


def find_rejections(pod: Object, node: Object, state: ClusterState) -> list[Rejection]:
    """Return the rules that *pod* breaks on *node*, but for the rules of its claims.

    Args:
        pod: the pod, bound to the node or not.
        node: the state of the node.
        state: the other pods.
    """
    others = [other for _, other in state.pods_on(node["metadata"]["name"]) if uid_of(other) != uid_of(pod)]
    return [
        *find_attribute_rejections(pod, node),
        *find_excess(node, [*others, pod]),
        *find_port_conflicts(pod, others),
        *find_anti_affinity_conflicts(pod, others),
    ]
