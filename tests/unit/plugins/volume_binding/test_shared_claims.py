"""VolumeBinding of two pods that share a claim: each writes what the API server does not have yet.

The expected writes are those of kube-scheduler 1.36.3 and 1.37.2. It updates the objects of each pod.
"""

from typing import Any

from extender.cache.pod_info import PodInfo
from extender.framework.status import SUCCESS, error_status
from tests.unit.plugins.volume_binding.test_bind_claims import (
    BIND_COMPLETED,
    SELECTED_NODE,
    VolumeBindingTestEnv,
    make_claim,
    make_volume,
)


def reserve_for_two_pods(env: VolumeBindingTestEnv) -> tuple[PodInfo, Any]:
    """Reserve the claim for one pod and then for another one; return the second pod and its state."""
    first, second = env.make_pod_info("first", "data"), env.make_pod_info("second", "data")
    env.reserve(first)
    state = env.reserve(second)
    env.cache.assume(second.pod, "node")
    return second, state


def test_a_claim_that_another_pod_has_only_assumed_is_written() -> None:
    env = VolumeBindingTestEnv(make_claim("data", "dynamic"))
    second, state = reserve_for_two_pods(env)

    plan = env.plan(second, state)

    (call,) = plan.calls
    assert (call.kind, call.name) == ("PersistentVolumeClaim", "data")
    assert call.body == {"metadata": {"resourceVersion": "1", "annotations": SELECTED_NODE}}
    assert env.check_wait(plan) is None
    env.add_objects(
        make_claim("data", "dynamic", version="2", annotations={**SELECTED_NODE, **BIND_COMPLETED}, volume="pv"),
        make_volume("pv"),
    )
    assert env.check_wait(plan) == SUCCESS


def test_a_volume_that_another_pod_has_only_assumed_is_written() -> None:
    env = VolumeBindingTestEnv(make_claim("data", "local"), make_volume("pv"))
    second, state = reserve_for_two_pods(env)

    plan = env.plan(second, state)

    (call,) = plan.calls
    assert (call.kind, call.name, call.body["spec"]["claimRef"]["uid"]) == ("PersistentVolume", "pv", "uid-data")
    assert call.body["metadata"] == {
        "resourceVersion": "1",
        "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"},
    }
    assert env.check_wait(plan) is None


def test_a_claim_that_changed_since_reserve_is_written_with_its_old_version() -> None:
    """The API server then rejects the write, and the pod is tried again."""
    env = VolumeBindingTestEnv(make_claim("data", "dynamic"))
    second, state = reserve_for_two_pods(env)
    env.add_objects(make_claim("data", "dynamic", version="2", annotations=SELECTED_NODE))

    plan = env.plan(second, state)

    assert [call.body["metadata"]["resourceVersion"] for call in plan.calls] == ["1"]
    env.add_objects(make_claim("data", "dynamic", version="3"))
    reset = 'binding volumes: selectedNode annotation reset for PVC "data"'
    assert env.check_wait(plan) == error_status(reset)
