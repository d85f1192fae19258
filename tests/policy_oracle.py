"""A Policy evaluated directly, node by node, as the old releases did: the yardstick for what it is converted to.

Written from the descriptions of predicates and priorities alone (C024 to C066), on a world that is simple enough for
that: no CSI drivers, claims, images, inter-pod affinity or topology spread, so that what concerns these passes and
rates all nodes alike. Scores are 0 to 100 as from release 1.18 on; BalancedResourceAllocation has the formula of 1.36.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

CORDON = "node.kubernetes.io/unschedulable"
HARD = ("NoSchedule", "NoExecute")


@dataclass(frozen=True)
class Pod:
    """A pod; cpu in milli-CPU, memory in MiB, None: it does not ask."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    cpu: int | None = None
    memory: int | None = None
    cpu_limit: int = 0
    port: int = 0
    disk: str = ""
    reads: bool = False
    deleting: bool = False
    selector: Mapping[str, str] = field(default_factory=dict)
    tolerates: tuple[str, ...] = ()
    owner: str = ""
    prefers: tuple[tuple[int, str, str], ...] = ()


@dataclass(frozen=True)
class Node:
    """A node with its pods; taints are keys and effects."""

    name: str
    labels: Mapping[str, str]
    cpu: int
    memory: int
    pods_allowed: int
    disks_allowed: int
    taints: tuple[tuple[str, str], ...] = ()
    cordoned: bool = False
    conditions: Mapping[str, str] = field(default_factory=dict)
    avoids: str = ""
    pods: tuple[Pod, ...] = ()


@dataclass(frozen=True)
class World:
    """Nodes, and the selectors of the services of the one namespace there is."""

    nodes: tuple[Node, ...]
    services: tuple[Mapping[str, str], ...] = ()


Argument = Mapping[str, Any]


def within(part: Mapping[str, str], whole: Mapping[str, str]) -> bool:
    return all(whole.get(key) == value for key, value in part.items())


# -- predicates


def resources(pod: Pod, node: Node) -> bool:
    cpu, memory = (sum(getattr(other, what) or 0 for other in node.pods) for what in ("cpu", "memory"))
    fits = not pod.cpu or cpu + pod.cpu <= node.cpu
    return len(node.pods) < node.pods_allowed and fits and (not pod.memory or memory + pod.memory <= node.memory)


def ports(pod: Pod, node: Node) -> bool:
    return not pod.port or all(other.port != pod.port for other in node.pods)


def selector(pod: Pod, node: Node) -> bool:
    return within(pod.selector, node.labels)


def general(pod: Pod, node: Node) -> bool:
    return resources(pod, node) and ports(pod, node) and selector(pod, node)


def disk(pod: Pod, node: Node) -> bool:
    return not any(pod.disk and other.disk == pod.disk and not (pod.reads and other.reads) for other in node.pods)


def taints(pod: Pod, node: Node) -> bool:
    return all(key in pod.tolerates or effect not in HARD for key, effect in node.taints)


def no_execute(pod: Pod, node: Node) -> bool:
    return all(key in pod.tolerates or effect != "NoExecute" for key, effect in node.taints)


def schedulable(pod: Pod, node: Node) -> bool:
    return not node.cordoned or CORDON in pod.tolerates


def condition(pod: Pod, node: Node) -> bool:
    ready = node.conditions.get("Ready", "True") == "True"
    others = all(node.conditions.get(key, "False") == "False" for key in ("OutOfDisk", "NetworkUnavailable"))
    return ready and others and not node.cordoned


def pressed(what: str) -> Callable[[Pod, Node], bool]:
    def predicate(pod: Pod, node: Node) -> bool:
        exempt = what == "MemoryPressure" and bool(pod.cpu or pod.memory or pod.cpu_limit)
        return exempt or node.conditions.get(what) != "True"

    return predicate


def disk_count(pod: Pod, node: Node) -> bool:
    disks = {other.disk for other in (*node.pods, pod) if other.disk}
    return not pod.disk or len(disks) <= node.disks_allowed


