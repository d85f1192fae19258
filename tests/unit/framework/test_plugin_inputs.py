"""A third-party plugin can read its inputs, and cannot modify the objects of the cache through them."""

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec
import numpy as np
import pytest

from extender.api.kinds.storage import StorageClass
from extender.app import wiring
from extender.cache.cache import Cache
from extender.cycle.diagnosis import find_nodes_that_pass_filters
from extender.cycle.post_filter import FailedAttempt
from extender.framework.extension_points import QueueSortEntry
from extender.framework.plugin_errors import SortKeyError
from extender.framework.plugin_inputs import METHOD_PARAMETERS, protect_inputs
from extender.plugin import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    filter_plugin,
    iter_node_infos,
)
from extender.plugins.node_name import NodeName
from extender.testing import Cluster, make_cluster, make_node, make_pod, run_plugin

Attack = Callable[..., Any]
REFUSALS = (TypeError, ValueError, AttributeError)

CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "fast"},
    "provisioner": "example.com/disk",
    "parameters": {"type": "ssd"},
}
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {"team": "a"}}}


def make_attacked_cluster() -> Cluster:
    return make_cluster(
        make_node("one", labels={"zone": "a"}),
        make_node("two", labels={"zone": "b"}),
        make_pod("old", node="one", labels={"app": "old"}, cpu="1"),
        make_pod("web", labels={"app": "web"}, spec={"nodeSelector": {"zone": "a"}}, cpu="1"),
        NAMESPACE,
        CLASS,
    )


def describe(cache: Cache) -> tuple[Any, ...]:
    """Return everything of the cluster that the attacks try to modify."""
    snapshot = cache.snapshot()
    view = snapshot.view()
    arrays = (view.allocatable(0), view.requested(0), view.pod_count, view.allowed_pods, view.unschedulable)
    return (
        msgspec.json.encode([*snapshot.nodes, *(pod.pod for pod in snapshot.assigned_pods())]),
        msgspec.json.encode(list(cache.pending_pods.values())),
        msgspec.json.encode(dict(snapshot.objects(StorageClass))),
        [array.tolist() for array in arrays],
        [dict(pod.signature.labels) for pod in snapshot.assigned_pods()],
        list(snapshot.names),
        dict(snapshot.namespace_labels("default") or {}),
    )


def write(mapping: Any) -> None:
    mapping["zone"] = "z"


PER_NODE_ATTACKS: dict[str, Attack] = {
    "the labels of the node": lambda pod, node: write(node.labels),
    "the annotations of the node": lambda pod, node: write(node.annotations),
    "the labels of the typed node": lambda pod, node: write(node.node.metadata.labels),
    "the allocatable resources": lambda pod, node: write(node.node.status.allocatable),
    "the capacity": lambda pod, node: node.node.status.capacity.clear(),
    "the labels of the pod": lambda pod, node: write(pod.metadata.labels),
    "the annotations of the pod": lambda pod, node: pod.metadata.annotations.update(budget="0"),
    "the node selector": lambda pod, node: pod.spec.node_selector.pop("zone"),
    "the requests": lambda pod, node: write(pod.spec.containers[0].resources.requests),
    "the labels of a pod on the node": lambda pod, node: write(node.pods[0].labels),
    "the typed pod on the node": lambda pod, node: write(node.pods[0].pod.metadata.annotations),
    "the requests of a pod on the node": lambda pod, node: write(
        node.pods[0].pod.spec.containers[0].resources.requests
    ),
    "the signature of a pod on the node": lambda pod, node: write(node.pods[0].signature.labels),
}


@pytest.mark.parametrize("cacheable", [False, True], ids=["not cached", "cached"])
@pytest.mark.parametrize("attack", PER_NODE_ATTACKS.values(), ids=PER_NODE_ATTACKS)
def test_a_per_node_plugin_cannot_modify(attack: Attack, cacheable: bool) -> None:
    refused = []

    @filter_plugin("Attacker", cacheable=cacheable)
    def attacker(pod: Any, node: Any) -> None:
        if node.name == "one":
            with pytest.raises(REFUSALS) as error:
                attack(pod, node)
            refused.append(type(error.value))

    cluster = make_attacked_cluster()
    before = describe(cluster.cache)
    assert run_plugin(attacker, cluster, "web").feasible_nodes == ("one", "two")
    assert refused
    assert describe(cluster.cache) == before


def fill(array: Any) -> None:
    array[0] = 0


