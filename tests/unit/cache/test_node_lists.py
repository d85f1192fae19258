"""Lists of a snapshot that do not change while members of a pod group are assumed.

Source: pkg/scheduler/backend/cache/snapshot.go, Snapshot.AssumePod (1.36).
"""

from typing import Any

from extender.api.kinds.pod import Pod
from extender.cache.hypothesis import Hypothesis
from extender.cache.snapshot import Snapshot
from tests.build import make_cluster, make_node, make_pod

ANTI_AFFINITY: dict[str, Any] = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}
        ]
    }
}
CLAIM = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]


def make_member(name: str, node: str = "") -> Pod:
    return make_pod(name, node=node, spec={"affinity": ANTI_AFFINITY, "volumes": CLAIM})


def assume_on_both_nodes(*, frozen: bool) -> Snapshot:
    """Assume a member on n1, which has a pod with the same term, and one on n2, which has none."""
    cluster = make_cluster(make_node("n1"), make_node("n2"), make_member("running", "n1"))
    hypothesis = Hypothesis(cluster.snapshot())
    if frozen:
        hypothesis.freeze_node_lists()
    for name, node in (("a", "n1"), ("b", "n2")):
        hypothesis.assume_pod(hypothesis.snapshot().make_pod_info(make_member(name)), node)
    return hypothesis.snapshot()


def count_terms(snapshot: Snapshot) -> list[int]:
    incoming = snapshot.make_pod_info(make_pod("incoming")).signature.pod_labels
    return [counts.total for _, counts in snapshot.listed_affinity_terms_matching(incoming)]


def test_a_frozen_list_has_assumed_pods_only_on_nodes_that_were_in_it() -> None:
    assert count_terms(assume_on_both_nodes(frozen=True)) == [2]
    assert count_terms(assume_on_both_nodes(frozen=False)) == [3]


def test_a_frozen_list_of_claims_has_no_assumed_pod() -> None:
    cluster = make_cluster(make_node("n1"))
    hypothesis = Hypothesis(cluster.snapshot())
    hypothesis.freeze_node_lists()
    hypothesis.assume_pod(hypothesis.snapshot().make_pod_info(make_member("a")), "n1")
    assert not hypothesis.snapshot().is_pvc_used_by_pods("default/data")
    assert Hypothesis(hypothesis.snapshot()).snapshot().is_pvc_used_by_pods("default/data") is False
