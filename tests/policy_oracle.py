"""A second implementation of the predicates and priorities of a Policy, to compare converted configurations with.

It evaluates one node at a time on clusters without CSI drivers, claims, images, inter-pod affinity and topology spread.
Predicates about these accept all nodes, and priorities about these give all nodes the same score. Scores are 0 to 100
as from release 1.18 on; BalancedResourceAllocation has the formula of 1.36.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from tests.policy_oracle_cluster import Cluster, Node, Pod

CORDON = "node.kubernetes.io/unschedulable"
HARD_EFFECTS = ("NoSchedule", "NoExecute")


Argument = Mapping[str, Any]


def is_subset(part: Mapping[str, str], whole: Mapping[str, str]) -> bool:
    return all(whole.get(key) == value for key, value in part.items())


# -- predicates


def fits_resources(pod: Pod, node: Node) -> bool:
    cpu, memory = (sum(getattr(other, resource) or 0 for other in node.pods) for resource in ("cpu", "memory"))
    fits_cpu = not pod.cpu or cpu + pod.cpu <= node.cpu
    return len(node.pods) < node.max_pods and fits_cpu and (not pod.memory or memory + pod.memory <= node.memory)


def fits_ports(pod: Pod, node: Node) -> bool:
    return not pod.port or all(other.port != pod.port for other in node.pods)


def matches_selector(pod: Pod, node: Node) -> bool:
    return is_subset(pod.selector, node.labels)


def fits_general(pod: Pod, node: Node) -> bool:
    return fits_resources(pod, node) and fits_ports(pod, node) and matches_selector(pod, node)


def has_no_disk_conflict(pod: Pod, node: Node) -> bool:
    return not any(
        pod.disk and other.disk == pod.disk and not (pod.read_only and other.read_only) for other in node.pods
    )


def tolerates_taints(pod: Pod, node: Node) -> bool:
    return all(key in pod.tolerated_keys or effect not in HARD_EFFECTS for key, effect in node.taints)


def tolerates_no_execute_taints(pod: Pod, node: Node) -> bool:
    return all(key in pod.tolerated_keys or effect != "NoExecute" for key, effect in node.taints)


def is_schedulable(pod: Pod, node: Node) -> bool:
    return not node.cordoned or CORDON in pod.tolerated_keys


def is_ready(pod: Pod, node: Node) -> bool:
    ready = node.conditions.get("Ready", "True") == "True"
    healthy = all(node.conditions.get(key, "False") == "False" for key in ("OutOfDisk", "NetworkUnavailable"))
    return ready and healthy and not node.cordoned


def has_no_pressure(condition: str) -> Callable[[Pod, Node], bool]:
    def predicate(pod: Pod, node: Node) -> bool:
        exempt = condition == "MemoryPressure" and bool(pod.cpu or pod.memory or pod.cpu_limit)
        return exempt or node.conditions.get(condition) != "True"

    return predicate


def fits_disk_limit(pod: Pod, node: Node) -> bool:
    disks = {other.disk for other in (*node.pods, pod) if other.disk}
    return not pod.disk or len(disks) <= node.max_disks


def always_true(pod: Pod, node: Node) -> bool:
    return True


PREDICATES: dict[str, Callable[[Pod, Node], bool]] = {
    "CheckNodeCondition": is_ready,
    "CheckNodeUnschedulable": is_schedulable,
    "GeneralPredicates": fits_general,
    "HostName": always_true,
    "PodFitsHost": always_true,
    "PodFitsHostPorts": fits_ports,
    "PodFitsPorts": fits_ports,
    "MatchNodeSelector": matches_selector,
    "PodFitsResources": fits_resources,
    "NoDiskConflict": has_no_disk_conflict,
    "PodToleratesNodeTaints": tolerates_taints,
    "PodToleratesNodeNoExecuteTaints": tolerates_no_execute_taints,
    "MaxGCEPDVolumeCount": fits_disk_limit,
    "CheckNodeMemoryPressure": has_no_pressure("MemoryPressure"),
    "CheckNodeDiskPressure": has_no_pressure("DiskPressure"),
    "CheckNodePIDPressure": has_no_pressure("PIDPressure"),
    **dict.fromkeys(
        ("MaxEBSVolumeCount", "MaxAzureDiskVolumeCount", "MaxCinderVolumeCount", "MaxCSIVolumeCountPred"), always_true
    ),
    **dict.fromkeys(
        ("CheckVolumeBinding", "NoVolumeZoneConflict", "EvenPodsSpread", "MatchInterPodAffinity"), always_true
    ),
}
MANDATORY_PREDICATES = ("PodToleratesNodeTaints", "CheckNodeUnschedulable")
DEFAULT_PREDICATES = (
    *("NoVolumeZoneConflict", "MaxEBSVolumeCount", "MaxGCEPDVolumeCount", "MaxAzureDiskVolumeCount"),
    *("MaxCSIVolumeCountPred", "MatchInterPodAffinity", "NoDiskConflict", "GeneralPredicates"),
    *("PodToleratesNodeTaints", "CheckVolumeBinding", "CheckNodeUnschedulable", "EvenPodsSpread"),
)


def has_service_affinity(pod: Pod, node: Node, cluster: Cluster, labels: Sequence[str]) -> bool:
    """Evaluate CheckServiceAffinity.

    Source: pkg/scheduler/framework/plugins/serviceaffinity/service_affinity.go, ServiceAffinity.Filter (1.21).
    """
    required = {label: pod.selector[label] for label in labels if label in pod.selector}
    if any(is_subset(service, pod.labels) for service in cluster.services):
        peer_nodes = (peer for peer in cluster.nodes for other in peer.pods if is_subset(pod.labels, other.labels))
        peer_node = next(peer_nodes, None)
        if peer_node is not None and len(required) < len(labels):
            required = {label: peer_node.labels[label] for label in labels if label in peer_node.labels} | required
    return is_subset(required, node.labels)


def passes_predicate(predicate: Mapping[str, Any], pod: Pod, node: Node, cluster: Cluster) -> bool:
    """Return whether the pod passes a predicate of a Policy on the node."""
    argument: Argument = predicate.get("argument") or {}
    if "serviceAffinity" in argument:
        return has_service_affinity(pod, node, cluster, argument["serviceAffinity"]["labels"])
    if "labelsPresence" in argument:
        presence = argument["labelsPresence"]
        return all((label in node.labels) == presence["presence"] for label in presence["labels"])
    return PREDICATES[predicate["name"]](pod, node)


def find_feasible_nodes(policy: Mapping[str, Any], pod: Pod, cluster: Cluster) -> list[Node]:
    """Return the nodes that pass all predicates, including the mandatory ones.

    Source: pkg/scheduler/factory.go, Configurator.createFromConfig;
    pkg/scheduler/framework/plugins/legacy_registry.go, NewLegacyRegistry (1.21).
    """
    requested = policy.get("predicates")
    entries = [{"name": name} for name in DEFAULT_PREDICATES] if requested is None else list(requested)
    entries += [{"name": name} for name in MANDATORY_PREDICATES]
    return [node for node in cluster.nodes if all(passes_predicate(entry, pod, node, cluster) for entry in entries)]


# -- priorities: a score per feasible node


def requested_and_capacity(pod: Pod, node: Node, resource: str) -> tuple[int, int]:
    """Return the requests with the pod, with defaults of 100m and 200Mi, and the capacity."""
    default = {"cpu": 100, "memory": 200}[resource]
    requests = (default if getattr(p, resource) is None else getattr(p, resource) for p in (*node.pods, pod))
    return sum(requests), getattr(node, resource)


def free_share(requested: int, capacity: int) -> int:
    return 0 if requested > capacity else (capacity - requested) * 100 // capacity


def mean_score(pod: Pod, nodes: Sequence[Node], score: Callable[[int, int], int]) -> list[int]:
    return [
        (score(*requested_and_capacity(pod, node, "cpu")) + score(*requested_and_capacity(pod, node, "memory"))) // 2
        for node in nodes
    ]


def least_requested(pod: Pod, nodes: Sequence[Node], cluster: Cluster) -> list[int]:
    return mean_score(pod, nodes, free_share)


def most_requested(pod: Pod, nodes: Sequence[Node], cluster: Cluster) -> list[int]:
    return mean_score(pod, nodes, lambda used, capacity: 0 if used > capacity else used * 100 // capacity)


def balanced_allocation(pod: Pod, nodes: Sequence[Node], cluster: Cluster) -> list[int]:
    if not pod.cpu and not pod.memory:
        return [0] * len(nodes)

    def balance(node: Node, pods: Sequence[Pod]) -> int:
        cpu = min(1.0, sum(p.cpu or 0 for p in pods) / node.cpu)
        memory = min(1.0, sum(p.memory or 0 for p in pods) / node.memory)
        return int((1 - abs(cpu - memory) * 0.5) * 100.0)

    return [50 + (50 + balance(node, (*node.pods, pod)) - balance(node, node.pods)) // 2 for node in nodes]


def count_pods(node: Node, labels: Mapping[str, str]) -> int:
    return sum(is_subset(labels, other.labels) and not other.deleting for other in node.pods)


def selector_spread(pod: Pod, nodes: Sequence[Node], cluster: Cluster) -> list[int]:
    selector: dict[str, str] = {}
    for service in cluster.services:
        if is_subset(service, pod.labels):
            selector |= service
    counts = [count_pods(node, selector) if selector else 0 for node in nodes]
    by_zone: dict[str, int] = {}
    for node, number in zip(nodes, counts, strict=True):
        if "zone" in node.labels:
            by_zone[node.labels["zone"]] = by_zone.get(node.labels["zone"], 0) + number
    scores = []
    for node, number in zip(nodes, counts, strict=True):
        score = 100.0 if not max(counts) else 100.0 * ((max(counts) - number) / max(counts))
        if "zone" in node.labels:
            maximum = max(by_zone.values())
            zone_score = 100.0 if not maximum else 100.0 * ((maximum - by_zone[node.labels["zone"]]) / maximum)
            score = score * (1.0 - 2.0 / 3.0) + (2.0 / 3.0) * zone_score
        scores.append(int(score))
    return scores


def service_anti_affinity(pod: Pod, nodes: Sequence[Node], cluster: Cluster, labels: Sequence[str]) -> list[int]:
    """Score all ServiceAntiAffinity priorities together: the mean over their labels.

    Source: pkg/scheduler/framework/plugins/serviceaffinity/service_affinity.go,
    ServiceAffinity.updateNodeScoresForLabel; pkg/scheduler/framework/plugins/legacy_registry.go,
    LegacyRegistry.ProcessPredicatePolicy (1.21).
    """
    service = next((service for service in cluster.services if is_subset(service, pod.labels)), None)
    counts = [0 if service is None else count_pods(node, service) for node in nodes]
    scores = [0.0] * len(nodes)
    for label in labels:
        for index, node in enumerate(nodes):
            if label in node.labels:
                same_domain = sum(
                    number
                    for other, number in zip(nodes, counts, strict=True)
                    if other.labels.get(label) == node.labels[label]
                )
                share = 100.0 if not sum(counts) else 100.0 * ((sum(counts) - same_domain) / sum(counts))
                scores[index] += share / len(labels)
    return [int(score) for score in scores]


def label_preferences(pod: Pod, nodes: Sequence[Node], preferences: Sequence[Argument]) -> list[int]:
    """Score all LabelPreference priorities together: the mean.

    Source: pkg/scheduler/framework/plugins/nodelabel/node_label.go, NodeLabel.Score;
    pkg/scheduler/framework/plugins/legacy_registry.go, LegacyRegistry.ProcessPredicatePolicy (1.21).
    """
    return [
        100 * sum((p["label"] in node.labels) == p["presence"] for p in preferences) // len(preferences)
        for node in nodes
    ]


def requested_to_capacity_ratio(pod: Pod, nodes: Sequence[Node], argument: Argument) -> list[int]:
    """Score by a piecewise linear function of the utilization.

    Source: pkg/scheduler/framework/plugins/noderesources/requested_to_capacity_ratio.go,
    buildRequestedToCapacityRatioScorerFunction (1.21).
    """
    points = [(point["utilization"], point["score"] * 10) for point in argument["shape"]]
    resources = argument.get("resources") or [{"name": "cpu"}, {"name": "memory"}]

    def interpolate(utilization: int) -> int:
        if utilization <= points[0][0]:
            return points[0][1]
        for (low, start), (high, end) in pairwise(points):
            if utilization <= high:
                return start + math.trunc((end - start) * (utilization - low) / (high - low))
        return points[-1][1]

    scores = []
    for node in nodes:
        total = weights = 0
        for resource in resources:
            requested, capacity = requested_and_capacity(pod, node, resource["name"])
            score = interpolate(100 if requested > capacity else 100 - (capacity - requested) * 100 // capacity)
            weight = resource.get("weight") or 1
            total, weights = total + score * weight, weights + (weight if score > 0 else 0)
        scores.append(math.floor(total / weights + 0.5) if weights else 0)
    return scores


def prefer_avoid_pods(pod: Pod, nodes: Sequence[Node], cluster: Cluster) -> list[int]:
    return [0 if pod.owner and node.avoided_owner == pod.owner else 100 for node in nodes]


def node_affinity(pod: Pod, nodes: Sequence[Node], cluster: Cluster) -> list[int]:
    raw = [
        sum(weight for weight, key, value in pod.preferred_labels if node.labels.get(key) == value) for node in nodes
    ]
    return [score * 100 // max(raw) if max(raw) else 0 for score in raw]


def taint_toleration(pod: Pod, nodes: Sequence[Node], cluster: Cluster) -> list[int]:
    raw = [
        sum(effect == "PreferNoSchedule" and key not in pod.tolerated_keys for key, effect in node.taints)
        for node in nodes
    ]
    return [100 - score * 100 // max(raw) if max(raw) else 100 for score in raw]


def resource_limits(pod: Pod, nodes: Sequence[Node], cluster: Cluster) -> list[int]:
    return [int(0 < pod.cpu_limit <= node.cpu) for node in nodes]


def zero_scores(pod: Pod, nodes: Sequence[Node], cluster: Cluster) -> list[int]:
    return [0] * len(nodes)


PRIORITIES: dict[str, Callable[[Pod, Sequence[Node], Cluster], list[int]]] = {
    "SelectorSpreadPriority": selector_spread,
    "ServiceSpreadingPriority": selector_spread,
    "LeastRequestedPriority": least_requested,
    "MostRequestedPriority": most_requested,
    "BalancedResourceAllocation": balanced_allocation,
    "NodePreferAvoidPodsPriority": prefer_avoid_pods,
    "NodeAffinityPriority": node_affinity,
    "TaintTolerationPriority": taint_toleration,
    "ResourceLimitsPriority": resource_limits,
    "InterPodAffinityPriority": zero_scores,
    "ImageLocalityPriority": zero_scores,
    "EvenPodsSpreadPriority": zero_scores,
}
DEFAULT_PRIORITIES = {
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


def total_scores(policy: Mapping[str, Any], pod: Pod, nodes: Sequence[Node], cluster: Cluster) -> list[int]:
    """Return the weighted sum of all priorities for each of *nodes*; 1 for each node without priorities."""
    requested = policy.get("priorities")
    if requested is None:
        requested = [{"name": name, "weight": weight} for name, weight in DEFAULT_PRIORITIES.items()]
    weights: dict[str, int] = {}
    preferred: list[Argument] = []
    anti_affinity_labels: list[str] = []
    scores: list[list[int]] = []
    for entry in requested:
        argument: Argument = entry.get("argument") or {}
        if "labelPreference" in argument:
            preferred.append(argument["labelPreference"])
            weights["labels"] = weights.get("labels", 0) + entry["weight"]
        elif "serviceAntiAffinity" in argument:
            anti_affinity_labels.append(argument["serviceAntiAffinity"]["label"])
            weights["services"] = weights.get("services", 0) + entry["weight"]
        elif "requestedToCapacityRatioArguments" in argument:
            node_scores = requested_to_capacity_ratio(pod, nodes, argument["requestedToCapacityRatioArguments"])
            scores.append([score * entry["weight"] for score in node_scores])
        elif entry["name"] != "EqualPriority":
            weights[{"ServiceSpreadingPriority": "SelectorSpreadPriority"}.get(entry["name"], entry["name"])] = entry[
                "weight"
            ]
    for name, weight in weights.items():
        if name == "labels":
            node_scores = label_preferences(pod, nodes, preferred)
        elif name == "services":
            node_scores = service_anti_affinity(pod, nodes, cluster, anti_affinity_labels)
        else:
            node_scores = PRIORITIES[name](pod, nodes, cluster)
        scores.append([score * weight for score in node_scores])
    return [sum(column) for column in zip(*scores, strict=True)] if scores else [1] * len(nodes)
