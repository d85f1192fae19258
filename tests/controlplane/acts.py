"""What two schedulers are shown in turn: a small cluster, and pods that bring out every kind of answer.

Every pod has one best node at most, so that what is told about it can be compared word by word.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from tests.controlplane import events
from tests.controlplane.agreement import decided
from tests.controlplane.api import Api, Thing

HOST: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
PRIORITIES: Final = {"low": 10, "high": 1000}
CONTROLLERS: Final = ("persistentvolume-binder-controller", "resourceclaim-controller")

_ROOM: Final = {"cpu": "4", "memory": "8Gi", "pods": "30"}
_WAITS: Final = "WaitForFirstConsumer"


def nodes() -> list[Thing]:
    """Three nodes that take pods, one that is tainted, one that is cordoned."""
    found = []
    for number, name in enumerate(("alpha", "beta", "gamma", "tainted", "cordoned")):
        taints = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}] if name == "tainted" else []
        labels = {HOST: name, ZONE: f"zone-{number % 2}"}
        found.append(
            {
                "kind": "Node",
                "metadata": {"name": name, "labels": labels},
                "spec": {"taints": taints, "unschedulable": name == "cordoned"},
                "status": {"capacity": _ROOM, "allocatable": _ROOM},
            }
        )
    return found


def things() -> list[Thing]:
    """Priorities, storage, devices."""
    storage = {"kind": "StorageClass", "provisioner": "kubernetes.io/no-provisioner"}
    where = [{"matchExpressions": [{"key": HOST, "operator": "In", "values": ["beta"]}]}]
    volume = {
        "capacity": {"storage": "5Gi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "local",
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": where}},
    }
    pool = {"name": "gamma", "generation": 1, "resourceSliceCount": 1}
    offer = {"driver": "gpu.example.com", "nodeName": "gamma", "pool": pool, "devices": [{"name": "gpu-0"}]}
    device = {"name": "gpu-0", "bindingConditions": ["attached"], "bindingFailureConditions": ["broken"]}
    attached = {**offer, "nodeName": "beta", "pool": {**pool, "name": "beta"}, "devices": [device]}
    selector = {"cel": {"expression": 'device.driver == "gpu.example.com"'}}
    return [
        *({"kind": "PriorityClass", "metadata": {"name": name}, "value": value} for name, value in PRIORITIES.items()),
        {"kind": "PriorityClass", "metadata": {"name": "polite"}, "value": 5, "preemptionPolicy": "Never"},
        {**storage, "metadata": {"name": "local"}, "volumeBindingMode": _WAITS},
        {**storage, "metadata": {"name": "at-once"}, "volumeBindingMode": "Immediate"},
        {**storage, "metadata": {"name": "nobody"}, "provisioner": "example.com/nobody", "volumeBindingMode": _WAITS},
        {"kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": volume},
        *(a_claim(name, name) for name in ("local", "at-once", "nobody")),
        {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}},
        {"kind": "ResourceSlice", "metadata": {"name": "gamma-gpus"}, "spec": offer},
        {"kind": "ResourceSlice", "metadata": {"name": "beta-gpus"}, "spec": attached},
        *(a_device_claim(name) for name in ("gpu", "second-gpu", "attached-gpu")),
    ]


def a_claim(name: str, storage: str) -> Thing:
    """A claim of a volume."""
    wanted = {"requests": {"storage": "1Gi"}}
    spec = {"storageClassName": storage, "accessModes": ["ReadWriteOnce"], "resources": wanted}
    return {"kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def a_device_claim(name: str) -> Thing:
    """A claim of one device."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 1}}
    spec = {"devices": {"requests": [request]}}
    return {"kind": "ResourceClaim", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def a_pod(name: str, cpu: str = "100m", *, on: str = "", app: str = "", **spec: Any) -> Thing:
    """A pod that asks for *cpu*, by its labels only on the node *on*."""
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu}}, **spec.pop("container", {})}
    body = {"containers": [container], **({"nodeSelector": {HOST: on}} if on else {}), **spec}
    meta = {"name": name, "namespace": "default", "labels": {"app": app or name}}
    return {"kind": "Pod", "metadata": meta, "spec": body}


def mounting(claim: str) -> Thing:
    """The part of a pod that mounts a claim."""
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}


def using(claim: str) -> Thing:
    """The part of a pod that uses a claim of devices."""
    claims = {"resources": {"requests": {"cpu": "100m"}, "claims": [{"name": "gpu"}]}}
    return {"resourceClaims": [{"name": "gpu", "resourceClaimName": claim}], "container": claims}