def passes(pod: Pod, node: Node) -> bool:
    return True


PREDICATES: dict[str, Callable[[Pod, Node], bool]] = {
    "CheckNodeCondition": condition,
    "CheckNodeUnschedulable": schedulable,
    "GeneralPredicates": general,
    "HostName": passes,
    "PodFitsHost": passes,
    "PodFitsHostPorts": ports,
    "PodFitsPorts": ports,
    "MatchNodeSelector": selector,
    "PodFitsResources": resources,
    "NoDiskConflict": disk,
    "PodToleratesNodeTaints": taints,
    "PodToleratesNodeNoExecuteTaints": no_execute,
    "MaxGCEPDVolumeCount": disk_count,
    "CheckNodeMemoryPressure": pressed("MemoryPressure"),
    "CheckNodeDiskPressure": pressed("DiskPressure"),
    "CheckNodePIDPressure": pressed("PIDPressure"),
    **dict.fromkeys(
        ("MaxEBSVolumeCount", "MaxAzureDiskVolumeCount", "MaxCinderVolumeCount", "MaxCSIVolumeCountPred"), passes
    ),
    **dict.fromkeys(("CheckVolumeBinding", "NoVolumeZoneConflict", "EvenPodsSpread", "MatchInterPodAffinity"), passes),
}
MANDATORY = ("PodToleratesNodeTaints", "CheckNodeUnschedulable")
PROVIDED = (
    *("NoVolumeZoneConflict", "MaxEBSVolumeCount", "MaxGCEPDVolumeCount", "MaxAzureDiskVolumeCount"),
    *("MaxCSIVolumeCountPred", "MatchInterPodAffinity", "NoDiskConflict", "GeneralPredicates"),
    *("PodToleratesNodeTaints", "CheckVolumeBinding", "CheckNodeUnschedulable", "EvenPodsSpread"),
)


def together(pod: Pod, node: Node, world: World, labels: Sequence[str]) -> bool:
    """CheckServiceAffinity. Source: C035."""
    wanted = {label: pod.selector[label] for label in labels if label in pod.selector}
    if any(within(each, pod.labels) for each in world.services):
        like = (home for home in world.nodes for other in home.pods if within(pod.labels, other.labels))
        there = next(like, None)
        if there is not None and len(wanted) < len(labels):
            wanted = {label: there.labels[label] for label in labels if label in there.labels} | wanted
    return within(wanted, node.labels)


def admits(predicate: Mapping[str, Any], pod: Pod, node: Node, world: World) -> bool:
    """Whether one entry of a Policy lets the pod onto the node."""
    argument: Argument = predicate.get("argument") or {}
    if "serviceAffinity" in argument:
        return together(pod, node, world, argument["serviceAffinity"]["labels"])
    if "labelsPresence" in argument:
        wanted = argument["labelsPresence"]
        return all((label in node.labels) == wanted["presence"] for label in wanted["labels"])
    return PREDICATES[predicate["name"]](pod, node)


def feasible(policy: Mapping[str, Any], pod: Pod, world: World) -> list[Node]:
    """The nodes that pass every predicate, the mandatory ones too. Source: C013, C050."""
    asked = policy.get("predicates")
    entries = [{"name": name} for name in PROVIDED] if asked is None else list(asked)
    entries += [{"name": name} for name in MANDATORY]
    return [node for node in world.nodes if all(admits(entry, pod, node, world) for entry in entries)]


# -- priorities: a score a node, for all feasible nodes at once


def counted(pod: Pod, node: Node, what: str) -> tuple[int, int]:
    """What would be taken, with 100m and 200Mi for pods that do not ask, and what there is."""
    default = {"cpu": 100, "memory": 200}[what]
    asks = (default if getattr(each, what) is None else getattr(each, what) for each in (*node.pods, pod))
    return sum(asks), getattr(node, what)


def left(taken: int, there: int) -> int:
    return 0 if taken > there else (there - taken) * 100 // there


