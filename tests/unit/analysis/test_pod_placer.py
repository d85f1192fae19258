"""Placing pods one after another, and taking them off again."""

from typing import Any

from extender.analysis.pod_placer import FailedAttempts, PodPlacer
from extender.app import wiring
from extender.cycle.decision import ScheduleFailure
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.binding_points import PermitResult, UnreserveResult
from extender.framework.extension_points import PostFilterResult
from extender.framework.status import Code, Reason, Rejection, Status, unschedulable_status
from tests.build import make_cluster, make_node, make_pod
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


class Gang:
    """Lets all pods wait on Permit, and rejects all of them when one leaves its node or fits no node."""

    name = "Gang"

    def __init__(self) -> None:
        self.uids: list[str] = []

    def filter(self, pod: Any, nodes: Any, _state: Any) -> tuple[Rejection, ...]:
        is_large = pod.pod.metadata.name == "large"
        return (Rejection(nodes.pod_count >= 0, Reason("too small")),) if is_large else ()

    def post_filter(self, *_: Any) -> PostFilterResult:
        return PostFilterResult(unschedulable_status(), uids_to_reject=dict.fromkeys(self.uids, "gave up"))

    def permit(self, pod: Any, *_: Any) -> PermitResult:
        self.uids.append(pod.uid)
        return PermitResult(Status(Code.WAIT, ("for the others",)), 60.0)

    def reserve(self, *_: Any) -> None:
        """Return success."""

    def unreserve(self, *_: Any) -> UnreserveResult:
        return UnreserveResult(uids_to_reject=dict.fromkeys(self.uids, "one left"))


def test_a_waiting_pod_that_is_unassigned_neither_times_out_nor_is_rejected() -> None:
    cache = make_cluster(make_node("n"))
    placer = PodPlacer(cache, {"default-scheduler": make_profile(Gang())}, PluginRuntime())
    a, b = make_pod("a"), make_pod("b")
    assert (placer.place(a).node, placer.place(b).node) == ("n", "n")
    assert placer.unassign(a.metadata.uid) == a
    (rejected,) = placer.time_out_permits().values()
    assert (rejected.pod, rejected.message) == (b, "0/1 nodes are available: 1 one left.")
    assert dict(cache.assigned_pods) == {}


def test_a_failure_that_rejects_waiting_pods_is_not_stored() -> None:
    """An alike pod runs PostFilter too, and rejects the pods that wait then."""
    cache = make_cluster(make_node("n"))
    placer = PodPlacer(cache, {"default-scheduler": make_profile(Gang())}, PluginRuntime())
    placer.place(make_pod("a"))
    placer.place(make_pod("large", metadata={"uid": "first"}))
    assert dict(cache.assigned_pods) == {}
    placer.place(make_pod("b"))
    placer.place(make_pod("large", metadata={"uid": "second"}))
    assert dict(cache.assigned_pods) == {}
    messages = {key: attempt.message for key, attempt in placer.time_out_permits().items()}
    assert messages == dict.fromkeys(("default/a", "default/b"), "0/1 nodes are available: 1 gave up.")
