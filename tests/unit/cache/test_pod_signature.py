"""Pods with equal scheduling-relevant parts share one signature; names, uids and node names do not count."""

from typing import Any
from weakref import ref

import pytest
from msgspec.structs import replace

from extender.api.codec import decode
from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.cache.pod_info import make_assigned_pod_info
from extender.cache.pod_signature import PodSignature, SignatureCache, SpecClassCache
from extender.cache.tables.symbols import Symbols
from tests.build import make_cluster, make_pod

POD = b"""{"metadata": {"name": "%s", "namespace": "shop", "uid": "%s", "labels": {"app": "web"}},
 "spec": {"nodeName": "%s", "containers": [{"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "1"}}}]},
 "status": {"phase": "Running", "containerStatuses": [{"name": "web", "resources": {"requests": {"cpu": "1"}}}]}}"""


def signature_of(pod: Pod) -> PodSignature:
    return SignatureCache(Symbols()).get_signature(pod)


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        pytest.param(make_pod("b", labels={"app": "web"}), True, id="another name and uid"),
        pytest.param(make_pod("b", labels={"app": "web"}, node="n1"), True, id="a node name"),
        pytest.param(
            make_pod("b", labels={"app": "web"}, spec={"schedulingGroup": {"podGroupName": "gang"}}),
            True,
            id="a scheduling group",
        ),
        pytest.param(make_pod("b", labels={"app": "web"}, status={"phase": "Running"}), True, id="another phase"),
        pytest.param(
            make_pod(labels={"app": "web"}, status={"conditions": [{"type": "Ready", "status": "True"}]}),
            True,
            id="a condition of readiness",
        ),
        pytest.param(
            make_pod(
                labels={"app": "web"}, status={"conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}
            ),
            False,
            id="an infeasible resize",
        ),
        pytest.param(make_pod("a", labels={"app": "db"}), False, id="another label"),
        pytest.param(make_pod("a", labels={"app": "web"}, namespace="shop"), False, id="another namespace"),
        pytest.param(make_pod("a", labels={"app": "web"}, requests={"cpu": "1"}), False, id="another request"),
        pytest.param(make_pod("a", labels={"app": "web"}, priority=1), False, id="another priority"),
    ],
)
def test_pods_share_a_signature_unless_they_differ_in_a_part_that_counts(other: Pod, is_same: bool) -> None:
    signatures = SignatureCache(Symbols())
    first = signatures.get_signature(make_pod("a", labels={"app": "web"}))
    assert (signatures.get_signature(other) is first) is is_same


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        pytest.param(make_pod("b", labels={"app": "web"}), True, id="another name and uid"),
        pytest.param(make_pod("a", labels={"app": "db"}), False, id="another label"),
        pytest.param(make_pod("a", labels={"app": "web"}, namespace="shop"), False, id="another namespace"),
        pytest.param(
            make_pod(
                labels={"app": "web"},
                metadata={"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1"}]},
            ),
            False,
            id="another owner",
        ),
        pytest.param(
            make_pod(
                labels={"app": "web"},
                status={"containerStatuses": [{"name": "app", "resources": {"requests": {"cpu": "1"}}}]},
            ),
            False,
            id="other resources in the status",
        ),
    ],
)
def test_pods_with_the_same_spec_object_share_a_signature_unless_they_differ_in_another_part_that_counts(
    other: Pod, is_same: bool
) -> None:
    signatures, first_pod = SignatureCache(Symbols()), make_pod("a", labels={"app": "web"})
    first = signatures.get_signature(first_pod)
    other = replace(other, spec=first_pod.spec)
    assert (signatures.get_signature(other) is first) is is_same
    assert signatures.get_signature(first_pod) is first


def test_a_signature_has_no_node_name() -> None:
    assert signature_of(make_pod("a", node="n1")).spec.node_name == ""


def test_requests_are_pairs_of_resource_id_and_base_units() -> None:
    symbols = Symbols()
    pod = make_pod(requests={"cpu": "250m", "memory": "1Ki", "example.com/gpu": "2", "a.io/b": "0"})
    signature = SignatureCache(symbols).get_signature(pod)
    assert signature.requests == signature.assigned_requests == ((0, 250), (1, 1024))
    assert signature.has_unknown_resources
    symbols.resources.intern("example.com/gpu")  # a node has it now
    assert not signature.has_unknown_resources
    assert signature.requests == ((0, 250), (1, 1024), (3, 2))
    assert signature.assigned_requests == ((0, 250), (1, 1024), (3, 2))
    assert signature.assigned_nonzero_requests == (250, 1024)


def test_containers_without_requests_have_default_nonzero_requests() -> None:
    assert signature_of(make_pod()).assigned_nonzero_requests == (100, 200 * 1024 * 1024)


def test_the_controller_is_the_owner_reference_marked_as_controller() -> None:
    owners: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1"},
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "2", "controller": True},
    ]
    controller = signature_of(make_pod(metadata={"ownerReferences": owners})).controller
    assert controller is not None
    assert controller.name == "web"
    assert signature_of(make_pod(metadata={"ownerReferences": owners[:1]})).controller is None


def test_deduplicated_pods_are_equal_and_share_the_parts_of_their_template() -> None:
    cache = Cache()
    first, second = (decode(POD % (name, name, node), Pod) for name, node in ((b"a", b"one"), (b"b", b"two")))
    (first_copy, first_owner), (second_copy, second_owner) = map(cache.deduplicate, (first, second))
    assert (first_copy, second_copy) == (first, second)
    assert (second_copy.metadata.name, second_copy.spec.node_name) == ("b", "two")
    assert second_owner is first_owner
    assert second_copy.spec.containers is first_copy.spec.containers
    assert second_copy.metadata.labels is first_copy.metadata.labels
    assert second_copy.status.container_statuses is first_copy.status.container_statuses


