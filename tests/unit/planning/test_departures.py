"""Which pods leave a node, and which come back."""

from typing import Any

import pytest

from extender.answers.planning import MovedPodResult
from extender.api.kinds.devices import ResourceClaim
from extender.app import wiring
from extender.planning.cache_edits import CacheEdits
from extender.planning.departures import Departure, classify_departure, make_replacement, release_claims
from extender.planning.scenario import Scenario
from extender.planning.what_if import WhatIfRunner
from tests.unit.planning.clusters import SETUP, ZONE, decode_pod, make_cache, node, pod

MIRROR = {"kubernetes.io/config.mirror": "x"}
CASES = {
    "a pod of a ReplicaSet is replaced": (pod("a", on="n1"), Departure.REPLACED),
    "a pod without a controller is lost": (pod("a", on="n1", owner=""), Departure.LOST),
    "a DaemonSet's pod belongs to the node": (pod("a", on="n1", owner="DaemonSet"), Departure.DAEMON_OR_MIRROR),
    "a mirror pod belongs to the node": (pod("a", on="n1", owner="", annotations=MIRROR), Departure.DAEMON_OR_MIRROR),
    "a pod that a node owns is a mirror pod": (pod("a", on="n1", owner="Node"), Departure.DAEMON_OR_MIRROR),
}


@pytest.mark.parametrize(("body", "departure"), CASES.values(), ids=CASES.keys())
def test_the_rules_of_kubectl_drain(body: dict[str, object], departure: Departure) -> None:
    assert classify_departure(decode_pod(body)) is departure


def test_a_terminating_pod_has_its_replacement_already() -> None:
    body = pod("a", on="n1")
    body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert classify_departure(decode_pod(body)) is Departure.TERMINATING


def test_a_replacement_is_pending_and_has_its_own_uid() -> None:
    status = {"phase": "Running", "nominatedNodeName": "n9", "startTime": "2026-01-01T00:00:00Z"}
    old_pod = decode_pod(pod("a", on="n1", labels={"app": "x"}, status=status))
    new_pod = make_replacement(old_pod)
    assert (new_pod.key, new_pod.metadata.uid, new_pod.metadata.labels) == (
        "default/a",
        "replacement-of/uid-a",
        {"app": "x"},
    )
    assert (new_pod.spec.node_name, new_pod.status.phase, new_pod.status.nominated_node_name) == ("", "Pending", "")
    assert new_pod.metadata.controller == old_pod.metadata.controller


NODE_A = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}


def make_ephemeral_volume_cluster() -> list[dict[str, Any]]:
    """A pod with an ephemeral volume that is bound to a volume of zone a, and nodes in both zones."""
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "local"}}}}
    owner = [{"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "uid-web", "controller": True}]
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "web-scratch",
            "namespace": "default",
            "uid": "c",
            "ownerReferences": owner,
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {"storageClassName": "local", "volumeName": "pv", "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Bound"},
    }
    persistent_volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {
            "storageClassName": "local",
            "claimRef": {"namespace": "default", "name": "web-scratch", "uid": "c"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [NODE_A]}},
        },
    }
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        "provisioner": "csi.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    nodes = [node("a1", zone="a"), node("b1", zone="b")]
    return [*nodes, pod("web", on="a1", volumes=[volume]), claim, persistent_volume, storage_class]


def test_a_pod_with_an_ephemeral_volume_gets_a_new_claim_and_may_leave_the_zone() -> None:
    runner = WhatIfRunner(make_cache(*make_ephemeral_volume_cluster()), SETUP.profiles, wiring.make_runtime())
    for _ in range(2):  # the old claim is restored after the scenario
        outcome = runner.run(Scenario(drain=("a1",)))
        assert [waiting.message for waiting in outcome.waiting] == []
        assert outcome.moved == [MovedPodResult("default/web", "a1", "b1")]


def make_claim(name: str, consumers: list[str], owner: str = "") -> dict[str, Any]:
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner, "controller": True}] if owner else []
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "ownerReferences": owners},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
        "status": {
            "allocation": {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "x"}]}},
            "reservedFor": [{"resource": "pods", "name": uid, "uid": uid} for uid in consumers],
        },
    }


def test_device_claims_are_released_by_the_last_pod_and_renewed_for_a_template() -> None:
    status = {"phase": "Running", "resourceClaimStatuses": [{"name": "own", "resourceClaimName": "own-x"}]}
    claims = [
        {"name": "own", "resourceClaimTemplateName": "t"},
        {"name": "shared", "resourceClaimName": "shared"},
        {"name": "last", "resourceClaimName": "last"},
    ]
    cache = make_cache(
        node("n1"),
        pod("web", on="n1", status=status, resourceClaims=claims),
        make_claim("own-x", ["uid-web"], "uid-web"),
        make_claim("shared", ["uid-web", "uid-other"]),
        make_claim("last", ["uid-web"]),
        make_claim("foreign", ["uid-other"]),
    )

    def describe() -> dict[str, tuple[bool, list[str], list[str]]]:
        return {
            claim.metadata.name: (
                claim.status.allocation is not None,
                [consumer.uid for consumer in claim.status.reserved_for],
                [owner.uid for owner in claim.metadata.owner_references],
            )
            for claim in cache.snapshot().objects(ResourceClaim).values()
        }

    before, edits = describe(), CacheEdits(cache)
    release_claims(cache.assigned_pods["uid-web"].pod, "new", cache, edits)
    assert describe() == {
        "own-x": (False, [], ["new"]),
        "shared": (True, ["uid-other"], []),
        "last": (False, [], []),
        "foreign": (True, ["uid-other"], []),
    }
    edits.undo()
    assert describe() == before
