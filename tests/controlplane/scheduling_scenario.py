"""A scenario for two schedulers in turn: a small cluster, and pods with every kind of result.

Every pod has at most one best node, so that events can be compared word by word.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from tests.controlplane import events
from tests.controlplane.api_client import ApiClient, JsonObject
from tests.controlplane.decision_diff import is_decided

HOST: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
PRIORITIES: Final = {"low": 10, "high": 1000}
CONTROLLERS: Final = ("persistentvolume-binder-controller", "resourceclaim-controller")

_CAPACITY: Final = {"cpu": "4", "memory": "8Gi", "pods": "30"}
_WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"


def make_nodes() -> list[JsonObject]:
    """Make three schedulable nodes, a tainted one and a cordoned one."""
    nodes = []
    for number, name in enumerate(("alpha", "beta", "gamma", "tainted", "cordoned")):
        taints = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}] if name == "tainted" else []
        labels = {HOST: name, ZONE: f"zone-{number % 2}"}
        nodes.append(
            {
                "kind": "Node",
                "metadata": {"name": name, "labels": labels},
                "spec": {"taints": taints, "unschedulable": name == "cordoned"},
                "status": {"capacity": _CAPACITY, "allocatable": _CAPACITY},
            }
        )
    return nodes


def make_cluster_objects() -> list[JsonObject]:
    """Make priority classes, volumes, storage classes, devices and claims."""
    storage = {"kind": "StorageClass", "provisioner": "kubernetes.io/no-provisioner"}
    node_terms = [{"matchExpressions": [{"key": HOST, "operator": "In", "values": ["beta"]}]}]
    volume = {
        "capacity": {"storage": "5Gi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "local",
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": node_terms}},
    }
    pool = {"name": "gamma", "generation": 1, "resourceSliceCount": 1}
    gamma_slice = {"driver": "gpu.example.com", "nodeName": "gamma", "pool": pool, "devices": [{"name": "gpu-0"}]}
    device = {"name": "gpu-0", "bindingConditions": ["attached"], "bindingFailureConditions": ["broken"]}
    beta_slice = {**gamma_slice, "nodeName": "beta", "pool": {**pool, "name": "beta"}, "devices": [device]}
    selector = {"cel": {"expression": 'device.driver == "gpu.example.com"'}}
    return [
        *({"kind": "PriorityClass", "metadata": {"name": name}, "value": value} for name, value in PRIORITIES.items()),
        {"kind": "PriorityClass", "metadata": {"name": "polite"}, "value": 5, "preemptionPolicy": "Never"},
        {**storage, "metadata": {"name": "local"}, "volumeBindingMode": _WAIT_FOR_FIRST_CONSUMER},
        {**storage, "metadata": {"name": "at-once"}, "volumeBindingMode": "Immediate"},
        {
            **storage,
            "metadata": {"name": "nobody"},
            "provisioner": "example.com/nobody",
            "volumeBindingMode": _WAIT_FOR_FIRST_CONSUMER,
        },
        {"kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": volume},
        *(make_volume_claim(name, name) for name in ("local", "at-once", "nobody")),
        {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}},
        {"kind": "ResourceSlice", "metadata": {"name": "gamma-gpus"}, "spec": gamma_slice},
        {"kind": "ResourceSlice", "metadata": {"name": "beta-gpus"}, "spec": beta_slice},
        *(make_device_claim(name) for name in ("gpu", "second-gpu", "attached-gpu")),
    ]


def make_volume_claim(name: str, storage: str) -> JsonObject:
    """Make a PersistentVolumeClaim."""
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"storageClassName": storage, "accessModes": ["ReadWriteOnce"], "resources": resources}
    return {"kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def make_device_claim(name: str) -> JsonObject:
    """Make a ResourceClaim for one device."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 1}}
    spec = {"devices": {"requests": [request]}}
    return {"kind": "ResourceClaim", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def make_pod(name: str, cpu: str = "100m", *, node: str = "", app: str = "", **spec: Any) -> JsonObject:
    """Make a pod that requests *cpu*; *node* is its node selector."""
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu}}, **spec.pop("container", {})}
    body = {"containers": [container], **({"nodeSelector": {HOST: node}} if node else {}), **spec}
    meta = {"name": name, "namespace": "default", "labels": {"app": app or name}}
    return {"kind": "Pod", "metadata": meta, "spec": body}


