"""VolumeBinding after a node is chosen: what is promised, written and waited for. B097 to B099."""

from collections.abc import Mapping
from typing import Any

import pytest

from extender.cluster.pods import PodQuery
from extender.cluster.state import ClusterState
from extender.config.gates import FeatureGates
from extender.framework.points import Plan, PreFlight
from extender.framework.setup import Setup
from extender.framework.verdict import SUCCESS, Code, Status, error
from extender.objects.storage import PersistentVolume
from extender.plugins.volume_binding.plugin import VolumeBinding, VolumeBindingArgs
from tests.build import a_cluster, a_node, a_pod, an_object

WAITS = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
MADE = {"provisioner": "driver", "volumeBindingMode": "WaitForFirstConsumer"}


def a_class(name: str, how: Mapping[str, str]) -> Any:
    return an_object({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}, **how})


def a_claim(
    name: str, kind: str, *, version: str = "1", annotations: Mapping[str, str] | None = None, volume: str = ""
) -> Any:
    return an_object(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"uid-{name}",
                "resourceVersion": version,
                "annotations": dict(annotations or {}),
            },
            "spec": {"storageClassName": kind, "volumeName": volume},
        }
    )


def a_volume(
    name: str,
    *,
    version: str = "1",
    zone: str = "a",
    claim: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Any:
    rule = {"key": "zone", "operator": "In", "values": [zone]}
    return an_object(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name, "resourceVersion": version, "annotations": dict(annotations or {})},
            "spec": {
                "storageClassName": "local",
                "claimRef": claim,
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}},
            },
            "status": {"phase": "Available"},
        }
    )


def a_user(name: str, *claims: str) -> Any:
    return a_pod(
        name, spec={"volumes": [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]}
    )


class World:
    """A node in zone a, and the plugin."""

    def __init__(self, *things: Any) -> None:
        self.state: ClusterState = a_cluster(
            a_node("node", labels={"zone": "a"}), a_class("local", WAITS), a_class("made", MADE), *things
        )
        self.plugin = VolumeBinding(Setup(VolumeBindingArgs(), FeatureGates()))

    def query(self, name: str, *claims: str) -> PodQuery:
        return self.state.snapshot().query(a_user(name, *claims))

    def notes(self, pod: PodQuery) -> Any:
        answer = self.plugin.pre_filter(pod, self.state.snapshot())
        assert answer.status is None
        return answer.notes

    def fits(self, pod: PodQuery) -> bool:
        return not self.plugin.filter(pod, self.state.snapshot().view(), self.notes(pod))

    def reserve(self, pod: PodQuery) -> Any:
        notes = self.notes(pod)
        assert self.plugin.reserve(pod, "node", self.state.snapshot(), notes) is None
        return notes

    def plan(self, pod: PodQuery, notes: Any) -> Plan:
        plan = self.plugin.pre_bind(pod, "node", self.state.snapshot(), notes)
        assert isinstance(plan, Plan)
        return plan

    def progress(self, plan: Plan) -> Status | None:
        assert plan.wait_for is not None
        return plan.wait_for(self.state.snapshot())

    def put(self, *things: Any) -> None:
        for thing in things:
            self.state.put_object(thing)


REF = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "namespace": "default",
    "name": "data",
    "uid": "uid-data",
    "resourceVersion": "1",
}


def test_a_promised_volume_is_no_longer_free_until_the_promise_is_taken_back() -> None:
    world = World(a_claim("data", "local"), a_claim("data2", "local"), a_volume("pv"))
    first, second = world.query("first", "data"), world.query("second", "data2")
    notes = world.reserve(first)
    assert not world.fits(second)
    assert world.fits(first), "a volume promised to its own claim still is there for it"
    world.plugin.unreserve(first, "node", notes)
    assert world.fits(second)


def test_a_promise_lapses_when_the_api_server_says_something_newer() -> None:
    world = World(a_claim("data", "local"), a_claim("data2", "local"), a_volume("pv"))
    world.reserve(world.query("first", "data"))
    world.put(a_volume("pv", version="2"))
    assert world.fits(world.query("second", "data2"))


def test_a_claim_that_a_volume_is_made_for_stays_with_its_node() -> None:
    world = World(a_claim("data", "made"), a_node("other"))
    pod = world.query("first", "data")
    notes = world.reserve(pod)
    (refused,) = world.plugin.filter(pod, world.state.snapshot().view(), world.notes(pod))
    assert (refused.nodes.tolist(), refused.reason.text) == (
        [False, True],
        "node(s) didn't find available persistent volumes to bind",
    )
    world.plugin.unreserve(pod, "node", notes)
    assert world.fits(pod)