VECTORIZED_ATTACKS: dict[str, Attack] = {
    "the allocatable amounts": lambda pod, nodes: fill(nodes.allocatable(0)),
    "the requested amounts": lambda pod, nodes: fill(nodes.requested(0)),
    "the requested amounts with defaults": lambda pod, nodes: fill(nodes.nonzero_requested(0)),
    "the number of pods": lambda pod, nodes: fill(nodes.pod_count),
    "the allowed number of pods": lambda pod, nodes: fill(nodes.allowed_pods),
    "the taints": lambda pod, nodes: fill(nodes.taint_set_ids),
    "the features": lambda pod, nodes: fill(nodes.feature_set_ids),
    "the cordons": lambda pod, nodes: fill(nodes.unschedulable),
    "the label values": lambda pod, nodes: fill(nodes.label_value_ids("zone")),
    "a view of one row": lambda pod, nodes: fill(nodes.snapshot.view(np.array([0])).allocatable(0)),
    "the rows of a view": lambda pod, nodes: fill(nodes.snapshot.view(np.array([0, 1])).rows),
    "the labels of a node": lambda pod, nodes: write(nodes.nodes[0].metadata.labels),
    "the labels of a node of the snapshot": lambda pod, nodes: write(nodes.snapshot.nodes[0].metadata.labels),
    "the nodes of the snapshot": lambda pod, nodes: fill(nodes.snapshot.nodes),
    "the names": lambda pod, nodes: fill(nodes.snapshot.names),
    "the pods on a node": lambda pod, nodes: nodes.snapshot.pods_on("one").clear(),
    "the labels of an assigned pod": lambda pod, nodes: write(nodes.snapshot.assigned_pods()[0].labels),
    "the pods of a row": lambda pod, nodes: write(next(iter(nodes.snapshot.pods_by_row(np.array([0]))[0])).labels),
    "the nominated pods": lambda pod, nodes: write(nodes.snapshot.nominated_pods_by_node),
    "the labels of a namespace": lambda pod, nodes: write(nodes.snapshot.namespace_labels("default")),
    "the parameters of an object": lambda pod, nodes: write(nodes.snapshot.objects(StorageClass)["fast"].parameters),
    "an object by its key": lambda pod, nodes: write(nodes.snapshot.get_object(StorageClass, "fast").parameters),
    "the objects of a kind": lambda pod, nodes: write(nodes.snapshot.objects(StorageClass)),
    "the labels of the pod": lambda pod, nodes: write(pod.labels),
    "the typed pod": lambda pod, nodes: write(pod.pod.metadata.labels),
    "the spec of the pod": lambda pod, nodes: write(pod.spec.node_selector),
    "the labels of the signature": lambda pod, nodes: write(pod.signature.labels),
    "the namespace of the signature": lambda pod, nodes: setattr(pod.signature, "namespace", "other"),
    "the pod of the signature": lambda pod, nodes: write(pod.signature.representative_pod.metadata.labels),
    "a new pod": lambda pod, nodes: write(nodes.snapshot.make_pod_info(pod.pod).signature.spec.node_selector),
}


@pytest.mark.parametrize("attack", VECTORIZED_ATTACKS.values(), ids=VECTORIZED_ATTACKS)
def test_without_protection_the_plugin_would_modify(attack: Attack) -> None:
    cluster = make_attacked_cluster()
    snapshot = cluster.cache.snapshot()
    attack(snapshot.make_pod_info(cluster.pod("web")), snapshot.view())


class Attacker:
    """A vectorized plugin that runs an attack at several extension points."""

    name: ClassVar[str] = "Attacker"
    attack: ClassVar[Attack]
    refused: ClassVar[list[str]]

    def _try(self, point: str, pod: Any, nodes: Any) -> None:
        with pytest.raises(REFUSALS):
            type(self).attack(pod, nodes)
        self.refused.append(point)

    def filter(self, pod: Any, nodes: Any, state: Any) -> Any:
        self._try("filter", pod, nodes)
        return ()

    def score(self, pod: Any, nodes: Any, state: Any) -> Any:
        self._try("score", pod, nodes)
        return np.arange(len(nodes))


