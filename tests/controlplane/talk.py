"""What is said to the sandbox and to the real API server alike: method, path, body, and the media type of a patch."""

from typing import Any

Object = dict[str, Any]

SPACE = "/api/v1/namespaces/talk"
PODS = f"{SPACE}/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/talk/leases"
BUDGETS = "/apis/policy/v1/namespaces/talk/poddisruptionbudgets"
EVENTS = "/apis/events.k8s.io/v1/namespaces/talk/events"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
TAINT = {"key": "a", "effect": "NoSchedule"}
HEALTH = ("observedGeneration", "currentHealthy", "desiredHealthy")
STORAGE = "/apis/storage.k8s.io/v1"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/talk/resourceclaims"
OPERATIONS = "application/json-patch+json"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"


def a_pod(name: str, **spec: Any) -> Object:
    container = {"name": "c", "image": "app:1", "resources": {"limits": {"cpu": "1"}}, "ports": [{"containerPort": 80}]}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def bind_to(node: str, **meta: str) -> Object:
    return {"metadata": meta, "target": {"kind": "Node", "name": node}}


TALK: list[tuple[str, str, Any, str]] = [
    ("POST", "/api/v1/namespaces", {"metadata": {"name": "talk"}}, ""),
    ("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}, "status": {"capacity": {"cpu": "4", "memory": "8Gi"}}}, ""),
    ("POST", CLASSES, {"metadata": {"name": "high"}, "value": 10, "preemptionPolicy": "Never"}, ""),
    # creating
    ("POST", PODS, a_pod("a"), ""),
    ("POST", PODS, a_pod("a"), ""),
    ("POST", PODS, a_pod("b", priorityClassName="high", hostNetwork=True), ""),
    ("POST", PODS, a_pod("c", priorityClassName="unknown"), ""),
    ("POST", PODS, a_pod("c", priority=5), ""),
    ("POST", PODS, a_pod("Bad_Name"), ""),
    ("POST", PODS, {"metadata": {}, "spec": a_pod("x")["spec"]}, ""),
    ("POST", PODS, {**a_pod("c"), "metadata": {"name": "c", "namespace": "other"}}, ""),
    ("POST", PODS, {**a_pod("c"), "metadata": {"name": "c", "resourceVersion": "1"}}, ""),
    ("POST", "/api/v1/namespaces/nowhere/pods", a_pod("c"), ""),
    ("POST", PODS, a_pod("gated", schedulingGates=[{"name": "example.com/wait"}]), ""),
    # changing
    ("PATCH", f"{PODS}/a", {"metadata": {"labels": {"app": "a"}}}, MERGE),
    ("PATCH", f"{PODS}/a", {"spec": {"nodeSelector": {"a": "b"}}}, MERGE),
    ("PATCH", f"{PODS}/a", {"metadata": {"uid": "0a0a0a0a-0000-4000-8000-000000000000"}}, STRATEGIC),
    ("PATCH", f"{PODS}/a", {"metadata": {"resourceVersion": "1"}}, STRATEGIC),
    ("PATCH", f"{PODS}/a/status", {"status": {"conditions": [{"type": "Y", "status": "True"}]}}, STRATEGIC),
    ("PATCH", f"{PODS}/a", {"metadata": {"finalizers": ["b.example.com/b", "a.example.com/a"]}}, STRATEGIC),
    ("PATCH", f"{PODS}/a", {"metadata": {"finalizers": ["c.example.com/c"]}}, STRATEGIC),
    ("PATCH", f"{PODS}/a", {"metadata": {"finalizers": None}}, STRATEGIC),
    ("PATCH", f"{PODS}/gated", {"spec": {"schedulingGates": [{"name": "example.com/more"}]}}, STRATEGIC),
    (
        "PATCH",
        f"{PODS}/a/status",
        {"status": {"nominatedNodeName": "n1", "conditions": [{"type": "PodScheduled", "status": "False"}]}},
        STRATEGIC,
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
        STRATEGIC,
    ),
    ("PATCH", f"{PODS}/none", {}, MERGE),
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
        OPERATIONS,
    ),
    ("PATCH", f"{PODS}/a", [{"op": "remove", "path": "/metadata/labels/c"}], OPERATIONS),
    ("PATCH", f"{PODS}/a", [{"op": "remove", "path": "/metadata/labels/c"}], OPERATIONS),
    ("PATCH", f"{PODS}/a", [{"op": "test", "path": "/metadata/labels/app", "value": "b"}], OPERATIONS),
    ("PATCH", f"{PODS}/a", [{"op": "replace", "path": "/metadata/labels/none", "value": "b"}], OPERATIONS),
    ("PATCH", f"{PODS}/a", [{"op": "add", "path": "/spec/none/none", "value": "b"}], OPERATIONS),
    ("PATCH", f"{PODS}/a", [{"op": "add", "path": "/spec/tolerations/9", "value": "b"}], OPERATIONS),
    ("PATCH", f"{PODS}/a", [{"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}], OPERATIONS),
    ("PATCH", f"{PODS}/a", [{"op": "replace", "path": "/spec/nodeSelector", "value": {"a": "b"}}], OPERATIONS),
    ("PATCH", f"{PODS}/a", [{"op": "unknown", "path": "/spec"}], OPERATIONS),
    ("PATCH", f"{PODS}/a", {"metadata": {}}, OPERATIONS),
    ("PATCH", f"{PODS}/none", [], OPERATIONS),
    ("PATCH", f"{PODS}/a", {}, "application/x-unknown"),
    # binding
    ("POST", f"{PODS}/a/binding", bind_to("n1"), ""),
    ("POST", f"{PODS}/gated/binding", bind_to("n1", name="gated"), ""),
    ("POST", f"{PODS}/a/binding", bind_to("n1", name="a", uid="0a0a0a0a-0000-4000-8000-000000000000"), ""),
    ("POST", f"{PODS}/a/binding", bind_to("n1", name="b"), ""),
    ("POST", f"{PODS}/a/binding", bind_to("n1", name="a"), ""),
    ("POST", f"{PODS}/a/binding", bind_to("n2", name="a"), ""),
    ("POST", f"{PODS}/none/binding", bind_to("n2", name="none"), ""),
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
    ("PATCH", f"{PODS}/a/status", {"status": {"phase": "Running"}}, STRATEGIC),
    ("POST", f"{PODS}/a/eviction", {"metadata": {"name": "a"}}, ""),
    (
        "PATCH",
        f"{BUDGETS}/p/status",
        {"status": dict.fromkeys(HEALTH, 1)},
        MERGE,
    ),
    ("POST", f"{PODS}/a/eviction", {"metadata": {"name": "a"}}, ""),
    ("PATCH", f"{BUDGETS}/p/status", {"status": {"disruptionsAllowed": 1}}, MERGE),
    ("POST", f"{PODS}/a/eviction", {"metadata": {"name": "a"}}, ""),
    ("GET", f"{PODS}/a", None, ""),
    # deleting
    ("POST", f"{PODS}/a/binding", bind_to("n2", name="a"), ""),
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
    ("GET", f"{SPACE}/events/e", None, ""),
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
    ("PATCH", "/api/v1/persistentvolumes/v", {"spec": {"claimRef": {"name": "d", "namespace": "talk"}}}, MERGE),
    (
        "POST",
        f"{SPACE}/persistentvolumeclaims",
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
        f"{SPACE}/persistentvolumeclaims/d",
        {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n1"}}},
        STRATEGIC,
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
        STRATEGIC,
    ),
    (
        "PATCH",
        f"{CLAIMS}/one/status",
        {"status": {"reservedFor": [{"resource": "pods", "name": "b", "uid": "w"}]}},
        STRATEGIC,
    ),
    (
        "PATCH",
        f"{CLAIMS}/one/status",
        {"status": {"reservedFor": [{"$patch": "delete", "uid": "u"}]}},
        STRATEGIC,
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
                "template": {"metadata": {"labels": {"app": "r"}}, "spec": a_pod("x")["spec"]},
            },
        },
        "",
    ),
    ("PATCH", "/api/v1/nodes/n1", {"spec": {"unschedulable": True, "taints": [TAINT]}}, MERGE),
    ("PATCH", "/api/v1/nodes/n1/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, STRATEGIC),
    ("GET", "/api/v1/nodes?fieldSelector=spec.unschedulable%3Dtrue", None, ""),
    # what is not there
    ("GET", "/api/v1/unicorns", None, ""),
    ("GET", f"{PODS}/a", None, ""),
    ("PUT", PODS, {}, ""),
]