def volume_spec(claim: str) -> JsonObject:
    """Return the fields of a pod spec that mounts a claim."""
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}


def device_spec(claim: str) -> JsonObject:
    """Return the fields of a pod spec that uses a device claim."""
    claims = {"resources": {"requests": {"cpu": "100m"}, "claims": [{"name": "gpu"}]}}
    return {"resourceClaims": [{"name": "gpu", "resourceClaimName": claim}], "container": claims}


def pod_affinity_spec(app: str, kind: str) -> JsonObject:
    """Return the fields of a pod spec with affinity or anti-affinity (*kind*) to the pods of *app*."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOST}
    return {"affinity": {kind: {REQUIRED: [term]}}}


def _preferred_node_spec(node: str) -> JsonObject:
    match = {"matchExpressions": [{"key": HOST, "operator": "In", "values": [node]}]}
    return {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 100, "preference": match}]}}}


_HOST_PORT: Final = {"ports": [{"containerPort": 80, "hostPort": 80}]}
_HARD_CONSTRAINT: Final = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule"}
_SOFT_CONSTRAINT: Final = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}

_POD_WITH_UNBINDABLE_VOLUME: Final = make_pod("late-volume", node="alpha", **volume_spec("nobody"))
PODS: Final[tuple[JsonObject, ...]] = (
    make_pod("placed", node="alpha", container=_HOST_PORT),
    make_pod("preferring", **_preferred_node_spec("gamma")),
    make_pod("volume", **volume_spec("local")),
    make_pod("device", node="gamma", **device_spec("gpu")),
    _POD_WITH_UNBINDABLE_VOLUME,
    make_pod("port-taken", node="alpha", container=_HOST_PORT),
    make_pod("too-large", "100"),
    make_pod("nowhere", node="delta"),
    make_pod("tainted", node="tainted"),
    make_pod("far", node="alpha", **pod_affinity_spec("placed", "podAntiAffinity")),
    make_pod("near", **pod_affinity_spec("nobody", "podAffinity")),
    make_pod(
        "uneven",
        node="alpha",
        app="placed",
        topologySpreadConstraints=[
            {**_HARD_CONSTRAINT, "labelSelector": {"matchLabels": {"app": "placed"}}, "nodeAffinityPolicy": "Ignore"}
        ],
    ),
    make_pod(
        "evenly",
        **_preferred_node_spec("gamma"),
        topologySpreadConstraints=[{**_SOFT_CONSTRAINT, "labelSelector": {"matchLabels": {"app": "evenly"}}}],
    ),
    make_pod("missing-claim", **volume_spec("missing")),
    make_pod("unbound-claim", **volume_spec("at-once")),
    make_pod("no-device", node="gamma", **device_spec("second-gpu")),
    make_pod("polite", "100", priorityClassName="polite"),
)
"""Pods that are created one after another, each after the decision about the previous one."""


def all_volumes_available(volumes: Mapping[str, JsonObject]) -> bool:
    """Return whether the PV controller has made all volumes available."""
    return all(volume["status"].get("phase") == "Available" for volume in volumes.values())


def run(api: ApiClient) -> None:
    """Run the scenario; a scheduler must be running."""
    api.create(make_pod("missing-device", **device_spec("missing")))  # not enqueued, without an event
    rejected_pods = []
    for manifest in PODS:
        pod = _create_and_wait(api, manifest)
        if manifest is _POD_WITH_UNBINDABLE_VOLUME:  # else it is retried, which also requeues other pods
            api.delete(pod)
        elif not pod["spec"].get("nodeName"):
            rejected_pods.append(pod)
    _schedule_gated_pod(api)
    _schedule_pod_with_attached_device(api)
    for pod in rejected_pods:  # else later events requeue them at varying times
        api.delete(pod)
    # A new node requeues a rejected pod whose deletion the scheduler has not seen yet: its watches are not ordered. The
    # pods have one watch, so a scheduler that binds this pod has seen the deletions.
    _wait_until_bound(api, api.create(make_pod("after-deletions", node="alpha")))
    _preempt(api)
    _requeue(api)


def _create_and_wait(api: ApiClient, manifest: JsonObject) -> JsonObject:
    pod = api.create(manifest)
    return api.wait_for(pod, is_decided, f"a decision about {manifest['metadata']['name']}")


def _wait_until_bound(api: ApiClient, pod: JsonObject) -> JsonObject:
    return api.wait_for(pod, lambda pod: bool(pod["spec"].get("nodeName")), f"binding {pod['metadata']['name']}")


def _schedule_gated_pod(api: ApiClient) -> None:
    pod = _create_and_wait(api, make_pod("gated", node="alpha", schedulingGates=[{"name": "example.com/quota"}]))
    api.patch(pod, {"spec": {"schedulingGates": None}})
    _wait_until_bound(api, pod)


def _schedule_pod_with_attached_device(api: ApiClient) -> None:
    """Schedule a pod with a device that is attached before binding; the test acts as the driver."""
    pod = api.create(make_pod("attached", node="beta", **device_spec("attached-gpu")))
    claim = api.get("ResourceClaim", "attached-gpu", "default")

    def is_allocated(claim: JsonObject) -> bool:
        return bool(claim.get("status", {}).get("allocation"))

    claim = api.wait_for({"kind": "ResourceClaim", **claim}, is_allocated, "an allocation")
    done = {"type": "attached", "status": "True", "reason": "Done", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    device_status = {"driver": "gpu.example.com", "pool": "beta", "device": "gpu-0", "conditions": [done]}
    api.patch({"kind": "ResourceClaim", **claim}, {"status": {"devices": [device_status]}}, "status")
    _wait_until_bound(api, pod)


def _preempt(api: ApiClient) -> None:
    """Preempt a pod on a node of its own, and bind the preemptor after the victim was deleted."""
    small = {"kind": "Node", "metadata": {"name": "small", "labels": {HOST: "small"}}}
    api.create({**small, "status": {"capacity": _CAPACITY, "allocatable": _CAPACITY}})
    victim = _wait_until_bound(api, api.create(make_pod("victim", "3", node="small", priorityClassName="low")))
    preemptor = api.create(make_pod("preemptor", "4", node="small", priorityClassName="high"))
    api.wait_for(victim, lambda pod: bool(pod["metadata"].get("deletionTimestamp")), "eviction")
    api.wait_for(preemptor, lambda pod: bool(pod["status"].get("nominatedNodeName")), "nomination")
    api.delete(victim)
    _wait_until_bound(api, preemptor)


def _requeue(api: ApiClient) -> None:
    """Requeue a pod when its node is added, and another when a pod on the node is deleted."""
    waiting_pod = _create_and_wait(api, make_pod("waits-for-node", "3", node="new"))
    status = {"capacity": _CAPACITY, "allocatable": _CAPACITY}
    api.create({"kind": "Node", "metadata": {"name": "new", "labels": {HOST: "new"}}, "status": status})
    first_pod = _wait_until_bound(api, waiting_pod)
    waiting_pod = _create_and_wait(api, make_pod("waits-for-room", "3", node="new"))
    api.delete(first_pod)
    _wait_until_bound(api, waiting_pod)


def events_by_pod(api: ApiClient) -> dict[str, list[tuple[str, ...]]]:
    """Return type, reason, action and note of the events by pod name, in order, without repetitions.

    The related object is left out: kube-scheduler does not set it. Events about deleting pods are left out, because
    they depend on timing.
    """
    pods = json.loads(api.list("Pod"))["items"]
    names = {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in pods}
    rows_by_pod: dict[str, list[tuple[str, ...]]] = {}
    for event in sorted(events.list_events(api), key=lambda event: str(event["eventTime"])):
        if event["regarding"]["kind"] != "Pod" or event.get("reportingController") != "default-scheduler":
            continue
        note = event["note"]
        if note.startswith("skip schedule deleting pod"):
            continue
        for uid, name in names.items():
            note = note.replace(uid, name)
        row = (event["type"], event["reason"], event["action"], note)
        rows = rows_by_pod.setdefault(event["regarding"]["name"], [])
        if row not in rows:
            rows.append(row)
    return rows_by_pod


def wait_for_last_event(api: ApiClient) -> None:
    """Wait until the last event of the scenario is written."""
    events.wait_for_notes(api, "Scheduled", {"default/waits-for-room"})