def test_a_pod_whose_claims_are_bound_needs_nothing() -> None:
    bound = a_claim("data", "local", annotations={"pv.kubernetes.io/bind-completed": "yes"}, volume="pv")
    world = World(bound, a_volume("pv"))
    pod = world.query("first", "data")
    notes = world.reserve(pod)
    assert world.plugin.pre_bind_pre_flight(pod, "node", notes) == PreFlight(parallel=True, skip=True)
    assert world.plan(pod, notes) == Plan()


def test_a_pod_without_claims_needs_nothing() -> None:
    world = World()
    pod = world.query("first")
    before = world.plugin.pre_filter(pod, world.state.snapshot())
    assert before.skip
    assert world.plugin.reserve(pod, "node", world.state.snapshot(), before.notes) is None
    assert world.plugin.pre_bind_pre_flight(pod, "node", before.notes) == PreFlight(parallel=True, skip=True)


@pytest.mark.parametrize("claims", [("data",), ()], ids=["with claims", "without"])
def test_no_pod_is_reserved_for_without_prefilter(claims: tuple[str, ...]) -> None:
    world = World(a_claim("data", "local"), a_volume("pv"))
    pod = world.query("first", *claims)
    assert world.plugin.reserve(pod, "node", world.state.snapshot(), None) == error("not found")


def test_binding_is_announced_and_refused_on_a_node_that_was_not_reserved() -> None:
    world = World(a_claim("data", "local"), a_volume("pv"))
    pod = world.query("first", "data")
    notes = world.reserve(pod)
    assert world.plugin.pre_bind_pre_flight(pod, "node", notes) == PreFlight(parallel=True)
    lost = error('no pod volume found for node "other"')
    assert world.plugin.pre_bind_pre_flight(pod, "other", notes) == lost
    assert world.plugin.pre_bind(pod, "other", world.state.snapshot(), notes) == lost


