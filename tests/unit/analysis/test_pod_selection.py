"""Pods selected by name, workload, namespace and labels."""

from typing import Any

import pytest

from extender.analysis.pod_selection import (
    PodFinder,
    PodSelection,
    WorkloadName,
    join_resource_type,
    parse_workload_name,
    strip_pod_alias,
)
from extender.api.codec import from_builtins
from extender.api.kinds.pod import Pod
from extender.api.kinds.workload import ReplicaSet
from extender.api.label_selectors import parse_label_selector


def make_pod(key: str, owner: str = "", node: str = "", **labels: str) -> Pod:
    namespace, _, name = key.partition("/")
    kind, _, owner_name = owner.partition("/")
    owners = [{"apiVersion": "apps/v1", "kind": kind, "name": owner_name, "controller": True}] if owner else []
    meta = {"name": name, "namespace": namespace, "labels": labels, "ownerReferences": owners}
    return from_builtins({"metadata": meta, "spec": {"nodeName": node}}, Pod)


def make_member(key: str, group: str) -> Pod:
    namespace, _, name = key.partition("/")
    spec = {"schedulingGroup": {"podGroupName": group}}
    return from_builtins({"metadata": {"name": name, "namespace": namespace}, "spec": spec}, Pod)


def make_replica_set(name: str, deployment: str) -> ReplicaSet:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment, "controller": True}
    values: dict[str, Any] = {"metadata": {"name": name, "namespace": "shop", "ownerReferences": [owner]}}
    return from_builtins(values, ReplicaSet)


TYPES = "pod, deployment, replicaset, statefulset, daemonset, job, cronjob, replicationcontroller, podgroup"

FINDER = PodFinder(
    [
        make_pod("shop/web-7f-a", "ReplicaSet/web-7f"),
        make_pod("shop/web-7f-b", "ReplicaSet/web-7f", node="n1"),
        make_pod("shop/db-0", "StatefulSet/db", node="n1"),
        make_pod("shop/db-1", "StatefulSet/db", node="n2"),
        make_pod("batch/nightly-29401620-a", "Job/nightly-29401620"),
        make_pod("default/one"),
        make_pod("a/two"),
        make_pod("b/two"),
        make_pod("deployment/web"),
        make_member("ml/worker-0", "train"),
        make_member("ml/worker-1", "train"),
        make_pod("ml/rank-0", **{"scheduling.x-k8s.io/pod-group": "mpi"}),
    ],
    [make_replica_set("web-7f", "web")],
    {"deployment/shop/new": ("shop/web-7f-a",), "cronjob/shop/off": ()},
)


def find(text: str, namespace: str = "") -> list[str]:
    pods, message = FINDER.find(text, namespace)
    return [message] if message else [pod.key for pod in pods]


@pytest.mark.parametrize(
    ("text", "namespace", "found"),
    [
        ("one", "", ["default/one"]),
        ("pod/one", "", ["default/one"]),
        ("po/shop/db-0", "", ["shop/db-0"]),
        ("shop/db-0", "", ["shop/db-0"]),
        ("db-0", "", ["shop/db-0"]),
        ("db-0", "shop", ["shop/db-0"]),
        ("two", "a", ["a/two"]),
        ("two", "", ["several pods have this name; want one of a/two, b/two"]),
        ("one", "shop", ['there is no such pod in namespace "shop"; did you mean default/one?']),
        ("db-2", "shop", ['there is no such pod in namespace "shop"; did you mean shop/db-0, shop/db-1?']),
        ("nobody", "shop", ['there is no such pod in namespace "shop"']),
        ("pod/nobody", "shop", ['there is no such pod in namespace "shop"']),
        ("db.yaml", "shop", ['there is no such pod in namespace "shop"; write -f before each file']),
        ("db", "", ["there is no such pod; did you mean statefulset/db?"]),
        ("shop/new", "", ["there is no such pod; did you mean deployment/shop/new?"]),
        ("statefullset/db", "shop", ["there is no such pod; did you mean statefulset/db?"]),
        ("secret/n1", "", [f'there is no such pod; no pod is in namespace "secret", and the types are {TYPES}']),
        ("node/n1", "", ["there is no such pod; --node n1 shows why a pod fits or does not fit there"]),
        ("Node/n1", "", ["there is no such pod; --node n1 shows why a pod fits or does not fit there"]),
        ("ns/shop", "shop", ["there is no such pod; -n shop selects all pending pods of a namespace"]),
        (
            "statefullset/other",
            "shop",
            [f'there is no such pod; no pod is in namespace "statefullset", and the types are {TYPES}'],
        ),
        ("podgroup/train", "ml", ["ml/worker-0", "ml/worker-1"]),
        ("podgroups.scheduling.k8s.io/train", "", ["ml/worker-0", "ml/worker-1"]),
        ("PodGroup/ml/mpi", "", ["ml/rank-0"]),
        ("podgroup/train", "shop", ["this podgroup has no pods; did you mean podgroup/train?"]),
        ("ml/train", "", ["there is no such pod; did you mean podgroup/ml/train?"]),
        ("podgroup/train-a", "other", ["this podgroup has no pods; did you mean podgroup/train?"]),
        ("deploy/web", "shop", ["shop/web-7f-a"]),
        ("deployments/shop/web", "", ["shop/web-7f-a"]),
        ("Deployment/shop/web", "", ["shop/web-7f-a"]),
        ("rs/web-7f", "", ["shop/web-7f-a"]),
        ("sts/db", "shop", ["shop/db-0", "shop/db-1"]),
        ("deployment/shop/new", "", ["shop/web-7f-a"]),
        ("deployment/new", "", ["shop/web-7f-a"]),
        ("deployment/web", "", ["deployment/web"]),
        ("sts/dbb", "shop", ["this statefulset has no pods; did you mean statefulset/db?"]),
        ("cronjob/nightly", "batch", ["batch/nightly-29401620-a"]),
        ("cj/nightli", "batch", ["this cronjob has no pods; did you mean cronjob/nightly?"]),
        (
            "cronjob/off",
            "shop",
            ["this cronjob makes no pods: it has finished, is suspended, or its number of pods is 0"],
        ),
        ("job/pi", "shop", ["there is no such job, nor a pod of it; -f reads a recording together with manifests"]),
    ],
)
def test_pods_are_found_by_the_names_that_kubectl_accepts(text: str, namespace: str, found: list[str]) -> None:
    assert find(text, namespace) == found