def mean(pod: Pod, nodes: Sequence[Node], rate: Callable[[int, int], int]) -> list[int]:
    return [(rate(*counted(pod, node, "cpu")) + rate(*counted(pod, node, "memory"))) // 2 for node in nodes]


def least(pod: Pod, nodes: Sequence[Node], world: World) -> list[int]:
    return mean(pod, nodes, left)


def most(pod: Pod, nodes: Sequence[Node], world: World) -> list[int]:
    return mean(pod, nodes, lambda taken, there: 0 if taken > there else taken * 100 // there)


def balanced(pod: Pod, nodes: Sequence[Node], world: World) -> list[int]:
    if not pod.cpu and not pod.memory:
        return [0] * len(nodes)

    def evenness(node: Node, pods: Sequence[Pod]) -> int:
        cpu = min(1.0, sum(each.cpu or 0 for each in pods) / node.cpu)
        memory = min(1.0, sum(each.memory or 0 for each in pods) / node.memory)
        return int((1 - abs(cpu - memory) * 0.5) * 100.0)

    return [50 + (50 + evenness(node, (*node.pods, pod)) - evenness(node, node.pods)) // 2 for node in nodes]


def count(node: Node, labels: Mapping[str, str]) -> int:
    return sum(within(labels, other.labels) and not other.deleting for other in node.pods)


def selector_spread(pod: Pod, nodes: Sequence[Node], world: World) -> list[int]:
    wanted: dict[str, str] = {}
    for service in world.services:
        if within(service, pod.labels):
            wanted |= service
    counts = [count(node, wanted) if wanted else 0 for node in nodes]
    by_zone: dict[str, int] = {}
    for node, number in zip(nodes, counts, strict=True):
        if "zone" in node.labels:
            by_zone[node.labels["zone"]] = by_zone.get(node.labels["zone"], 0) + number
    scores = []
    for node, number in zip(nodes, counts, strict=True):
        score = 100.0 if not max(counts) else 100.0 * ((max(counts) - number) / max(counts))
        if "zone" in node.labels:
            fullest = max(by_zone.values())
            zone = 100.0 if not fullest else 100.0 * ((fullest - by_zone[node.labels["zone"]]) / fullest)
            score = score * (1.0 - 2.0 / 3.0) + (2.0 / 3.0) * zone
        scores.append(int(score))
    return scores


def anti_affinity(pod: Pod, nodes: Sequence[Node], world: World, labels: Sequence[str]) -> list[int]:
    """Several ServiceAntiAffinity priorities together: the mean over their labels. Source: C066, C080."""
    service = next((each for each in world.services if within(each, pod.labels)), None)
    counts = [0 if service is None else count(node, service) for node in nodes]
    scores = [0.0] * len(nodes)
    for label in labels:
        for index, node in enumerate(nodes):
            if label in node.labels:
                same = sum(
                    number
                    for other, number in zip(nodes, counts, strict=True)
                    if other.labels.get(label) == node.labels[label]
                )
                share = 100.0 if not sum(counts) else 100.0 * ((sum(counts) - same) / sum(counts))
                scores[index] += share / len(labels)
    return [int(score) for score in scores]


def preferences(pod: Pod, nodes: Sequence[Node], wanted: Sequence[Argument]) -> list[int]:
    """Several LabelPreference priorities together: the mean. Source: C065, C080."""
    return [
        100 * sum((each["label"] in node.labels) == each["presence"] for each in wanted) // len(wanted)
        for node in nodes
    ]


def ratio(pod: Pod, nodes: Sequence[Node], argument: Argument) -> list[int]:
    """Source: C058."""
    points = [(point["utilization"], point["score"] * 10) for point in argument["shape"]]
    given = argument.get("resources") or [{"name": "cpu"}, {"name": "memory"}]

    def at(utilization: int) -> int:
        if utilization <= points[0][0]:
            return points[0][1]
        for (low, start), (high, end) in pairwise(points):
            if utilization <= high:
                return start + math.trunc((end - start) * (utilization - low) / (high - low))
        return points[-1][1]

    scores = []
    for node in nodes:
        total = weights = 0
        for resource in given:
            taken, there = counted(pod, node, resource["name"])
            score = at(100 if taken > there else 100 - (there - taken) * 100 // there)
            weight = resource.get("weight") or 1
            total, weights = total + score * weight, weights + (weight if score > 0 else 0)
        scores.append(math.floor(total / weights + 0.5) if weights else 0)
    return scores


def avoided(pod: Pod, nodes: Sequence[Node], world: World) -> list[int]:
    return [0 if pod.owner and node.avoids == pod.owner else 100 for node in nodes]


def node_affinity(pod: Pod, nodes: Sequence[Node], world: World) -> list[int]:
    raw = [sum(weight for weight, key, value in pod.prefers if node.labels.get(key) == value) for node in nodes]
    return [each * 100 // max(raw) if max(raw) else 0 for each in raw]


def soft_taints(pod: Pod, nodes: Sequence[Node], world: World) -> list[int]:
    raw = [
        sum(effect == "PreferNoSchedule" and key not in pod.tolerates for key, effect in node.taints) for node in nodes
    ]
    return [100 - each * 100 // max(raw) if max(raw) else 100 for each in raw]


def limits(pod: Pod, nodes: Sequence[Node], world: World) -> list[int]:
    return [int(0 < pod.cpu_limit <= node.cpu) for node in nodes]


def nothing(pod: Pod, nodes: Sequence[Node], world: World) -> list[int]:
    return [0] * len(nodes)


PRIORITIES: dict[str, Callable[[Pod, Sequence[Node], World], list[int]]] = {
    "SelectorSpreadPriority": selector_spread,
    "ServiceSpreadingPriority": selector_spread,
    "LeastRequestedPriority": least,
    "MostRequestedPriority": most,
    "BalancedResourceAllocation": balanced,
    "NodePreferAvoidPodsPriority": avoided,
    "NodeAffinityPriority": node_affinity,
    "TaintTolerationPriority": soft_taints,
    "ResourceLimitsPriority": limits,
    "InterPodAffinityPriority": nothing,
    "ImageLocalityPriority": nothing,
    "EvenPodsSpreadPriority": nothing,
}
PROVIDED_PRIORITIES = {
    "SelectorSpreadPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPodsPriority": 10000,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
    "ImageLocalityPriority": 1,
    "EvenPodsSpreadPriority": 2,
}


def ranked(policy: Mapping[str, Any], pod: Pod, nodes: Sequence[Node], world: World) -> list[int]:
    """The weighted sum of every priority, for each of *nodes*; 1 each where nothing tells them apart by a score."""
    asked = policy.get("priorities")
    if asked is None:
        asked = [{"name": name, "weight": weight} for name, weight in PROVIDED_PRIORITIES.items()]
    weights: dict[str, int] = {}
    preferred: list[Argument] = []
    apart: list[str] = []
    scores: list[list[int]] = []
    for entry in asked:
        argument: Argument = entry.get("argument") or {}
        if "labelPreference" in argument:
            preferred.append(argument["labelPreference"])
            weights["labels"] = weights.get("labels", 0) + entry["weight"]
        elif "serviceAntiAffinity" in argument:
            apart.append(argument["serviceAntiAffinity"]["label"])
            weights["services"] = weights.get("services", 0) + entry["weight"]
        elif "requestedToCapacityRatioArguments" in argument:
            rates = ratio(pod, nodes, argument["requestedToCapacityRatioArguments"])
            scores.append([rate * entry["weight"] for rate in rates])
        elif entry["name"] != "EqualPriority":
            weights[{"ServiceSpreadingPriority": "SelectorSpreadPriority"}.get(entry["name"], entry["name"])] = entry[
                "weight"
            ]
    for name, weight in weights.items():
        if name == "labels":
            rates = preferences(pod, nodes, preferred)
        elif name == "services":
            rates = anti_affinity(pod, nodes, world, apart)
        else:
            rates = PRIORITIES[name](pod, nodes, world)
        scores.append([rate * weight for rate in rates])
    return [sum(column) for column in zip(*scores, strict=True)] if scores else [1] * len(nodes)
