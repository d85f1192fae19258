"""Storing failed attempts until the cluster changes."""

from extender.analysis.failed_attempts import FailedAttempts
from extender.analysis.pod_placer import PodPlacer
from extender.app import wiring
from extender.cycle.decision import ScheduleFailure
from tests.unit.planning.clusters import SETUP, decode_pod, make_cache, node, pod


def test_alike_pods_share_the_failure_until_the_cluster_changes() -> None:
    cache = make_cache(node("n1", "1"))
    placer = PodPlacer(cache, SETUP.profiles, wiring.make_runtime())
    first, second = placer.place(decode_pod(pod("a", "2"))), placer.place(decode_pod(pod("b", "2")))
    assert first.failure is second.failure is not None
    assert (first.pod.key, second.pod.key) == ("default/a", "default/b")
    cache.remove_node("n1")
    assert placer.place(decode_pod(pod("c", "2"))).message == "no nodes available to schedule pods"


def test_a_pod_that_differs_has_its_own_failure() -> None:
    placer = PodPlacer(make_cache(node("n1", "1")), SETUP.profiles, wiring.make_runtime())
    assert placer.place(decode_pod(pod("a", "2"))).failure is not placer.place(decode_pod(pod("b", "3"))).failure


def test_a_failure_with_a_preemption_plan_is_not_stored() -> None:
    cache = make_cache(node("n1", "2"), pod("low", "2", "n1"))
    preemptor = decode_pod(pod("high", "2", priority=5))
    failure = PodPlacer(cache, SETUP.profiles, wiring.make_runtime()).find_node(preemptor)
    assert isinstance(failure, ScheduleFailure)
    failed_attempts = FailedAttempts(cache, SETUP.profiles)
    key = failed_attempts.make_key(preemptor)
    assert key is not None
    assert not failed_attempts.add(key, failure)
    assert failed_attempts.find(key) is None


def test_a_pod_with_objects_of_its_own_is_not_stored() -> None:
    cache = make_cache(node("n1"))
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    assert FailedAttempts(cache, SETUP.profiles).make_key(decode_pod(pod("a", resourceClaims=claims))) is None
