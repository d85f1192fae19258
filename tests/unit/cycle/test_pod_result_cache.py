"""Which results of PreFilter and PreScore are cached by pod signature, and which are recomputed."""

from dataclasses import replace
from typing import Any, cast

import pytest

from extender.cache.snapshot import Snapshot
from extender.cycle.diagnosis import find_nodes_that_pass_filters
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.score import Ranking, prioritize_nodes
from extender.framework.extension_points import PreFilterResult, PreScoreResult
from extender.framework.result_cache import ResultCache
from extender.framework.status import Code, Status
from tests.build import make_cluster, make_node, make_pod
from tests.unit.cycle.fakes import FakePreFilter, FakeScore, make_profile


class CacheablePreFilter(FakePreFilter):
    """A PreFilter that counts its calls and returns whether its result is cacheable."""

    cacheable_for_spec_class = False

    def __init__(self, result: PreFilterResult, is_cacheable: Any = True) -> None:
        super().__init__("Keeping", result)
        self.is_cacheable, self.calls = is_cacheable, 0
        self.states: list[Any] = []

    def pre_filter_is_cacheable(self, _pod: Any) -> bool:
        if isinstance(self.is_cacheable, Exception):
            raise self.is_cacheable
        return bool(self.is_cacheable)

    def pre_filter(self, pod: Any, snapshot: Any) -> PreFilterResult:
        self.calls += 1
        return super().pre_filter(pod, snapshot)

    def filter(self, pod: Any, nodes: Any, state: Any) -> Any:
        self.states.append(state)
        return super().filter(pod, nodes, state)


class CacheablePreScore(FakeScore):
    """A PreScore that counts its calls and is cacheable."""

    calls = 0

    def pre_score_is_cacheable(self, _pod: Any) -> bool:
        return True

    def pre_score(self, pod: Any, nodes: Any) -> PreScoreResult:
        self.calls += 1
        return super().pre_score(pod, nodes)


@pytest.fixture
def snapshot() -> Snapshot:
    return make_cluster(make_node("a"), make_node("b")).snapshot()


def run_for(pods: list[Any], plugin: Any, snapshot: Snapshot, runtime: PluginRuntime | None = None) -> None:
    runtime, profile = runtime or PluginRuntime(), make_profile(plugin)
    for pod in pods:
        find_nodes_that_pass_filters(snapshot.make_pod_info(pod), snapshot, profile, runtime)


def make_equal_pods(count: int) -> list[Any]:
    return [make_pod(f"pod-{number}") for number in range(count)]


def test_a_cacheable_plugin_runs_for_three_pods_of_a_signature_only(snapshot: Snapshot) -> None:
    plugin = CacheablePreFilter(PreFilterResult(state="what it noted"))

    run_for(make_equal_pods(5), plugin, snapshot)

    assert plugin.calls == 3
    assert plugin.states == ["what it noted"] * 5


def test_a_cacheable_plugin_runs_for_a_pod_of_another_signature(snapshot: Snapshot) -> None:
    plugin = CacheablePreFilter(PreFilterResult())

    run_for([*make_equal_pods(4), make_pod("other", labels={"app": "other"})], plugin, snapshot)

    assert plugin.calls == 4


def test_the_only_pod_of_a_signature_is_not_cached(snapshot: Snapshot) -> None:
    plugin = CacheablePreFilter(PreFilterResult())

    run_for(make_equal_pods(1) * 5, plugin, snapshot)

    assert plugin.calls == 5


def test_a_result_cacheable_by_spec_class_ignores_labels_and_requests(snapshot: Snapshot) -> None:
    plugin = CacheablePreFilter(PreFilterResult(state="what it noted"))
    plugin.cacheable_for_spec_class = True

    run_for(
        [make_pod(f"pod-{n}", labels={"app": str(n)}, requests={"cpu": str(n)}) for n in range(1, 6)], plugin, snapshot
    )

    assert plugin.calls == 2
    assert plugin.states == ["what it noted"] * 5


def test_a_result_cacheable_by_spec_class_is_recomputed_for_another_selector(snapshot: Snapshot) -> None:
    plugin = CacheablePreFilter(PreFilterResult())
    plugin.cacheable_for_spec_class = True
    other = make_pod("other", spec={"nodeSelector": {"zone": "a"}})

    run_for([make_pod(f"pod-{number}", labels={"app": str(number)}) for number in range(4)] + [other], plugin, snapshot)

    assert plugin.calls == 3


def test_a_temporary_profile_uses_the_cache_and_adds_nothing_to_it(snapshot: Snapshot) -> None:
    """The recheck before a binding makes such profiles."""
    plugin, runtime = CacheablePreFilter(PreFilterResult()), PluginRuntime()
    run_for(make_equal_pods(3), plugin, snapshot, runtime)
    pod_info = snapshot.make_pod_info(make_pod("fourth"))
    memo_size = len(pod_info.signature._memo)

    for _ in range(100):
        find_nodes_that_pass_filters(
            pod_info, snapshot, replace(make_profile(plugin), pre_filter_plugins=(cast("Any", plugin),)), runtime
        )

    assert (plugin.calls, len(pod_info.signature._memo)) == (3, memo_size)


