"""Tests of what the demo remembers of a play, and how it shows it."""

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from extender.demo.chronicle import Chronicle, Fact, Use
from extender.demo.screen import Screen, line, summary
from extender.sandbox.api import Api
from extender.sandbox.placing import bind
from extender.sandbox.served import PODS
from tests.unit.sandbox.calls import HandClock, a_binding, a_node, a_pod

REFUSED = "0/1 nodes are available: 1 Insufficient cpu"


class Play:
    """A chronicle of an API, and what it told."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.api = Api(clock=self.clock)
        self.told: list[str] = []
        self.chronicle = Chronicle(self.api.store, self.clock, self._hear)
        self.screen = Screen(self.chronicle, "a play", ("a way in",))
        self.chronicle.begin()

    def _hear(self, fact: Fact) -> None:
        self.screen.hear(fact)
        self.told.append(f"{fact.at:.1f} {fact.what.value} {fact.who} {fact.text}".rstrip())

    def refuse(self, name: str, message: str = f"{REFUSED}. preemption: 0/1 nodes are available: none.") -> None:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        status = {"status": {"conditions": [condition]}}
        self.api.patch(PODS, "default", name, status, strategic=True, part="status")

    def drawn(self, what: Any, *, width: int = 120, height: int = 30) -> str:
        out = StringIO()
        Console(file=out, width=width, height=height).print(what)
        return out.getvalue()


@pytest.fixture
def play() -> Play:
    return Play()


def test_a_pod_that_is_placed_at_once_is_told_with_its_milliseconds(play: Play) -> None:
    play.api.add(a_pod())
    play.clock.seconds += 0.25
    bind(play.api, "default", "web", a_binding("n1"))
    assert play.told == ["0.0 arrived default/web", "0.2 placed default/web on n1 in 250 ms"]
    assert (play.chronicle.took, play.chronicle.waiting) == ([0.25], {})


def test_a_pod_that_waits_is_told_once_with_the_first_sentence_of_its_reason(play: Play) -> None:
    play.api.add(a_pod())
    play.refuse("web")
    play.refuse("web", f"{REFUSED}. preemption: other words.")
    assert play.chronicle.waiting == {"default/web": REFUSED}
    play.clock.seconds += 3
    bind(play.api, "default", "web", a_binding("n1"))
    assert play.told[1:] == [f"0.0 waits default/web {REFUSED}", "3.0 placed default/web on n1 after 3.0 s"]
    assert (play.chronicle.took, play.chronicle.waiting) == ([], {})


def test_a_gated_pod_waits_for_its_gate(play: Play) -> None:
    play.api.add(a_pod(schedulingGates=[{"name": "example.com/quota"}]))
    assert play.chronicle.waiting == {"default/web": "Scheduling is blocked due to non-empty scheduling gates"}


def test_a_waiting_pod_that_is_deleted_waits_no_more(play: Play) -> None:
    play.api.add(a_pod())
    play.api.delete(PODS, "default", "web")
    assert (play.told[-1], play.chronicle.waiting) == ("0.0 ended default/web is gone", {})


def test_a_preemption_is_told_once_by_the_scheduler_s_own_event(play: Play) -> None:
    victim, urgent = play.api.add(a_pod("victim")), play.api.add(a_pod("urgent"))

    def about(pod: dict[str, Any]) -> dict[str, Any]:
        meta = pod["metadata"]
        return {"kind": "Pod", "name": meta["name"], "namespace": "default", "uid": meta["uid"]}

    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "Preempted"}
    made = play.api.add({**event, "involvedObject": about(victim), "related": about(urgent)})
    play.api.store.put("events", {**made, "count": 2})
    assert play.told[2:] == ["0.0 preempted default/victim makes room for default/urgent"]
    assert play.chronicle.preempted == ["default/victim makes room for default/urgent"]


def test_nodes_are_as_full_as_the_pods_on_them_that_still_run(play: Play) -> None:
    play.api.add(a_node())
    for name, phase in (("a", "Running"), ("b", "Succeeded")):
        pod = a_pod(name, nodeName="n1")
        pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "500m", "memory": "1Gi"}}
        play.api.add(pod)
        play.api.patch(PODS, "default", name, {"status": {"phase": phase}}, strategic=True, part="status")
    assert play.chronicle.uses() == [Use("n1", "", (500, 4000), (2**30, 2**33), 1)]
    assert "default/b has finished on n1" in play.told[-1]


def test_the_screen_fits_a_small_terminal_and_shows_who_waits(play: Play) -> None:
    for number in range(30):
        play.api.add(a_node(f"n{number}"))
        play.api.add(a_pod(f"web-{number}"))
    play.refuse("web-7")
    shown = play.drawn(play.screen, width=80, height=24).splitlines()
    assert len(shown) <= 24
    assert all(len(each) <= 80 for each in shown)
    assert "30 arrived   0 placed   30 waiting   0 preempted" in shown[1]
    assert any(each.strip("│ ").startswith("24 less full") for each in shown)
    assert any("a way in" in each for each in shown)


def test_the_summary_names_every_waiting_pod_with_its_reason(play: Play) -> None:
    play.api.add(a_pod())
    play.refuse("web")
    shown = [each.split() for each in play.drawn(summary(play.chronicle)).splitlines() if each.strip()]
    assert shown[1:] == [["arrived", "1"], ["placed", "0"], ["preempted", "0"], ["waiting", "1"],
                         ["default/web", *REFUSED.split()]]  # fmt: skip


def test_a_line_needs_no_colours() -> None:
    play = Play()
    play.chronicle.say("Two pods arrive")
    assert play.drawn(line(play.screen.recent[0])) == "  0.0s  story      Two pods arrive\n"
