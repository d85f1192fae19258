"""Pod selectors match namespaces by name or by label, and pods by label.

Source: kube-scheduler/framework/types.go, AffinityTerm.Matches (1.36).
"""

from collections.abc import Mapping

import pytest

from extender.api.matching import EVERYTHING, NOTHING, Requirement, Selector, selector_from_labels
from extender.cache.tables.pod_selectors import PodMatcher, PodSelector
from extender.cache.tables.symbols import Symbols

WEB, TEAM = selector_from_labels({"app": "web"}), selector_from_labels({"team": "x"})


@pytest.mark.parametrize(
    ("namespace_selector", "namespace", "namespace_labels", "is_match"),
    [
        pytest.param(NOTHING, "shop", None, True, id="a namespace by name"),
        pytest.param(NOTHING, "other", {}, False, id="another namespace"),
        pytest.param(TEAM, "other", {"team": "x"}, True, id="a namespace by label"),
        pytest.param(TEAM, "other", {"team": "y"}, False, id="a namespace with another label"),
        pytest.param(TEAM, "other", None, False, id="an unknown namespace"),
        pytest.param(EVERYTHING, "other", None, True, id="an unknown namespace for the empty selector"),
    ],
)
def test_a_selector_matches_pods_of(
    namespace_selector: Selector, namespace: str, namespace_labels: Mapping[str, str] | None, is_match: bool
) -> None:
    selector = PodSelector(frozenset({"shop"}), namespace_selector, WEB)
    assert selector.matches(namespace, {"app": "web"}, namespace_labels) is is_match
    assert not selector.matches(namespace, {"app": "db"}, namespace_labels)


def test_a_namespace_selector_that_matches_empty_labels_matches_all_namespaces_for_the_incoming_pod() -> None:
    without_team = PodSelector(frozenset(), Selector((Requirement("team", "DoesNotExist"),)), WEB)
    assert without_team.for_incoming_pod() == PodSelector(frozenset(), EVERYTHING, WEB)
    with_team = PodSelector(frozenset(), TEAM, WEB)
    assert with_team.for_incoming_pod() is with_team


def test_a_matcher_needs_all_its_selectors() -> None:
    matcher = PodMatcher((PodSelector(frozenset({"shop"}), NOTHING, WEB), PodSelector(frozenset(), TEAM, EVERYTHING)))
    assert matcher.matches("shop", {"app": "web"}, {"team": "x"})
    assert not matcher.matches("shop", {"app": "web"}, {"team": "y"})
    assert not matcher.matches("shop", {"app": "db"}, {"team": "x"})


def test_equal_matchers_are_one_key() -> None:
    selectors = (PodSelector(frozenset({"shop"}), NOTHING, WEB),)
    counts = {PodMatcher(selectors): 1}
    assert counts[PodMatcher((PodSelector(frozenset({"shop"}), NOTHING, WEB),))] == 1
    assert PodMatcher(selectors, ignore_terminating_pods=True) not in counts
    assert not PodMatcher(selectors).reads_namespace_labels
    assert PodMatcher((PodSelector(frozenset(), TEAM, WEB),)).reads_namespace_labels


def test_a_matcher_selects_labels_of_pods() -> None:
    symbols = Symbols()
    shop, other, unknown = (
        symbols.intern_pod_labels(namespace, {"app": app})
        for namespace, app in (("shop", "web"), ("other", "web"), ("unknown", "web"))
    )
    pods = [shop, other, unknown, symbols.intern_pod_labels("shop", {"app": "db"})]
    namespaces = {"shop": {}, "other": {"team": "x"}}
    assert PodMatcher((PodSelector(frozenset({"shop"}), TEAM, WEB),)).select(pods, namespaces) == [shop, other]
    assert PodMatcher((PodSelector(frozenset(), EVERYTHING, WEB),)).select(pods, namespaces) == [shop, other, unknown]
    assert PodMatcher((PodSelector(frozenset({"shop"}), NOTHING, NOTHING),)).select(pods, namespaces) == []
    both = PodSelector(frozenset({"shop"}), NOTHING, EVERYTHING), PodSelector(frozenset(), EVERYTHING, WEB)
    assert PodMatcher(both).select(pods, namespaces) == [shop]
