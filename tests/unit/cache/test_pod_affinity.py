"""Inter-pod affinity is compiled into terms with selectors; a list with an error is empty."""

from typing import Any

import pytest

from extender.api.kinds.pod import Pod
from extender.api.matching import NOTHING
from extender.cache import pod_affinity
from extender.cache.pod_affinity import NO_TERMS, PodAffinityTerms, compile_pod_affinity_terms
from extender.config.feature_gates import FeatureGates
from extender.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from extender.framework.plugin_args import PluginArgs
from extender.plugins.inter_pod_affinity.plugin import InterPodAffinity, InterPodAffinityArgs
from tests.build import make_pod, make_pod_info

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
UNKNOWN_OPERATOR = {
    "topologyKey": ZONE,
    "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]},
}


def term(key: str = ZONE, **fields: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "web"}}, **fields}


def with_affinity(affinity: Any) -> Any:
    return compile_pod_affinity_terms(make_pod(namespace="shop", spec={"affinity": affinity}))


def test_a_pod_without_affinity_has_no_terms() -> None:
    assert compile_pod_affinity_terms(make_pod()) is NO_TERMS
    assert with_affinity({"nodeAffinity": {}}) is NO_TERMS


def test_terms_are_listed_by_kind_and_preferred_terms_have_a_weight() -> None:
    terms = with_affinity(
        {
            "podAffinity": {REQUIRED: [term(ZONE)], PREFERRED: [{"weight": 7, "podAffinityTerm": term(HOST)}]},
            "podAntiAffinity": {REQUIRED: [term(HOST), term(ZONE)]},
        }
    )
    assert [(compiled.topology_key, compiled.weight) for compiled in terms.required_affinity] == [(ZONE, 0)]
    assert [(compiled.topology_key, compiled.weight) for compiled in terms.required_anti_affinity] == [
        (HOST, 0),
        (ZONE, 0),
    ]
    assert [(compiled.topology_key, compiled.weight) for compiled in terms.preferred_affinity] == [(HOST, 7)]
    assert (terms.preferred_anti_affinity, len(terms.all_terms), terms.error) == ((), 4, None)


def test_a_term_without_namespaces_selects_pods_of_the_pod_s_own_namespace() -> None:
    (compiled,) = with_affinity({"podAffinity": {REQUIRED: [term()]}}).required_affinity
    assert compiled.pod_selector.namespaces == {"shop"}
    assert compiled.pod_selector.namespace_selector is NOTHING
    assert compiled.pod_selector.matches("shop", {"app": "web"}, {})
    assert not compiled.pod_selector.matches("other", {"app": "web"}, {})


def test_an_empty_namespace_selector_selects_pods_of_all_namespaces() -> None:
    (compiled,) = with_affinity({"podAffinity": {REQUIRED: [term(namespaceSelector={})]}}).required_affinity
    assert compiled.pod_selector.namespaces == frozenset()
    assert compiled.pod_selector.matches("other", {"app": "web"}, None)


def test_a_list_with_an_error_is_empty_and_the_others_are_valid() -> None:
    terms = with_affinity(
        {"podAffinity": {REQUIRED: [term(), UNKNOWN_OPERATOR]}, "podAntiAffinity": {REQUIRED: [term()]}}
    )
    assert (terms.required_affinity, len(terms.required_anti_affinity)) == ((), 1)
    assert terms.error.startswith("requiredAffinityTerms: ")


def test_errors_of_several_lists_are_joined() -> None:
    affinity = {"podAffinity": {REQUIRED: [UNKNOWN_OPERATOR]}, "podAntiAffinity": {REQUIRED: [UNKNOWN_OPERATOR]}}
    error = with_affinity(affinity).error
    assert error.startswith("[requiredAffinityTerms: ")
    assert ", requiredAntiAffinityTerms: " in error
    assert error.endswith("]")


def test_the_hints_of_all_waiting_pods_compile_the_terms_of_a_deleted_pod_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []

    def count_and_compile(pod: Pod) -> PodAffinityTerms:
        compiled.append(pod.metadata.name)
        return compile_pod_affinity_terms(pod)

    monkeypatch.setattr(pod_affinity, "compile_pod_affinity_terms", count_and_compile)
    plugin = InterPodAffinity(PluginArgs(InterPodAffinityArgs(), FeatureGates()))
    hint = plugin.events_to_register()[0].hint
    assert hint is not None
    spec = {"affinity": {"podAntiAffinity": {REQUIRED: [term()]}}}
    waiting = [make_pod_info(make_pod(f"w{number}", labels={"app": "web"}, spec=spec)) for number in range(3)]
    for name in ("first", "second"):
        event = ClusterEvent(EventResource.POD, ActionType.DELETE, old=make_pod(name, node="n", spec=spec))
        assert [hint(pod, event) for pod in waiting] == [QueueingHint.QUEUE] * 3
    assert compiled == ["first", "second"]
