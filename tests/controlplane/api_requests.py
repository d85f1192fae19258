"""Requests for both the fake API server and the real one: method, path, body, and media type of a patch."""

from typing import Any

Object = dict[str, Any]

NAMESPACE_PATH = "/api/v1/namespaces/talk"
PODS = f"{NAMESPACE_PATH}/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/talk/leases"
BUDGETS = "/apis/policy/v1/namespaces/talk/poddisruptionbudgets"
EVENTS = "/apis/events.k8s.io/v1/namespaces/talk/events"
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
TAINT = {"key": "a", "effect": "NoSchedule"}
HEALTH_FIELDS = ("observedGeneration", "currentHealthy", "desiredHealthy")
STORAGE = "/apis/storage.k8s.io/v1"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/talk/resourceclaims"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH, STRATEGIC_PATCH = "application/merge-patch+json", "application/strategic-merge-patch+json"


def make_pod(name: str, **spec: Any) -> Object:
    container = {"name": "c", "image": "app:1", "resources": {"limits": {"cpu": "1"}}, "ports": [{"containerPort": 80}]}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def make_binding(node: str, **meta: str) -> Object:
    return {"metadata": meta, "target": {"kind": "Node", "name": node}}


REQUESTS: list[tuple[str, str, Any, str]] = [
    ("POST", "/api/v1/namespaces", {"metadata": {"name": "talk"}}, ""),
    ("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}, "status": {"capacity": {"cpu": "4", "memory": "8Gi"}}}, ""),
    ("POST", PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 10, "preemptionPolicy": "Never"}, ""),
    # create
    ("POST", PODS, make_pod("a"), ""),
    ("POST", PODS, make_pod("a"), ""),
    ("POST", PODS, make_pod("b", priorityClassName="high", hostNetwork=True), ""),
    ("POST", PODS, make_pod("c", priorityClassName="unknown"), ""),
    ("POST", PODS, make_pod("c", priority=5), ""),
    ("POST", PODS, make_pod("Bad_Name"), ""),
    ("POST", PODS, {"metadata": {}, "spec": make_pod("x")["spec"]}, ""),
    ("POST", PODS, {**make_pod("c"), "metadata": {"name": "c", "namespace": "other"}}, ""),
    ("POST", PODS, {**make_pod("c"), "metadata": {"name": "c", "resourceVersion": "1"}}, ""),
    ("POST", "/api/v1/namespaces/nowhere/pods", make_pod("c"), ""),
    ("POST", PODS, make_pod("gated", schedulingGates=[{"name": "example.com/wait"}]), ""),
    # patch
    ("PATCH", f"{PODS}/a", {"metadata": {"labels": {"app": "a"}}}, MERGE_PATCH),
    ("PATCH", f"{PODS}/a", {"spec": {"nodeSelector": {"a": "b"}}}, MERGE_PATCH),
    ("PATCH", f"{PODS}/a", {"metadata": {"uid": "0a0a0a0a-0000-4000-8000-000000000000"}}, STRATEGIC_PATCH),
    ("PATCH", f"{PODS}/a", {"metadata": {"resourceVersion": "1"}}, STRATEGIC_PATCH),
    ("PATCH", f"{PODS}/a/status", {"status": {"conditions": [{"type": "Y", "status": "True"}]}}, STRATEGIC_PATCH),
    ("PATCH", f"{PODS}/a", {"metadata": {"finalizers": ["b.example.com/b", "a.example.com/a"]}}, STRATEGIC_PATCH),
    ("PATCH", f"{PODS}/a", {"metadata": {"finalizers": ["c.example.com/c"]}}, STRATEGIC_PATCH),
    ("PATCH", f"{PODS}/a", {"metadata": {"finalizers": None}}, STRATEGIC_PATCH),
    ("PATCH", f"{PODS}/gated", {"spec": {"schedulingGates": [{"name": "example.com/more"}]}}, STRATEGIC_PATCH),
    (
        "PATCH",
        f"{PODS}/a/status",
        {"status": {"nominatedNodeName": "n1", "conditions": [{"type": "PodScheduled", "status": "False"}]}},
        STRATEGIC_PATCH,
    ),
    (
        "PATCH",
        f"{PODS}/a/status",
        {
            "status": {
                "$setElementOrder/conditions": [{"type": "X"}, {"type": "PodScheduled"}],
                "conditions": [{"type": "X", "status": "True"}, {"type": "PodScheduled", "reason": "Unschedulable"}],
            }
        },
        STRATEGIC_PATCH,
    ),
    ("PATCH", f"{PODS}/none", {}, MERGE_PATCH),
    (
        "PATCH",
        f"{PODS}/a",
        [
            {"op": "test", "path": "/metadata/labels/app", "value": "a"},
            {"op": "add", "path": "/metadata/labels/example.com~1x", "value": "1"},
            {"op": "copy", "from": "/metadata/labels/app", "path": "/metadata/labels/b"},
            {"op": "move", "from": "/metadata/labels/b", "path": "/metadata/labels/c"},
            {"op": "replace", "path": "/spec/containers/0/image", "value": "app:2"},
            {"op": "add", "path": "/spec/tolerations/-", "value": {"key": "a", "operator": "Exists"}},
        ],
        JSON_PATCH,
    ),
    ("PATCH", f"{PODS}/a", [{"op": "remove", "path": "/metadata/labels/c"}], JSON_PATCH),
    ("PATCH", f"{PODS}/a", [{"op": "remove", "path": "/metadata/labels/c"}], JSON_PATCH),
    ("PATCH", f"{PODS}/a", [{"op": "test", "path": "/metadata/labels/app", "value": "b"}], JSON_PATCH),
    ("PATCH", f"{PODS}/a", [{"op": "replace", "path": "/metadata/labels/none", "value": "b"}], JSON_PATCH),
    ("PATCH", f"{PODS}/a", [{"op": "add", "path": "/spec/none/none", "value": "b"}], JSON_PATCH),
    ("PATCH", f"{PODS}/a", [{"op": "add", "path": "/spec/tolerations/9", "value": "b"}], JSON_PATCH),
    ("PATCH", f"{PODS}/a", [{"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}], JSON_PATCH),
    ("PATCH", f"{PODS}/a", [{"op": "replace", "path": "/spec/nodeSelector", "value": {"a": "b"}}], JSON_PATCH),
    ("PATCH", f"{PODS}/a", [{"op": "unknown", "path": "/spec"}], JSON_PATCH),
    ("PATCH", f"{PODS}/a", {"metadata": {}}, JSON_PATCH),
    ("PATCH", f"{PODS}/none", [], JSON_PATCH),
    ("PATCH", f"{PODS}/a", {}, "application/x-unknown"),
    # bind
    ("POST", f"{PODS}/a/binding", make_binding("n1"), ""),
    ("POST", f"{PODS}/gated/binding", make_binding("n1", name="gated"), ""),
    ("POST", f"{PODS}/a/binding", make_binding("n1", name="a", uid="0a0a0a0a-0000-4000-8000-000000000000"), ""),
    ("POST", f"{PODS}/a/binding", make_binding("n1", name="b"), ""),
    ("POST", f"{PODS}/a/binding", make_binding("n1", name="a"), ""),
    ("POST", f"{PODS}/a/binding", make_binding("n2", name="a"), ""),
    ("POST", f"{PODS}/none/binding", make_binding("n2", name="none"), ""),
    ("GET", f"{PODS}/a", None, ""),
    # lists
    ("GET", f"{PODS}?fieldSelector=spec.nodeName%3Dn1", None, ""),
    ("GET", f"{PODS}?fieldSelector=status.phase!%3DPending", None, ""),
    ("GET", f"{PODS}?fieldSelector=spec.colour%3Dred", None, ""),
    ("GET", f"{PODS}?labelSelector=app+in+(a,b)", None, ""),
    ("GET", f"{PODS}?resourceVersionMatch=Exact", None, ""),
    ("GET", f"{PODS}?resourceVersion=0&resourceVersionMatch=Exact", None, ""),
    # budgets and eviction
    ("POST", BUDGETS, {"metadata": {"name": "p"}, "spec": {"selector": {"matchLabels": {"app": "a"}}}}, ""),
    ("PATCH", f"{PODS}/a/status", {"status": {"phase": "Running"}}, STRATEGIC_PATCH),
    ("POST", f"{PODS}/a/eviction", {"metadata": {"name": "a"}}, ""),
    (
        "PATCH",
        f"{BUDGETS}/p/status",
        {"status": dict.fromkeys(HEALTH_FIELDS, 1)},
        MERGE_PATCH,
    ),
    ("POST", f"{PODS}/a/eviction", {"metadata": {"name": "a"}}, ""),
    ("PATCH", f"{BUDGETS}/p/status", {"status": {"disruptionsAllowed": 1}}, MERGE_PATCH),
    ("POST", f"{PODS}/a/eviction", {"metadata": {"name": "a"}}, ""),
    ("GET", f"{PODS}/a", None, ""),
    # delete
    ("POST", f"{PODS}/a/binding", make_binding("n2", name="a"), ""),
    ("DELETE", f"{PODS}/b", {"preconditions": {"uid": "0a0a0a0a-0000-4000-8000-000000000000"}}, ""),
    ("DELETE", f"{PODS}/b", None, ""),
    ("DELETE", f"{PODS}/b", None, ""),
    ("DELETE", f"{PODS}/a?gracePeriodSeconds=5", None, ""),
    ("DELETE", f"{PODS}/a?gracePeriodSeconds=10", None, ""),
    ("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 0}, ""),
    ("DELETE", f"{BUDGETS}/p", None, ""),
    # leases and events
    ("PUT", f"{LEASES}/l", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}, ""),
    ("PUT", f"{LEASES}/l", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "you"}}, ""),
    ("PUT", f"{LEASES}/l", {"metadata": {"name": "l", "resourceVersion": "1"}, "spec": {}}, ""),
    ("PUT", f"{LEASES}/l", {"metadata": {"name": "other"}, "spec": {}}, ""),
    ("DELETE", f"{LEASES}/l", None, ""),
    (
        "POST",
        EVENTS,
        {
            "metadata": {"name": "e", "namespace": "talk"},
            "eventTime": "2026-01-02T03:04:05.000006Z",
            "reportingController": "default-scheduler",
            "reportingInstance": "default-scheduler-1",
            "action": "Binding",
            "reason": "Scheduled",
            "type": "Normal",
            "note": "hello",
            "regarding": {"kind": "Pod", "namespace": "talk", "name": "a"},
        },
        "",
    ),
    ("GET", f"{NAMESPACE_PATH}/events/e", None, ""),
    # volumes
    ("POST", f"{STORAGE}/storageclasses", {"metadata": {"name": "fast"}, "provisioner": "example.com/p"}, ""),
    ("POST", f"{STORAGE}/csidrivers", {"metadata": {"name": "p.example.com"}, "spec": {}}, ""),
    ("POST", f"{STORAGE}/csinodes", {"metadata": {"name": "n1"}, "spec": {"drivers": []}}, ""),
    (
        "POST",
        "/api/v1/persistentvolumes",
        {
            "metadata": {"name": "v"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "fast",
                "csi": {"driver": "p.example.com", "volumeHandle": "h"},
            },
        },
        "",
    ),
    ("PATCH", "/api/v1/persistentvolumes/v", {"spec": {"claimRef": {"name": "d", "namespace": "talk"}}}, MERGE_PATCH),
    (
        "POST",
        f"{NAMESPACE_PATH}/persistentvolumeclaims",
        {
            "metadata": {"name": "d"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "fast",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
        "",
    ),
    (
        "PATCH",
        f"{NAMESPACE_PATH}/persistentvolumeclaims/d",
        {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n1"}}},
        STRATEGIC_PATCH,
    ),
    # devices
    ("POST", "/apis/resource.k8s.io/v1/deviceclasses", {"metadata": {"name": "gpu"}, "spec": {}}, ""),
    (
        "POST",
        CLAIMS,
        {
            "metadata": {"name": "one"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
        },
        "",
    ),
    (
        "PATCH",
        f"{CLAIMS}/one/status",
        {
            "status": {
                "allocation": {
                    "devices": {"results": [{"request": "r", "driver": "d.example.com", "pool": "p", "device": "0"}]}
                },
                "reservedFor": [{"resource": "pods", "name": "a", "uid": "u"}],
            }
        },
        STRATEGIC_PATCH,
    ),
    (
        "PATCH",
        f"{CLAIMS}/one/status",
        {"status": {"reservedFor": [{"resource": "pods", "name": "b", "uid": "w"}]}},
        STRATEGIC_PATCH,
    ),
    (
        "PATCH",
        f"{CLAIMS}/one/status",
        {"status": {"reservedFor": [{"$patch": "delete", "uid": "u"}]}},
        STRATEGIC_PATCH,
    ),
    # workloads and nodes
    (
        "POST",
        "/apis/apps/v1/namespaces/talk/replicasets",
        {
            "metadata": {"name": "r"},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"app": "r"}},
                "template": {"metadata": {"labels": {"app": "r"}}, "spec": make_pod("x")["spec"]},
            },
        },
        "",
    ),
    ("PATCH", "/api/v1/nodes/n1", {"spec": {"unschedulable": True, "taints": [TAINT]}}, MERGE_PATCH),
    (
        "PATCH",
        "/api/v1/nodes/n1/status",
        {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
        STRATEGIC_PATCH,
    ),
    ("GET", "/api/v1/nodes?fieldSelector=spec.unschedulable%3Dtrue", None, ""),
    # unknown resources and objects
    ("GET", "/api/v1/unicorns", None, ""),
    ("GET", f"{PODS}/a", None, ""),
    ("PUT", PODS, {}, ""),
]