def make_pod_with_labels(number: int, labels: int) -> Pod:
    return make_pod("a", labels={f"key-{at}": f"value-{number}-{at}" for at in range(labels)})


@pytest.mark.parametrize(("labels", "retained"), [(1, 2_700), (100, 353)], ids=["small pods", "large pods"])
def test_signatures_without_pods_are_retained_up_to_a_number_of_bytes(labels: int, retained: int) -> None:
    signatures = SignatureCache(Symbols())
    references = [ref(signatures.get_signature(make_pod_with_labels(number, labels))) for number in range(12_000)]
    alive = [number for number, reference in enumerate(references) if reference() is not None]
    assert 0.9 * retained < len(alive) < 1.1 * retained
    assert alive == list(range(12_000 - len(alive), 12_000))


@pytest.mark.parametrize(("size", "retained"), [(10, 7_600), (100_000, 82)], ids=["small specs", "large specs"])
def test_spec_classes_without_pods_are_retained_up_to_a_number_of_bytes(size: int, retained: int) -> None:
    """The classes of 400 pods with image names of a megabyte kept 470 MB after the pods were gone."""
    classes = SpecClassCache()
    for number in range(12_000 if size == 10 else 200):
        classes.get(make_pod(spec={"containers": [{"name": "app", "image": f"{number}-{size * 'x'}"}]}).spec)
    assert 0.9 * retained < len(classes._classes) < 1.1 * retained


def test_a_signature_that_is_used_again_is_retained() -> None:
    signatures = SignatureCache(Symbols())
    first = ref(signatures.get_signature(make_pod("a", labels={"app": "web"})))
    for number in range(12_000):
        signatures.get_signature(make_pod_with_labels(number, 1))
        if number % 1000 == 0:
            signatures.get_signature(make_pod(f"b-{number}", labels={"app": "web"}))
    assert first() is signatures.get_signature(make_pod("c", labels={"app": "web"}))
    assert first() is not None


def test_a_member_of_a_group_keeps_its_group() -> None:
    """The shared signature has no group, but the deduplicated pod and the assigned pod have it."""
    signatures = SignatureCache(Symbols())
    signatures.get_signature(make_pod("a"))
    member = make_pod("b", node="n1", spec={"schedulingGroup": {"podGroupName": "gang"}})
    assert signatures.deduplicate(member)[0] == member
    assigned_pod = make_assigned_pod_info(member, signatures.get_signature(member), "n1")
    assert assigned_pod.signature.spec.scheduling_group is None
    assert assigned_pod.pod_with_node_name == member


def make_job(requests: dict[str, str], **more: Any) -> Pod:
    """Make a pod with one container that requests *requests*."""
    container = {"name": "app", "image": "app", "resources": {"requests": requests, "limits": requests}}
    return make_pod("other", spec={"containers": [container], **more})


FIRST = make_job({"cpu": "1", "memory": "1Gi"})


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        pytest.param(FIRST, True, id="the same"),
        pytest.param(make_job({"cpu": "2", "memory": "4Gi"}), True, id="other amounts"),
        pytest.param(make_job({"memory": "4Gi", "cpu": "2"}), True, id="other amounts in another order"),
        pytest.param(make_job({"cpu": "1"}), False, id="one resource fewer"),
        pytest.param(make_job({"cpu": "1", "example.com/gpu": "1"}), False, id="another resource"),
        pytest.param(make_job({"cpu": "1", "memory": "1Gi"}, nodeSelector={"zone": "a"}), False, id="another selector"),
        pytest.param(make_job({"cpu": "1", "memory": "1Gi"}, nodeName="n1"), True, id="on a node"),
        pytest.param(make_job({"cpu": "1", "memory": "1Gi"}, overhead={"cpu": "1"}), False, id="with overhead"),
        pytest.param(
            make_job({"cpu": "1", "memory": "1Gi"}, resources={"requests": {"cpu": "1"}}),
            False,
            id="with pod-level requests",
        ),
    ],
)
def test_specs_of_one_class_differ_only_in_amounts_of_resources(other: Pod, is_same: bool) -> None:
    snapshot = make_cluster().snapshot()

    assert (
        snapshot.make_pod_info(FIRST).signature.spec_class is snapshot.make_pod_info(other).signature.spec_class
    ) is is_same


def test_amounts_of_overhead_and_pod_level_requests_do_not_count() -> None:
    snapshot = make_cluster().snapshot()
    one, other = (
        snapshot.make_pod_info(
            make_job({"cpu": "1"}, overhead={"cpu": amount}, resources={"requests": {"cpu": amount}})
        )
        for amount in ("1", "2")
    )

    assert one.signature is not other.signature
    assert one.signature.spec_class is other.signature.spec_class


def test_labels_owners_and_namespaces_do_not_count() -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": "job", "controller": True}
    other = make_pod("one", namespace="team", labels={"app": "job"}, metadata={"ownerReferences": [owner]})
    snapshot = make_cluster().snapshot()

    assert snapshot.make_pod_info(make_pod()).signature.spec_class is snapshot.make_pod_info(other).signature.spec_class
    assert snapshot.make_pod_info(make_pod()).signature is not snapshot.make_pod_info(other).signature