@pytest.mark.parametrize("attack", VECTORIZED_ATTACKS.values(), ids=VECTORIZED_ATTACKS)
def test_a_vectorized_plugin_cannot_modify(attack: Attack) -> None:
    plugin: Any = type("Attacker", (Attacker,), {"attack": staticmethod(attack), "refused": []})
    cluster = make_attacked_cluster()
    before = describe(cluster.cache)
    assert run_plugin(plugin, cluster, "web").normalized_scores == {"Attacker": {"one": 0, "two": 1}}
    assert set(plugin.refused) == {"filter", "score"}
    assert describe(cluster.cache) == before


class Probe:
    """A plugin that returns what it receives."""

    name: ClassVar[str] = "Probe"

    def normalize_score(self, pod: Any, scores: Any, nodes: Any, state: Any) -> Any:
        return scores, state

    def score(self, pod: Any, nodes: Any, state: Any) -> Any:
        return state

    def pre_score(self, pod: Any, nodes: Any) -> Any:
        return nodes

    def sort_key(self, entry: QueueSortEntry) -> Any:
        write(entry.pod.labels)
        return (0,)

    def post_filter(self, pod: Any, snapshot: Any, attempt: Any) -> Any:
        return attempt.diagnosis

    @staticmethod
    def pre_enqueue(pod: Any, snapshot: Any) -> Any:
        return pod

    @classmethod
    def pre_filter(cls, pod: Any, snapshot: Any) -> Any:
        return pod

    def hint(self, pod: Any, event: ClusterEvent) -> QueueingHint:
        write(event.new.metadata.labels)
        return QueueingHint.QUEUE

    def events_to_register(self) -> Any:
        return [
            ClusterEventWithHint(EventResource.NODE, ActionType.ADD, self.hint),
            ClusterEventWithHint(EventResource.NODE, ActionType.DELETE),
        ]


PROBE: Any = protect_inputs(Probe)()


def test_the_scores_to_normalize_are_read_only_and_the_state_is_the_plugin_s_own() -> None:
    snapshot = make_attacked_cluster().cache.snapshot()
    pod = snapshot.make_pod_info(make_attacked_cluster().pod("web"))
    scores, state = np.array([1, 2]), np.array([3])
    read_only_scores, own_state = PROBE.normalize_score(pod, scores, snapshot.view(), state)
    with pytest.raises(ValueError, match="read-only"):
        read_only_scores[0] = 7
    assert own_state is state
    assert PROBE.score(pod, snapshot.view(), pod) is pod


def test_the_pod_of_a_queue_entry_is_read_only() -> None:
    cluster = make_attacked_cluster()
    with pytest.raises(SortKeyError, match="TypeError"):
        PROBE.sort_key(QueueSortEntry(cluster.cache.snapshot().make_pod_info(cluster.pod("web")), 1.0, 0))
    assert cluster.pod("web").metadata.labels == {"app": "web"}


def test_the_diagnosis_of_a_failed_attempt_is_read_only() -> None:
    cluster = make_cluster(make_node("one"), make_pod("big", cpu="9"))
    snapshot, runtime = cluster.cache.snapshot(), wiring.make_runtime()
    profile, pod = wiring.build_setup().first_profile, snapshot.make_pod_info(cluster.pod("big"))
    diagnosis = find_nodes_that_pass_filters(pod, snapshot, profile, runtime)
    received = PROBE.post_filter(pod, snapshot, FailedAttempt(diagnosis, profile, runtime))
    assert received.format_message() == "0/1 nodes are available: 1 Insufficient cpu."
    attacks: list[Callable[[], object]] = [
        lambda: fill(received.feasible),
        lambda: fill(received.rejections[0].nodes),
        received.pre_filter_run.cycle_state.clear,
    ]
    for attack in attacks:
        with pytest.raises(REFUSALS):
            attack()
    assert diagnosis.feasible.tolist() == [False]
    assert diagnosis.rejections[0].nodes.tolist() == [True]
    assert diagnosis.pre_filter_run.cycle_state


def test_the_objects_of_an_event_are_read_only_for_a_hint() -> None:
    snapshot = make_attacked_cluster().cache.snapshot()
    pod = snapshot.make_pod_info(make_attacked_cluster().pod("web"))
    with_hint, without_hint = PROBE.events_to_register()
    with pytest.raises(TypeError):
        with_hint.hint(pod, ClusterEvent(EventResource.NODE, ActionType.ADD, new=snapshot.nodes[0]))
    assert snapshot.nodes[0].metadata.labels["zone"] == "a"
    assert without_hint.hint is None