def test_the_plan_patches_volumes_then_claims_and_each_patch_names_the_version_it_was_made_from() -> None:
    world = World(a_claim("data", "local"), a_claim("new", "made", version="7"), a_volume("pv", version="5"))
    pod = world.query("first", "data", "new")
    plan = world.plan(pod, world.reserve(pod))
    assert [(write.verb, write.kind, write.namespace, write.name, write.subresource) for write in plan.writes] == [
        ("patch", "PersistentVolume", "", "pv", ""),
        ("patch", "PersistentVolumeClaim", "default", "new", ""),
    ]
    assert [write.body for write in plan.writes] == [
        {
            "metadata": {"resourceVersion": "5", "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}},
            "spec": {"claimRef": REF},
        },
        {"metadata": {"resourceVersion": "7", "annotations": {"volume.kubernetes.io/selected-node": "node"}}},
    ]
    assert (plan.timeout, plan.late) == (600.0, error("binding volumes: context deadline exceeded"))


@pytest.mark.parametrize(
    ("claim", "annotations", "bodies"),
    [
        pytest.param(
            {"namespace": "default", "name": "data"},
            {},
            [{"metadata": {"resourceVersion": "1"}, "spec": {"claimRef": REF}}],
            id="a volume its maker meant for the claim gets the claim's uid, and is not marked as bound by us",
        ),
        pytest.param(
            {"namespace": "default", "name": "data", "uid": "uid-data"},
            {},
            [],
            id="a volume that is bound is left alone",
        ),
        pytest.param(
            None,
            {"pv.kubernetes.io/bound-by-controller": "yes"},
            [{"metadata": {"resourceVersion": "1"}, "spec": {"claimRef": REF}}],
            id="a mark that is there is not written again",
        ),
    ],
)
def test_only_what_changes_is_written(
    claim: Mapping[str, str] | None, annotations: Mapping[str, str], bodies: list[Mapping[str, Any]]
) -> None:
    world = World(a_claim("data", "local"), a_volume("pv", claim=claim, annotations=annotations))
    pod = world.query("first", "data")
    assert [write.body for write in world.plan(pod, world.reserve(pod)).writes] == bodies


BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
HERE = {"volume.kubernetes.io/selected-node": "node"}
TO_DATA = {"namespace": "default", "name": "data", "uid": "uid-data"}


def a_matched_plan() -> tuple[World, Plan]:
    world = World(a_claim("data", "local"), a_volume("pv"))
    pod = world.query("first", "data")
    plan = world.plan(pod, world.reserve(pod))
    world.state.assume(pod.pod, "node")
    return world, plan


@pytest.mark.parametrize(
    ("then", "answer"),
    [
        pytest.param([], None, id="it waits while its own write is not seen"),
        pytest.param([a_volume("pv", version="2", claim=TO_DATA)], None, id="it waits while the claim is not bound"),
        pytest.param(
            [a_volume("pv", version="2", claim=TO_DATA), a_claim("data", "local", annotations=BOUND, volume="pv")],
            SUCCESS,
            id="it is done when the claim is bound",
        ),
        pytest.param(
            [a_volume("pv", version="2", claim=TO_DATA), a_claim("data", "local", annotations=BOUND)],
            None,
            id="a claim without its volume is not bound",
        ),
        pytest.param(
            [a_volume("pv", version="2")],
            error('binding volumes: ClaimRef got reset for pv "pv"'),
            id="it fails when the binding was undone",
        ),
        pytest.param(
            [a_volume("pv", version="2", zone="b", claim=TO_DATA)],
            error('binding volumes: pv "pv" node affinity doesn\'t match node "node": no matching NodeSelectorTerms'),
            id="it fails when the volume went elsewhere",
        ),
    ],
)
def test_the_wait_for_a_volume(then: list[Any], answer: Status | None) -> None:
    world, plan = a_matched_plan()
    world.put(*then)
    assert world.progress(plan) == answer


def test_the_wait_ends_when_the_pod_the_node_or_the_volume_is_gone() -> None:
    world, plan = a_matched_plan()
    world.state.drop_object(PersistentVolume, "pv")
    assert world.progress(plan) == error('binding volumes: failed to check binding: persistentvolumes "pv" not found')
    world.state.drop_pod("uid-default-first")
    assert world.progress(plan) == error('binding volumes: pod does not exist any more: pod "first" not found')
    world.state.drop_node("node")
    assert world.progress(plan) == error('binding volumes: failed to get node "node": node "node" not found')


@pytest.mark.parametrize(
    ("then", "answer"),
    [
        pytest.param([], None, id="it waits while its own write is not seen"),
        pytest.param([a_claim("data", "made", version="2", annotations=HERE)], None, id="it waits for the driver"),
        pytest.param(
            [a_claim("data", "made", version="3", annotations={**HERE, **BOUND}, volume="pv")],
            None,
            id="it waits for a volume that is not known yet",
        ),
        pytest.param(
            [a_volume("pv"), a_claim("data", "made", version="3", annotations={**HERE, **BOUND}, volume="pv")],
            SUCCESS,
            id="it is done when the claim is bound to a volume that can be used here",
        ),
        pytest.param(
            [
                a_volume("pv", zone="b"),
                a_claim("data", "made", version="3", annotations={**HERE, **BOUND}, volume="pv"),
            ],
            error('binding volumes: pv "pv" node affinity doesn\'t match node "node": no matching NodeSelectorTerms'),
            id="it fails when the volume was made elsewhere",
        ),
        pytest.param(
            [a_claim("data", "made", version="2", annotations={"x": "y"})],
            error('binding volumes: provisioning failed for PVC "data"'),
            id="it fails when the driver gave up",
        ),
        pytest.param(
            [a_claim("data", "made", version="2")],
            error('binding volumes: selectedNode annotation reset for PVC "data"'),
            id="it fails when all annotations are gone",
        ),
    ],
)
def test_the_wait_for_a_volume_that_is_made(then: list[Any], answer: Status | None) -> None:
    world = World(a_claim("data", "made"))
    pod = world.query("first", "data")
    plan = world.plan(pod, world.reserve(pod))
    world.state.assume(pod.pod, "node")
    world.put(*then)
    assert world.progress(plan) == answer


def test_a_claim_that_asked_for_the_node_before_is_not_written_again_and_its_version_is_not_waited_for() -> None:
    world = World(a_claim("data", "made", annotations=HERE))
    pod = world.query("first", "data")
    plan = world.plan(pod, world.reserve(pod))
    world.state.assume(pod.pod, "node")
    assert plan.writes == ()
    world.put(a_claim("data", "made", annotations={**HERE, **BOUND}, volume="pv"), a_volume("pv"))
    assert world.progress(plan) == SUCCESS


def test_preflight_of_claims_that_were_never_reserved_is_an_error() -> None:
    world = World(a_claim("data", "local"), a_volume("pv"))
    pod = world.query("first", "data")
    answer = world.plugin.pre_bind_pre_flight(pod, "node", world.notes(pod))
    assert isinstance(answer, Status)
    assert answer.code is Code.ERROR
