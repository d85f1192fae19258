"""Adds random scheduling constraints to a pod: node affinity, pod affinity, topology spread, tolerations, ports."""

from typing import Final

from tests.oracle.generator.builder import LABELS, ClusterBuilder, Raw
from tests.oracle.generator.nodes import DISKS, EFFECTS, IMAGES, TAINTS, ZONES

_NODE_LABELS: Final = {
    "topology.kubernetes.io/zone": ZONES,
    "disk": DISKS,
    "kubernetes.io/arch": ("amd64", "arm64"),
    "example.com/rack": ("k1", "k2", "k9"),
    "rank": ("1", "2", "3", "4", "5"),
}
_HOST_IPS: Final = ("0.0.0.0", "10.0.0.1", "127.0.0.1", "::")  # noqa: S104 - a value of a field
TOPOLOGY_KEYS: Final = ("kubernetes.io/hostname", "topology.kubernetes.io/zone", "example.com/rack")


def add_node_affinity(builder: ClusterBuilder, pod: Raw) -> None:
    """Add a node selector, required terms or preferred terms."""
    spec = pod["spec"]
    if builder.chance(0.4):
        keys = builder.sample(list(_NODE_LABELS), 1, 2)
        spec["nodeSelector"] = {key: builder.pick(_NODE_LABELS[key]) for key in keys}
    affinity: Raw = {}
    if builder.chance(0.5):
        terms = [node_term(builder) for _ in range(builder.rng.randint(1, 2))]
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if builder.chance(0.6):
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": builder.pick((1, 7, 50, 100)), "preference": node_term(builder)}
            for _ in range(builder.rng.randint(1, 3))
        ]
    if affinity:
        spec.setdefault("affinity", {})["nodeAffinity"] = affinity


def node_term(builder: ClusterBuilder) -> Raw:
    """Return a random node selector term; it may be empty, which matches no node."""
    if builder.chance(0.05):
        return {}
    term: Raw = {}
    if builder.chance(0.85):
        term["matchExpressions"] = [_node_requirement(builder) for _ in range(builder.rng.randint(1, 2))]
    if not term or builder.chance(0.1):
        names = [node["metadata"]["name"] for node in builder.nodes] + ["missing"]
        operator = builder.pick(("In", "In", "NotIn"))
        term["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": [builder.pick(names)]}]
    return term


def _node_requirement(builder: ClusterBuilder) -> Raw:
    if builder.chance(0.2):
        return {"key": "rank", "operator": builder.pick(("Gt", "Lt")), "values": [str(builder.rng.randint(0, 9))]}
    key = builder.pick(list(_NODE_LABELS))
    return builder.label_requirement(key, _NODE_LABELS[key])


def add_tolerations(builder: ClusterBuilder, pod: Raw) -> None:
    """Add tolerations of all forms."""
    tolerations = pod["spec"].setdefault("tolerations", [])
    for _ in range(builder.rng.randint(1, 4)):
        if builder.chance(0.08):
            toleration: Raw = {"operator": "Exists"}
        else:
            key, value = builder.pick((*TAINTS, ("node.kubernetes.io/unschedulable", "")))
            toleration = {"key": key, "operator": "Exists"}
            if builder.chance(0.6):
                toleration = {"key": key, "operator": "Equal"}
                chosen = builder.pick((value, value, "other"))
                if chosen:
                    toleration["value"] = chosen
        if builder.chance(0.7):
            toleration["effect"] = builder.pick(EFFECTS)
            if toleration["effect"] == "NoExecute" and builder.chance(0.3):
                toleration["tolerationSeconds"] = 300
        tolerations.append(toleration)


def add_ports(builder: ClusterBuilder, pod: Raw) -> None:
    """Add host ports to the containers."""
    seen = set()
    containers = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]
    host_network = builder.chance(0.15)
    if host_network:
        pod["spec"]["hostNetwork"] = True
    for container in containers:
        for _ in range(builder.rng.randint(0, 2)):
            number = builder.pick((80, 8080, 9090))
            port: Raw = {"containerPort": number, "protocol": builder.pick(("TCP", "TCP", "UDP", "SCTP"))}
            if host_network or builder.chance(0.8):
                port["hostPort"] = number
            if builder.chance(0.4):
                port["hostIP"] = builder.pick(_HOST_IPS)
            key = (number, port["protocol"], port.get("hostIP"))
            if key not in seen:
                seen.add(key)
                container.setdefault("ports", []).append(port)