def test_the_pods_of_a_workload_are_its_pending_pods_or_else_all_of_them() -> None:
    assert find("deployment/shop/web") == ["shop/web-7f-a"]  # web-7f-b has a node
    assert find("sts/shop/db") == ["shop/db-0", "shop/db-1"]


def test_workload_names_have_aliases_and_a_namespace() -> None:
    assert parse_workload_name("sts/db", "shop") == WorkloadName("StatefulSet", "shop", "db")
    assert parse_workload_name("ds/kube-system/agent", "shop") == WorkloadName("DaemonSet", "kube-system", "agent")


def test_workload_names_are_also_those_that_kubectl_prints_with_the_output_name() -> None:
    assert parse_workload_name("deployment.apps/web", "shop") == WorkloadName("Deployment", "shop", "web")
    assert parse_workload_name("statefulsets.apps/db", "shop") == WorkloadName("StatefulSet", "shop", "db")
    assert parse_workload_name("job.batch/a", "shop") == WorkloadName("Job", "shop", "a")
    assert parse_workload_name("cj/a", "shop") == WorkloadName("CronJob", "shop", "a")
    assert parse_workload_name("cronjobs.batch/a", "shop") == WorkloadName("CronJob", "shop", "a")
    assert parse_workload_name("replicationcontroller/a", "b") == WorkloadName("ReplicationController", "b", "a")
    assert parse_workload_name("deployment.batch/web", "shop") is None


def test_other_names_are_those_of_pods() -> None:
    assert parse_workload_name("shop/web", "") is None
    assert parse_workload_name("apps/web", "shop") is None
    assert parse_workload_name("deployment/", "") is None
    assert strip_pod_alias("pods/web") == "web"
    assert strip_pod_alias("shop/web") == "shop/web"


@pytest.mark.parametrize(
    ("names", "joined"),
    [
        ((), ()),
        (("pod",), ("pod",)),
        (("pods",), ()),
        (("po",), ()),
        (("pod", "web"), ("pod/web",)),
        (("deploy", "web", "shop/db"), ("deploy/web", "deploy/shop/db")),
        (("web", "pod"), ("web", "pod")),
        (("podgroup", "train"), ("podgroup/train",)),
        (("node", "n1"), ("node/n1",)),
        (("ns", "shop"), ("ns/shop",)),
    ],
)
def test_a_type_before_the_names_is_that_of_each_name(names: tuple[str, ...], joined: tuple[str, ...]) -> None:
    assert join_resource_type(names) == joined


def test_a_selection_matches_namespace_and_labels() -> None:
    pod = make_pod("shop/web", app="web")
    assert PodSelection().matches(pod)
    assert PodSelection(namespace="shop", labels=parse_label_selector("app=web")).matches(pod)
    assert not PodSelection(namespace="other").matches(pod)
    assert not PodSelection(labels=parse_label_selector("app!=web")).matches(pod)
