"""Evictions whose deletions the watch shows later than their responses."""

import asyncio

import pytest

from extender.api.kinds.pod import Pod
from tests.build import make_node, make_pod
from tests.unit.scheduler.test_evictions import add_waiting_pod, make_harness


@pytest.mark.parametrize(("shown_in_wait", "wait_count"), [(3, 3), (10_000, 1000)], ids=["soon", "never"])
def test_a_preemptor_waits_ten_seconds_at_most_until_the_watch_shows_the_deletion_of_its_last_victim(
    monkeypatch: pytest.MonkeyPatch, shown_in_wait: int, wait_count: int
) -> None:
    """A node is added meanwhile. An attempt because of it would evict the victims again."""
    victims = [make_pod(name, node="n1", requests={"cpu": "1"}, priority=0) for name in ("first", "last")]
    harness, _ = make_harness(*victims)
    notify, deleted_pods, queues = harness.api.notify, list[Pod](), list[str]()

    def notify_of_updates(old: Pod, new: Pod | None) -> None:
        if new is not None:
            notify(old, new)
            return
        deleted_pods.append(old)
        harness.dispatcher.on_add(make_node(f"added-{len(deleted_pods)}"))

    async def wait(seconds: float) -> None:
        queues.append(harness.queue_of("high"))
        harness.clock.seconds += seconds
        if len(queues) == shown_in_wait:
            for pod in deleted_pods:
                notify(pod, None)
        await asyncio.sleep(0)

    monkeypatch.setattr(harness.api, "notify", notify_of_updates)
    monkeypatch.setattr(harness.context, "sleep", wait)
    harness.attempt()

    assert [pod.metadata.name for pod in deleted_pods] == ["first", "last"]
    assert set(queues) == {"gated"}
    assert len(queues) == pytest.approx(wait_count, abs=1)
    assert harness.queue_of("high") == ("backoff" if wait_count == 3 else "active")


def test_a_preemptor_waits_for_the_watch_also_if_its_last_victim_is_preempted_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise the preemptor would be activated while `mid`, which is deleted, is still in the cache."""
    harness, _ = make_harness(make_pod("mid", node="n1", requests={"cpu": "1"}, priority=5))
    add_waiting_pod(harness, "low", "1", 0)
    notify, deleted_pods, queues = harness.api.notify, list[Pod](), list[str]()

    def notify_of_updates(old: Pod, new: Pod | None) -> None:
        if new is None:
            deleted_pods.append(old)
            harness.dispatcher.on_add(make_node("n2"))
        else:
            notify(old, new)

    async def wait(seconds: float) -> None:
        queues.append(harness.queue_of("high"))
        harness.clock.seconds += seconds
        if len(queues) == 1:
            harness.cache.forget(make_pod("low"))
        elif len(queues) == 3:
            notify(deleted_pods[0], None)
        await asyncio.sleep(0)

    monkeypatch.setattr(harness.api, "notify", notify_of_updates)
    monkeypatch.setattr(harness.context, "sleep", wait)
    harness.attempt()

    assert [pod.metadata.name for pod in deleted_pods] == ["mid"]
    assert queues == ["gated"] * 3
    assert harness.queue_of("high") == "active"