def add_images(builder: ClusterBuilder, pod: Raw) -> None:
    """Set the images of the containers, and add an image volume."""
    names = [name for name, _ in IMAGES] + ["redis", "redis:7", "library/redis", "registry.example.com/web", "none:1"]
    for container in [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]:
        container["image"] = builder.pick(names)
    if builder.chance(0.3):
        image = {"reference": builder.pick(names), "pullPolicy": "IfNotPresent"}
        pod["spec"].setdefault("volumes", []).append({"name": "image", "image": image})


def add_pod_affinity(builder: ClusterBuilder, pod: Raw) -> None:
    """Add pod affinity and anti-affinity, required and preferred."""
    for field in ("podAffinity", "podAntiAffinity"):
        if builder.chance(0.3):
            continue
        affinity: Raw = {}
        if builder.chance(0.5):
            terms = [_pod_term(builder, pod) for _ in range(builder.rng.randint(1, 2))]
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = terms
        if not affinity or builder.chance(0.5):
            affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": builder.pick((1, 10, 100)), "podAffinityTerm": _pod_term(builder, pod)}
                for _ in range(builder.rng.randint(1, 2))
            ]
        pod["spec"].setdefault("affinity", {})[field] = affinity


def _pod_term(builder: ClusterBuilder, pod: Raw) -> Raw:
    term: Raw = {"topologyKey": builder.pick(TOPOLOGY_KEYS)}
    if builder.chance(0.95):
        term["labelSelector"] = builder.label_selector()
        _merge_label_keys(builder, pod, term)
    if builder.chance(0.25):
        term["namespaces"] = builder.sample((*builder.namespaces, "missing"), 1, 2)
    if builder.chance(0.25):
        term["namespaceSelector"] = builder.pick(
            (
                {},
                {"matchLabels": {"team": "a"}},
                {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
                {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]},
                {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
            )
        )
    return term


def _merge_label_keys(builder: ClusterBuilder, pod: Raw, term: Raw) -> None:
    """Add matchLabelKeys or mismatchLabelKeys, merged into the selector as the API server does."""
    labels = pod["metadata"]["labels"]
    for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        key = builder.pick(list(LABELS))
        used = {entry["key"] for entry in term["labelSelector"].get("matchExpressions", [])}
        used.update(term["labelSelector"].get("matchLabels", {}))
        if key in labels and key not in used and builder.chance(0.12):
            term[field] = [key]
            expressions = term["labelSelector"].setdefault("matchExpressions", [])
            expressions.append({"key": key, "operator": operator, "values": [labels[key]]})


def add_spread(builder: ClusterBuilder, pod: Raw) -> None:
    """Add topology spread constraints, hard and soft."""
    constraints: list[Raw] = []
    for key in builder.sample(TOPOLOGY_KEYS, 1, 2):
        when = builder.pick(("DoNotSchedule", "ScheduleAnyway"))
        constraint: Raw = {"maxSkew": builder.pick((1, 1, 2, 5)), "topologyKey": key, "whenUnsatisfiable": when}
        if builder.chance(0.95):
            constraint["labelSelector"] = builder.label_selector()
            label = builder.pick(list(LABELS))
            used = {entry["key"] for entry in constraint["labelSelector"].get("matchExpressions", [])}
            used.update(constraint["labelSelector"].get("matchLabels", {}))
            if label in pod["metadata"]["labels"] and label not in used and builder.chance(0.2):
                constraint["matchLabelKeys"] = [label]
                value = pod["metadata"]["labels"][label]
                constraint["labelSelector"].setdefault("matchExpressions", []).append(
                    {"key": label, "operator": "In", "values": [value]}
                )
        if when == "DoNotSchedule" and builder.chance(0.3):
            constraint["minDomains"] = builder.pick((1, 2, 3, 4))
        add_node_inclusion_policies(builder, constraint, 0.4)
        constraints.append(constraint)
    pod["spec"]["topologySpreadConstraints"] = constraints


def add_node_inclusion_policies(builder: ClusterBuilder, constraint: Raw, probability: float) -> None:
    """Add each node inclusion policy to a spread constraint with *probability*."""
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if builder.chance(probability):
            constraint[policy] = builder.pick(("Honor", "Ignore"))