def test_static_methods_and_class_methods_receive_read_only_pods() -> None:
    cluster = make_attacked_cluster()
    snapshot = cluster.cache.snapshot()
    pod = snapshot.make_pod_info(cluster.pod("web"))
    for received in (PROBE.pre_enqueue(pod, snapshot), PROBE.pre_filter(pod, snapshot)):
        assert received.labels == {"app": "web"}
        assert received.signature.requests == pod.signature.requests
        with pytest.raises(TypeError):
            write(received.labels)


def test_a_pod_has_one_read_only_signature_with_the_values_of_its_source() -> None:
    cluster = make_attacked_cluster()
    snapshot = cluster.cache.snapshot()
    pod = snapshot.make_pod_info(cluster.pod("web"))
    first, second = PROBE.pre_enqueue(pod, snapshot), PROBE.pre_enqueue(pod, snapshot)
    assert first.signature is second.signature
    value = first.signature.get_or_create("key", lambda: ["computed once"])
    assert pod.signature.get_or_create("key", list) is value
    assert PROBE.pre_enqueue(first, snapshot) is first  # what is read-only stays as it is


def test_a_plugin_can_read_requests_of_resources_that_no_node_has() -> None:
    cluster = make_cluster(make_node("one"), make_pod("web", cpu="1", **dict[str, Any]({"example.com/gpu": "2"})))
    snapshot = cluster.cache.snapshot()
    pod = snapshot.make_pod_info(cluster.pod("web"))
    received = PROBE.pre_enqueue(pod, snapshot).signature
    assert received.requests == received.assigned_requests == ((0, 1000),)
    for amounts in (received.requested_amounts, received.assigned_amounts):
        assert amounts == {"cpu": 1000, "example.com/gpu": 2}
        with pytest.raises(TypeError):
            write(amounts)


def test_the_nodes_of_a_read_only_view_are_read_only_and_copied_once() -> None:
    snapshot = make_attacked_cluster().cache.snapshot()
    (view,) = (PROBE.pre_score(None, snapshot.view()),)
    first, again = (next(iter_node_infos(view)).node for _ in range(2))
    assert first is again
    assert first is view.nodes[0]
    with pytest.raises(TypeError):
        write(first.metadata.labels)


def test_a_changed_node_is_copied_again() -> None:
    cluster = make_attacked_cluster()
    old = next(iter_node_infos(cluster.cache.snapshot().view())).node
    labels = {"zone": "c"}
    node = msgspec.structs.replace(old, metadata=msgspec.structs.replace(old.metadata, labels=labels))
    cluster.cache.add_or_update_node(node)
    assert next(iter_node_infos(cluster.cache.snapshot().view())).node.metadata.labels == {"zone": "c"}


def test_a_built_in_plugin_receives_the_objects_themselves() -> None:
    assert protect_inputs(NodeName) is NodeName


def test_the_protected_class_is_a_subclass_with_the_same_name() -> None:
    protected = protect_inputs(Probe)
    assert issubclass(protected, Probe)
    assert (protected.__name__, protected.__module__, protected.__doc__) == ("Probe", __name__, Probe.__doc__)


def test_the_positions_of_the_state_are_those_of_the_protocols() -> None:
    positions = {
        name: parameters.index("state") if "state" in parameters else None
        for name, parameters in METHOD_PARAMETERS.items()
    }
    assert positions == {
        "pre_enqueue": None,
        "sort_key": None,
        "pre_filter": None,
        "pre_filter_is_cacheable": None,
        "clone": 0,
        "add_pod": 4,
        "remove_pod": 4,
        "apply_pod_changes": 4,
        "filter": 2,
        "filter_cache_key": None,
        "post_filter": None,
        "pre_score": None,
        "pre_score_is_cacheable": None,
        "score": 2,
        "score_cache_key": None,
        "normalize_score": 3,
        "reserve": 3,
        "unreserve": 2,
        "make_assumed_pod": 2,
        "permit": 3,
        "generate_placements": None,
        "score_placement": None,
        "normalize_placement_score": None,
        "pre_bind_pre_flight": 2,
        "pre_bind": 3,
        "bind": None,
        "post_bind": 2,
        "events_to_register": None,
    }


def test_the_labels_that_pods_share_cannot_be_changed() -> None:
    cluster = make_attacked_cluster()
    snapshot = cluster.cache.snapshot()
    pod = snapshot.make_pod_info(cluster.pod("web"))
    for signature in (pod.signature, PROBE.pre_enqueue(pod, snapshot).signature):
        with pytest.raises(TypeError):
            write(signature.pod_labels.labels)
