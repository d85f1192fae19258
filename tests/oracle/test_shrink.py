"""Shrinking a scenario: what is left, what is never removed, and the limit of checks."""

from typing import Any

from tests.oracle.shrink import shrink


def make_scenario() -> dict[str, Any]:
    pods = [
        {
            "kind": "Pod",
            "metadata": {"name": f"pod-{number}", "labels": {"app": "a", "tier": "b"}},
            "spec": {
                "containers": [
                    {"name": "c0", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
                    {"name": "c1", "resources": {"requests": {"cpu": "2"}}},
                ],
                "tolerations": [{"key": "one", "operator": "Exists"}, {"key": "two", "operator": "Exists"}],
                "schedulerName": "default-scheduler",
            },
        }
        for number in range(9)
    ]
    return {"metadata": {"name": "s"}, "items": pods, "config": {"profiles": [{"schedulerName": "x"}]}}


def find_pod(scenario: dict[str, Any], name: str) -> dict[str, Any] | None:
    return next((item for item in scenario["items"] if item["metadata"]["name"] == name), None)


def test_only_what_the_difference_needs_is_left() -> None:
    def needs_one_toleration(scenario: dict[str, Any]) -> bool:
        pod = find_pod(scenario, "pod-6")
        return pod is not None and {"key": "two", "operator": "Exists"} in pod["spec"].get("tolerations", [])

    assert shrink(make_scenario(), needs_one_toleration) == {
        "metadata": {"name": "s"},
        "items": [
            {
                "kind": "Pod",
                "metadata": {"name": "pod-6"},
                "spec": {
                    "containers": [{"name": "c1"}],
                    "tolerations": [{"key": "two", "operator": "Exists"}],
                    "schedulerName": "default-scheduler",
                },
            }
        ],
    }


def test_two_objects_that_only_matter_together_are_left() -> None:
    def needs_both(scenario: dict[str, Any]) -> bool:
        return find_pod(scenario, "pod-1") is not None and find_pod(scenario, "pod-8") is not None

    left = shrink(make_scenario(), needs_both)["items"]
    assert [item["metadata"]["name"] for item in left] == ["pod-1", "pod-8"]


def test_the_original_is_not_changed() -> None:
    scenario = make_scenario()
    shrink(scenario, lambda smaller: bool(smaller["items"]))
    assert scenario == make_scenario()


def test_nothing_is_checked_beyond_the_limit() -> None:
    calls = []

    def record(scenario: dict[str, Any]) -> bool:
        calls.append(len(scenario["items"]))
        return False

    assert shrink(make_scenario(), record, most_checks=5) == make_scenario()
    assert len(calls) == 5
