"""Filter waits for changes that kube-scheduler has seen earlier, if its own filters disagree."""

import asyncio
from collections.abc import Callable

import pytest

from extender.api.extender_v1 import FilterResult
from extender.app import wiring
from extender.cache.cache import Cache
from extender.cycle.plugin_runtime import PluginRuntime
from extender.extender_api.late_changes import LateChanges
from extender.extender_api.node_names import NodeNames
from extender.extender_api.payloads import ExtenderArgs
from extender.extender_api.verbs import Verbs
from extender.framework.profiles import Profile
from extender.framework.status import Reason
from tests.build import make_cluster, make_node, make_pod
from tests.coroutines import run_now
from tests.fake_plugins import RejectingFilter, make_profile

FULL = make_pod("full", requests={"cpu": "1"}, node="n1")
ARGS = ExtenderArgs(make_pod("web", requests={"cpu": "1"}), names=NodeNames(["n1"]))


def make_verbs(cache: Cache, profile: Profile | None = None, late_change_seconds: float = 60.0) -> Verbs:
    profile = profile or wiring.build_setup().first_profile
    return Verbs(cache, {}, profile, PluginRuntime(), PluginRuntime(), late_change_seconds=late_change_seconds)


def make_full_cluster() -> Cache:
    return make_cluster(make_node("n1", allocatable={"cpu": "1", "memory": "9Gi", "pods": "9"}), FULL)


async def filter_while(verbs: Verbs, change: Callable[[], None]) -> FilterResult:
    """Return the result of a request during which *change* is called."""
    task = asyncio.create_task(verbs.filter(ARGS))
    await asyncio.sleep(0)
    assert not task.done()
    change()
    return await task


async def filter_at_once(verbs: Verbs, args: ExtenderArgs) -> FilterResult:
    """Return the result of a request that does not wait."""
    task = asyncio.create_task(verbs.filter(args))
    for _ in range(10):
        await asyncio.sleep(0)
    assert task.done()
    return task.result()


def test_a_deletion_that_arrives_after_the_request_makes_room() -> None:
    cache = make_full_cluster()
    verbs = make_verbs(cache)
    result = run_now(filter_while(verbs, lambda: cache.remove_pod(FULL.metadata.uid)))
    assert (result.node_names, result.failed_nodes) == (["n1"], {})


def test_a_node_that_arrives_after_the_request_is_known() -> None:
    cache = make_cluster()
    verbs = make_verbs(cache)
    result = run_now(filter_while(verbs, lambda: cache.add_or_update_node(make_node("n1"))))
    assert (result.node_names, result.failed_nodes) == (["n1"], {})


@pytest.mark.parametrize("seconds", [0.0, 0.001])
def test_without_a_change_in_time_the_node_is_rejected_once(seconds: float) -> None:
    verbs = make_verbs(make_full_cluster(), late_change_seconds=seconds)
    result = run_now(verbs.filter(ARGS))
    assert (result.node_names, result.failed_nodes) == ([], {"n1": "Insufficient cpu"})
    assert [decision["verb"] for decision in verbs.decision_log.get_decisions(ARGS.pod.key)] == ["filter"]


def test_a_rejection_by_a_plugin_of_the_user_is_final_at_once() -> None:
    """kube-scheduler has no such filter, so its cache and ours need not differ."""
    profile = make_profile(RejectingFilter({Reason("policy"): ["n1"]}))
    result = run_now(filter_at_once(make_verbs(make_cluster(make_node("n1")), profile), ARGS))
    assert (result.node_names, result.failed_nodes) == ([], {"n1": "policy"})


def test_a_pod_that_fits_one_node_is_answered_at_once() -> None:
    cache = make_full_cluster()
    cache.add_or_update_node(make_node("n2"))
    args = ExtenderArgs(ARGS.pod, names=NodeNames(["n1", "n2"]))
    result = run_now(filter_at_once(make_verbs(cache), args))
    assert (result.node_names, result.failed_nodes) == (["n2"], {"n1": "Insufficient cpu"})


def test_a_wait_ends_with_the_first_change() -> None:
    cache = make_full_cluster()
    late_changes = LateChanges(cache, 60.0)

    async def wait() -> None:
        task = asyncio.create_task(late_changes.wait())
        await asyncio.sleep(0)
        cache.add_or_update_node(make_node("n2"))
        await task

    run_now(wait())
    assert not late_changes.is_over