def near(app: str, kind: str) -> Thing:
    """The part of a pod that must be near pods of *app*, or far from them."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOST}
    return {"affinity": {kind: {REQUIRED: [term]}}}


def _preferring(node: str) -> Thing:
    match = {"matchExpressions": [{"key": HOST, "operator": "In", "values": [node]}]}
    return {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 100, "preference": match}]}}}


_PORT: Final = {"ports": [{"containerPort": 80, "hostPort": 80}]}
_SPREAD: Final = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule"}
_EVENLY: Final = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}

_LATE: Final = a_pod("late-volume", on="alpha", **mounting("nobody"))
PODS: Final[tuple[Thing, ...]] = (
    a_pod("placed", on="alpha", container=_PORT),
    a_pod("preferring", **_preferring("gamma")),
    a_pod("volume", **mounting("local")),
    a_pod("device", on="gamma", **using("gpu")),
    _LATE,
    a_pod("port-taken", on="alpha", container=_PORT),
    a_pod("too-large", "100"),
    a_pod("nowhere", on="delta"),
    a_pod("tainted", on="tainted"),
    a_pod("far", on="alpha", **near("placed", "podAntiAffinity")),
    a_pod("near", **near("nobody", "podAffinity")),
    a_pod(
        "uneven",
        on="alpha",
        app="placed",
        topologySpreadConstraints=[
            {**_SPREAD, "labelSelector": {"matchLabels": {"app": "placed"}}, "nodeAffinityPolicy": "Ignore"}
        ],
    ),
    a_pod(
        "evenly",
        **_preferring("gamma"),
        topologySpreadConstraints=[{**_EVENLY, "labelSelector": {"matchLabels": {"app": "evenly"}}}],
    ),
    a_pod("missing-claim", **mounting("missing")),
    a_pod("unbound-claim", **mounting("at-once")),
    a_pod("no-device", on="gamma", **using("second-gpu")),
    a_pod("polite", "100", priorityClassName="polite"),
)
"""Pods that are tried one after another, each once the one before it was decided about."""


def all_available(volumes: Mapping[str, Thing]) -> bool:
    """Whether the PV controller has seen all volumes; until then nobody can have them."""
    return all(each["status"].get("phase") == "Available" for each in volumes.values())


def perform(api: Api) -> None:
    """Shows everything there is; a scheduler must be at work."""
    api.create(a_pod("missing-device", **using("missing")))  # held back without a word
    refused = []
    for manifest in PODS:
        pod = _decided(api, manifest)
        if manifest is _LATE:  # else it is tried again and again, and whenever it leaves its node others are too
            api.delete(pod)
        elif not pod["spec"].get("nodeName"):
            refused.append(pod)
    _gated(api)
    _attached(api)
    for pod in refused:  # else what comes would have them tried again, at moments that differ from run to run
        api.delete(pod)
    _preempting(api)
    _woken(api)


def _decided(api: Api, manifest: Thing) -> Thing:
    pod = api.create(manifest)
    return api.wait_for(pod, decided, f"a decision about {manifest['metadata']['name']}")


def _bound(api: Api, pod: Thing) -> Thing:
    return api.wait_for(pod, lambda each: bool(each["spec"].get("nodeName")), f"binding {pod['metadata']['name']}")


def _gated(api: Api) -> None:
    pod = _decided(api, a_pod("gated", on="alpha", schedulingGates=[{"name": "example.com/quota"}]))
    api.patch(pod, {"spec": {"schedulingGates": None}})
    _bound(api, pod)


def _attached(api: Api) -> None:
    """A device whose driver must attach it first; here we are the driver."""
    pod = api.create(a_pod("attached", on="beta", **using("attached-gpu")))
    claim = api.get("ResourceClaim", "attached-gpu", "default")

    def allocated(each: Thing) -> bool:
        return bool(each.get("status", {}).get("allocation"))

    claim = api.wait_for({"kind": "ResourceClaim", **claim}, allocated, "an allocation")
    done = {"type": "attached", "status": "True", "reason": "Done", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    told = {"driver": "gpu.example.com", "pool": "beta", "device": "gpu-0", "conditions": [done]}
    api.patch({"kind": "ResourceClaim", **claim}, {"status": {"devices": [told]}}, "status")
    _bound(api, pod)


def _preempting(api: Api) -> None:
    """A victim on a node of its own; the preemptor gets the node once the victim is gone."""
    small = {"kind": "Node", "metadata": {"name": "small", "labels": {HOST: "small"}}}
    api.create({**small, "status": {"capacity": _ROOM, "allocatable": _ROOM}})
    victim = _bound(api, api.create(a_pod("victim", "3", on="small", priorityClassName="low")))
    preemptor = api.create(a_pod("preemptor", "4", on="small", priorityClassName="high"))
    api.wait_for(victim, lambda each: bool(each["metadata"].get("deletionTimestamp")), "eviction")
    api.wait_for(preemptor, lambda each: bool(each["status"].get("nominatedNodeName")), "nomination")
    api.delete(victim)
    _bound(api, preemptor)


def _woken(api: Api) -> None:
    """A pod waits for a node, then one for the room of a pod that goes."""
    waits = _decided(api, a_pod("waits-for-node", "3", on="new"))
    status = {"capacity": _ROOM, "allocatable": _ROOM}
    api.create({"kind": "Node", "metadata": {"name": "new", "labels": {HOST: "new"}}, "status": status})
    placed = _bound(api, waits)
    waits = _decided(api, a_pod("waits-for-room", "3", on="new"))
    api.delete(placed)
    _bound(api, waits)


def told(api: Api) -> dict[str, list[tuple[str, ...]]]:
    """The events of the pods in the order they happened, by the pod's name; each once, however often it repeated.

    The object an event relates to is left out: kube-scheduler means to name the preemptor there, and does not. So is
    what is told about a pod that is tried in the moment it is deleted, which is a matter of chance (A011).
    """
    pods = json.loads(api.list("Pod"))["items"]
    names = {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in pods}
    found: dict[str, list[tuple[str, ...]]] = {}
    for event in sorted(events.written(api), key=lambda event: str(event["eventTime"])):
        if event["regarding"]["kind"] != "Pod" or event.get("reportingController") != "default-scheduler":
            continue
        note = event["note"]
        if note.startswith("skip schedule deleting pod"):
            continue
        for uid, name in names.items():
            note = note.replace(uid, name)
        row = (event["type"], event["reason"], event["action"], note)
        rows = found.setdefault(event["regarding"]["name"], [])
        if row not in rows:
            rows.append(row)
    return found


def until_told(api: Api) -> None:
    """Waits for the last event; they are written beside everything else."""
    events.wait_for(api, "Scheduled", {"default/waits-for-room"})
