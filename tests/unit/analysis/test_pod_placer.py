"""Placing pods one after another, and taking them off again."""

from typing import Any

from extender.analysis.pod_placer import FailedAttempts, PodPlacer
from extender.app import wiring
from extender.cycle.decision import ScheduleFailure
from extender.framework.status import Code, Status
from tests.build import make_pod
from tests.unit.cycle.fakes import make_profile
from tests.unit.planning.clusters import SETUP, decode_pod, make_cache, node, pod


def test_a_placed_pod_uses_resources_that_the_next_pod_lacks() -> None:
    placer = PodPlacer(make_cache(node("n1", "3")), SETUP.profiles, wiring.make_runtime())
    first, second = placer.place(decode_pod(pod("a", "2"))), placer.place(decode_pod(pod("b", "2")))
    assert (first.node, first.reasons) == ("n1", ())
    assert (second.node, second.reasons) == ("", ("Insufficient cpu",))
    assert second.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_unassigned_pods_free_the_nodes() -> None:
    cache = make_cache(node("n1", "3"))
    placer = PodPlacer(cache, SETUP.profiles, wiring.make_runtime())
    placer.place(decode_pod(pod("a", "2")))
    assert cache.snapshot().view().requested(0).tolist() == [2000]
    placer.unassign_placed_pods()
    assert cache.snapshot().view().requested(0).tolist() == [0]
    assert placer.place(decode_pod(pod("b", "3"))).node == "n1"


def test_a_gated_pod_has_the_reason_of_pre_enqueue() -> None:
    placer = PodPlacer(make_cache(node("n1")), SETUP.profiles, wiring.make_runtime())
    attempt = placer.place(decode_pod(pod("a", schedulingGates=[{"name": "x"}])))
    assert attempt.reasons == ("not enqueued because of SchedulingGates: waiting for scheduling gates: [x]",)
    assert attempt.failure is None


def test_a_pod_above_a_limit_is_not_placed() -> None:
    placer = PodPlacer(make_cache(node("n1")), SETUP.profiles, wiring.make_runtime())
    attempt = placer.place(make_pod("large", labels={f"k{number}": "" for number in range(1_001)}))
    assert (attempt.node, attempt.message) == ("", "the pod is too large to schedule: metadata.labels: more than 1000")


def test_a_pod_that_reserve_rejects_frees_what_was_reserved_for_it() -> None:
    class OneDisk:
        """Has one disk, and rejects the pod `rejected` after it got the disk."""

        name = "OneDisk"

        def __init__(self) -> None:
            self.owner = ""

        def reserve(self, pod: Any, *_: Any) -> Status | None:
            if self.owner:
                return Status(Code.UNSCHEDULABLE, (f"{self.owner} has the disk",))
            self.owner = pod.pod.metadata.name
            return Status(Code.UNSCHEDULABLE, ("no permission",)) if self.owner == "rejected" else None

        def unreserve(self, *_: Any) -> None:
            self.owner = ""

    cache, profile = make_cache(node("n1")), make_profile(OneDisk())
    placer = PodPlacer(cache, {profile.scheduler_name: profile}, wiring.make_runtime())
    rejected, next_pod = placer.place(decode_pod(pod("rejected"))), placer.place(decode_pod(pod("next")))
    assert (rejected.node, rejected.message) == ("", "0/1 nodes are available: 1 no permission.")
    assert next_pod.node == "n1"
    assert list(cache.assigned_pods) == ["uid-next"]


def test_equal_seeds_give_equal_nodes() -> None:
    def place_ten(seed: int) -> list[str]:
        placer = PodPlacer(make_cache(*(node(f"n{i}") for i in range(30))), SETUP.profiles, wiring.make_runtime(), seed)
        return [placer.place(decode_pod(pod(f"p{i}"))).node for i in range(10)]

    assert place_ten(1) == place_ten(1)
    assert place_ten(1) != place_ten(2)


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
