"""The timeline of the demo, and its rendering."""

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from extender.demo.screen import Screen, format_entry, format_summary
from extender.demo.timeline import NodeUsage, Timeline, TimelineEntry
from extender.fake_apiserver.registry.api import Api
from extender.fake_apiserver.registry.pod_subresources import bind
from extender.fake_apiserver.registry.resources import PODS
from tests.unit.fake_apiserver.builders import ManualClock, make_binding, make_node, make_pod

UNSCHEDULABLE_MESSAGE = "0/1 nodes are available: 1 Insufficient cpu"


class DemoFixture:
    """A timeline of an API, and its formatted entries."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.api = Api(clock=self.clock)
        self.lines: list[str] = []
        self.timeline = Timeline(self.api.store, self.clock, self._on_entry)
        self.screen = Screen(self.timeline, "a title", ("a hint",))
        self.timeline.start()

    def _on_entry(self, entry: TimelineEntry) -> None:
        self.screen.add_entry(entry)
        self.lines.append(f"{entry.at_seconds:.1f} {entry.kind.value} {entry.subject} {entry.text}".rstrip())

    def mark_unschedulable(
        self, name: str, message: str = f"{UNSCHEDULABLE_MESSAGE}. preemption: 0/1 nodes are available: none."
    ) -> None:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        status = {"status": {"conditions": [condition]}}
        self.api.patch_strategically(PODS, "default", name, status, subresource="status")

    def render(self, renderable: Any, *, width: int = 120, height: int = 30) -> str:
        out = StringIO()
        Console(file=out, width=width, height=height).print(renderable)
        return out.getvalue()


@pytest.fixture
def demo() -> DemoFixture:
    return DemoFixture()


def test_a_pod_that_is_scheduled_at_once_has_an_entry_in_milliseconds(demo: DemoFixture) -> None:
    demo.api.create_from_manifest(make_pod())
    demo.clock.seconds += 0.25
    bind(demo.api, "default", "web", make_binding("n1"))
    assert demo.lines == ["0.0 arrived default/web", "0.2 placed default/web on n1 in 250 ms"]
    assert (demo.timeline.latencies, demo.timeline.pending_reasons) == ([0.25], {})


def test_a_pending_pod_has_one_entry_with_the_first_sentence_of_its_message(demo: DemoFixture) -> None:
    demo.api.create_from_manifest(make_pod())
    demo.mark_unschedulable("web")
    demo.mark_unschedulable("web", f"{UNSCHEDULABLE_MESSAGE}. preemption: other words.")
    assert demo.timeline.pending_reasons == {"default/web": UNSCHEDULABLE_MESSAGE}
    demo.clock.seconds += 3
    bind(demo.api, "default", "web", make_binding("n1"))
    assert demo.lines[1:] == [
        f"0.0 waits default/web {UNSCHEDULABLE_MESSAGE}",
        "3.0 placed default/web on n1 after 3.0 s",
    ]
    assert (demo.timeline.latencies, demo.timeline.pending_reasons) == ([], {})


def test_a_gated_pod_is_pending(demo: DemoFixture) -> None:
    demo.api.create_from_manifest(make_pod(schedulingGates=[{"name": "example.com/quota"}]))
    assert demo.timeline.pending_reasons == {"default/web": "Scheduling is blocked due to non-empty scheduling gates"}


def test_a_deleted_pod_is_no_longer_pending(demo: DemoFixture) -> None:
    demo.api.create_from_manifest(make_pod())
    demo.api.delete(PODS, "default", "web")
    assert (demo.lines[-1], demo.timeline.pending_reasons) == ("0.0 ended default/web is gone", {})


def test_the_scheduler_s_event_of_a_preemption_makes_one_entry(demo: DemoFixture) -> None:
    victim, urgent = (
        demo.api.create_from_manifest(make_pod("victim")),
        demo.api.create_from_manifest(make_pod("urgent")),
    )

    def make_reference(pod: dict[str, Any]) -> dict[str, Any]:
        meta = pod["metadata"]
        return {"kind": "Pod", "name": meta["name"], "namespace": "default", "uid": meta["uid"]}

    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "Preempted"}
    event_object = demo.api.create_from_manifest(
        {**event, "involvedObject": make_reference(victim), "related": make_reference(urgent)}
    )
    demo.api.store.put("events", {**event_object, "count": 2})
    assert demo.lines[2:] == ["0.0 preempted default/victim makes room for default/urgent"]
    assert demo.timeline.preemptions == ["default/victim makes room for default/urgent"]


def test_the_usage_of_a_node_counts_its_running_pods(demo: DemoFixture) -> None:
    demo.api.create_from_manifest(make_node())
    for name, phase in (("a", "Running"), ("b", "Succeeded")):
        pod = make_pod(name, nodeName="n1")
        pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "500m", "memory": "1Gi"}}
        demo.api.create_from_manifest(pod)
        demo.api.patch_strategically(PODS, "default", name, {"status": {"phase": phase}}, subresource="status")
    assert demo.timeline.list_node_usages() == [NodeUsage("n1", "", (500, 4000), (2**30, 2**33), 1)]
    assert "default/b has finished on n1" in demo.lines[-1]


def test_the_screen_fits_a_small_terminal_and_shows_pending_pods(demo: DemoFixture) -> None:
    for number in range(30):
        demo.api.create_from_manifest(make_node(f"n{number}"))
        demo.api.create_from_manifest(make_pod(f"web-{number}"))
    demo.mark_unschedulable("web-7")
    shown = demo.render(demo.screen, width=80, height=24).splitlines()
    assert len(shown) <= 24
    assert all(len(row) <= 80 for row in shown)
    assert "30 arrived   0 placed   30 waiting   0 preempted" in shown[1]
    assert any(row.strip("│ ").startswith("24 less full") for row in shown)
    assert any("a hint" in row for row in shown)


def test_a_terminal_of_80_columns_shows_pods_and_nodes_of_entries_instead_of_bars(demo: DemoFixture) -> None:
    demo.api.create_from_manifest(make_node("node-1"))
    demo.api.create_from_manifest(make_pod("web-12"))
    bind(demo.api, "default", "web-12", make_binding("node-1", "web-12"))
    narrow, wide = (demo.render(demo.screen, width=width) for width in (80, 120))
    assert "0.0s  placed     default/web-12 on node-1" in narrow
    assert ("░" in narrow, "░" in wide) == (False, True)


def test_the_summary_lists_pending_pods_with_their_reasons(demo: DemoFixture) -> None:
    demo.api.create_from_manifest(make_pod())
    demo.mark_unschedulable("web")
    shown = [row.split() for row in demo.render(format_summary(demo.timeline)).splitlines() if row.strip()]
    assert shown[1:] == [["arrived", "1"], ["placed", "0"], ["preempted", "0"], ["waiting", "1"],
                         ["default/web", *UNSCHEDULABLE_MESSAGE.split()]]  # fmt: skip


def test_an_entry_is_formatted_without_colours() -> None:
    demo = DemoFixture()
    demo.timeline.add_message("Two pods arrive")
    assert demo.render(format_entry(demo.screen.recent_entries[0])) == "  0.0s  message    Two pods arrive\n"
