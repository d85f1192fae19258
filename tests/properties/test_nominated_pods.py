"""Filtering with nominated pods equals filtering clusters in which these pods are on their nodes."""

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.cycle.diagnosis import find_nodes_that_pass_filters
from tests.build import make_pod
from tests.properties.test_preemption_dry_run import (
    KINDS,
    PROFILE,
    GeneratedCluster,
    cluster_cases,
    find_rejection_reasons,
    make_random_pod,
)

NOMINATIONS = st.lists(st.tuples(KINDS, st.integers(0, 3), st.sampled_from([10, 15, 25, 100, 200])), max_size=6)


@st.composite
def cases_with_nominations(draw: st.DrawFn) -> GeneratedCluster:
    case = draw(cluster_cases(terminating=False))
    nominated = []
    for number, (kind, node, priority) in enumerate(draw(NOMINATIONS)):
        pod = make_random_pod(f"next-{number}", "plain", *kind[1:3], False, priority=priority)
        nominated.append((pod, f"node-{node % len(case.nodes)}"))
    return replace(case, nominated=tuple(nominated))


def _place_nominated(case: GeneratedCluster, node: str) -> GeneratedCluster:
    """Return the cluster with the pods that are nominated for *node*, and count, on this node."""
    counted = [
        pod
        for pod, nominated_node in case.nominated
        if nominated_node == node and (pod.spec.priority or 0) >= (case.pod.spec.priority or 0)
    ]
    return replace(case, nominated=(), pods=(*case.pods, *(_assign(pod, node) for pod in counted)))


def _assign(pod: Pod, node: str) -> Pod:
    container = pod.spec.containers[0]
    return make_pod(
        pod.metadata.name,
        labels=dict(pod.metadata.labels),
        node=node,
        priority=pod.spec.priority,
        requests=dict(container.resources.requests),
    )


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(case=cases_with_nominations())
def test_filtering_with_nominated_pods_equals_clusters_with_these_pods(case: GeneratedCluster) -> None:
    snapshot = case.without().snapshot()
    pod_info = snapshot.make_pod_info(case.pod)
    found = find_nodes_that_pass_filters(pod_info, snapshot, PROFILE, wiring.make_runtime(), with_rejections=True)
    reasons = {
        name: [rejection.reason.text for rejection in found.rejections if rejection.nodes[row]]
        for row, name in enumerate(snapshot.names)
    }
    expected = {}
    for name in snapshot.names:
        with_nominated = find_rejection_reasons(_place_nominated(case, name), name, ())
        expected[name] = with_nominated or find_rejection_reasons(replace(case, nominated=()), name, ())
    assert reasons == expected