def test_a_cached_skip_skips_the_filter_too(snapshot: Snapshot) -> None:
    plugin = CacheablePreFilter(PreFilterResult(skip=True))

    run_for(make_equal_pods(4), plugin, snapshot)

    assert (plugin.calls, plugin.filter_calls) == (3, 0)


def test_pairs_of_equal_pods_are_not_cached(snapshot: Snapshot) -> None:
    plugin = CacheablePreFilter(PreFilterResult(), ValueError("asked whether it may be kept"))
    twos = [make_pod(f"{kind}-{number}", labels={"app": kind}) for kind in "abc" for number in range(2)]

    run_for(twos, plugin, snapshot)

    assert plugin.calls == 6


def test_a_run_that_ends_early_has_no_state_of_later_plugins(snapshot: Snapshot) -> None:
    strict, later = (
        FakePreFilter("Strict", PreFilterResult(state="strict")),
        CacheablePreFilter(PreFilterResult(state="later", skip=True)),
    )
    runtime, profile = PluginRuntime(), make_profile(strict, later)
    for pod in make_equal_pods(4):
        find_nodes_that_pass_filters(snapshot.make_pod_info(pod), snapshot, profile, runtime)
    strict.result = PreFilterResult(Status(Code.UNRESOLVABLE, ("no",)), state="refused")

    pre_filter_run = find_nodes_that_pass_filters(
        snapshot.make_pod_info(make_pod("last")), snapshot, profile, runtime
    ).pre_filter_run

    assert later.calls == 3
    assert (pre_filter_run.cycle_state, pre_filter_run.skipped_plugins) == ({"Strict": "refused"}, frozenset())


@pytest.mark.parametrize(
    ("result", "is_cacheable"),
    [
        pytest.param(PreFilterResult(), False, id="the plugin does not let it"),
        pytest.param(PreFilterResult(node_names=frozenset(["a"])), True, id="it narrows the nodes down"),
        pytest.param(PreFilterResult(Status(Code.UNSCHEDULABLE, ("no",))), True, id="it turns the pod away"),
        pytest.param(PreFilterResult(Status(Code.UNRESOLVABLE, ("no",))), True, id="it turns the pod away for good"),
    ],
)
def test_other_results_are_not_cached(result: PreFilterResult, is_cacheable: bool, snapshot: Snapshot) -> None:
    plugin = CacheablePreFilter(result, is_cacheable)

    run_for(make_equal_pods(4), plugin, snapshot)

    assert plugin.calls == 4


def test_a_disabled_cache_caches_nothing(snapshot: Snapshot) -> None:
    plugin = CacheablePreFilter(PreFilterResult())

    run_for(make_equal_pods(4), plugin, snapshot, PluginRuntime(result_cache=ResultCache(enabled=False)))

    assert plugin.calls == 4


def test_an_exception_in_the_cacheable_method_names_the_plugin(snapshot: Snapshot) -> None:
    profile, runtime = make_profile(CacheablePreFilter(PreFilterResult(), ValueError("no idea"))), PluginRuntime()

    first, second, *others = [
        find_nodes_that_pass_filters(snapshot.make_pod_info(pod), snapshot, profile, runtime)
        for pod in make_equal_pods(4)
    ]

    assert first.has_feasible_node
    assert second.has_feasible_node
    assert [each.format_message() for each in others] == [
        'running PreFilter plugin "Keeping": pre_filter_is_cacheable: ValueError: no idea'
    ] * 2


@pytest.mark.parametrize(
    ("result", "scored"),
    [(PreScoreResult(), {"Rates": [1, 2]}), (PreScoreResult(skip=True), {})],
    ids=["scores", "skips"],
)
def test_results_of_pre_score_are_cached_as_well(
    result: PreScoreResult, scored: dict[str, list[int]], snapshot: Snapshot
) -> None:
    plugin, runtime = CacheablePreScore("Rates", {"a": 1, "b": 2}, result), PluginRuntime()
    profile = make_profile(plugin)

    def ranked(pod: Any) -> Ranking:
        pod_info = snapshot.make_pod_info(pod)
        found = find_nodes_that_pass_filters(pod_info, snapshot, profile, runtime)
        return prioritize_nodes(pod_info, snapshot, profile, runtime, found.feasible, found.pre_filter_run)

    rankings = [ranked(pod) for pod in make_equal_pods(4)]

    assert plugin.calls == 3
    assert [{name: each.raw.tolist() for name, each in one.scores_by_plugin.items()} for one in rankings] == [
        scored
    ] * 4
