"""Every event is passed on, and told under upstream's label."""

from typing import Any

from extender.feed.timing import Timed
from extender.framework.changes import Action, Change, Resource
from tests.build import a_node, a_pod


class Heard:
    """Writes down what it hears."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **more: self.calls.append(name)


def test_events_are_passed_on_and_told_by_label() -> None:
    """Source: H020."""
    heard = Heard()
    labels: list[str] = []
    timed = Timed(heard, lambda event, seconds: labels.append(event) if seconds >= 0 else None)  # type: ignore[arg-type]
    pod = a_pod()
    timed.pod_waits(pod)
    timed.pod_changed(pod, pod, [])
    timed.pod_left(pod)
    timed.assumed_pod_left(pod)
    timed.happened(Change(Resource.NODE, Action.ADD, None, a_node()), priority=3)
    assert heard.calls == ["pod_waits", "pod_changed", "pod_left", "assumed_pod_left", "happened"]
    assert labels == [
        "UnschedulablePodAdd", "UnschedulablePodUpdate", "UnschedulablePodDelete", "AssignedPodDelete", "NodeAdd",
    ]  # fmt: skip
