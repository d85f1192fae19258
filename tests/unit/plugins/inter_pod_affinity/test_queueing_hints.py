"""Waiting pods of one namespace cost nothing when pods of another namespace change."""

from typing import Any

import pytest

from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.framework.events import ActionType, ClusterEvent, EventResource
from extender.queueing.entity_queues import QueueSettings
from extender.queueing.pod_group_queue import make_scheduling_queue
from tests.build import make_cluster, make_pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def make_term(**fields: Any) -> dict[str, Any]:
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}, **fields}


def make_waiting_pod(name: str, term: dict[str, Any], kind: str = "podAffinity", **labels: str) -> Pod:
    return make_pod(name, namespace="shop", labels=labels, spec={"affinity": {kind: {REQUIRED: [term]}}})


WAITING_PODS = (
    make_waiting_pod("own", make_term()),
    make_waiting_pod("equal", make_term()),
    make_waiting_pod("unique", make_term(), color="red"),
    make_waiting_pod("named", make_term(namespaces=["ml"])),
    make_waiting_pod("everywhere", make_term(namespaceSelector={})),
    make_waiting_pod("apart", make_term(namespaces=["ml"]), "podAntiAffinity"),
)


def count_hints(event: ClusterEvent) -> tuple[int, list[str]]:
    """Return the number of called hints, and the pods that *event* moves."""
    hints: list[str] = []
    queue = make_scheduling_queue(
        wiring.build_setup().profiles, lambda *_: None, QueueSettings(), on_hint=lambda plugin, *_: hints.append(plugin)
    )
    snapshot = make_cluster().snapshot()
    for waiting_pod in WAITING_PODS:
        queue.add(snapshot.make_pod_info(waiting_pod), 100)
        (pod,) = queue.pop().pods  # type: ignore[union-attr]
        pod.unschedulable_plugins = frozenset({"InterPodAffinity"})
        queue.add_unschedulable_if_not_present(pod, 100)
    queue.move_all_to_active_or_backoff_queue(event, 101)
    waiting = {entity.key for entity in queue._queues.unschedulable_entities}
    return len(hints), [pod.metadata.name for pod in WAITING_PODS if pod.key not in waiting]


def make_assigned_pod(namespace: str, **spec: Any) -> Pod:
    return make_pod("db", namespace=namespace, node="n1", labels={"app": "db"}, spec=spec)


WITH_TERM = make_assigned_pod("other", affinity={"podAntiAffinity": {REQUIRED: [make_term(namespaces=["shop"])]}})


@pytest.mark.parametrize(
    ("old", "new", "hint_count", "moved"),
    [
        pytest.param(None, make_assigned_pod("other"), 1, ["everywhere"], id="added in a third namespace"),
        pytest.param(None, make_assigned_pod("ml"), 3, ["named", "everywhere"], id="added in a named namespace"),
        pytest.param(make_assigned_pod("ml"), None, 3, ["apart"], id="deleted in a named namespace"),
        pytest.param(make_assigned_pod("other"), None, 1, [], id="deleted in a third namespace"),
        pytest.param(WITH_TERM, None, 5, [], id="deleted with an anti-affinity term of its own"),
        pytest.param(
            None, make_assigned_pod("shop"), 7, ["own", "equal", "unique", "everywhere"], id="added in their namespace"
        ),
    ],
)
def test_hints_are_called_for_pods_with_terms_that_may_select_there(
    old: Pod | None, new: Pod | None, hint_count: int, moved: list[str]
) -> None:
    action = ActionType.ADD if old is None else ActionType.DELETE
    assert count_hints(ClusterEvent(EventResource.ASSIGNED_POD, action, old, new)) == (hint_count, moved)
