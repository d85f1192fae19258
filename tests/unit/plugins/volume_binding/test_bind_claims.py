"""VolumeBinding after a node is selected: reservation, API calls and the wait for bound claims."""

from collections.abc import Mapping
from typing import Any

import pytest

from extender.api.kinds.storage import PersistentVolume
from extender.cache.cache import Cache
from extender.cache.pod_info import PodInfo
from extender.config.feature_gates import FeatureGates
from extender.framework.api_plan import ApiPlan
from extender.framework.binding_points import PreBindPreFlightResult
from extender.framework.plugin_args import PluginArgs
from extender.framework.status import SUCCESS, Code, Status, error_status
from extender.plugins.volume_binding.plugin import VolumeBinding, VolumeBindingArgs
from tests.build import make_cluster, make_node, make_object, make_pod

NO_PROVISIONER = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
PROVISIONED = {"provisioner": "driver", "volumeBindingMode": "WaitForFirstConsumer"}


def make_storage_class(name: str, parameters: Mapping[str, str]) -> Any:
    return make_object(
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}, **parameters}
    )


def make_claim(
    name: str, storage_class: str, *, version: str = "1", annotations: Mapping[str, str] | None = None, volume: str = ""
) -> Any:
    return make_object(
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
            "spec": {"storageClassName": storage_class, "volumeName": volume},
        }
    )


def make_volume(
    name: str,
    *,
    version: str = "1",
    zone: str = "a",
    claim: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Any:
    rule = {"key": "zone", "operator": "In", "values": [zone]}
    return make_object(
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


def make_pod_with_claims(name: str, *claims: str) -> Any:
    return make_pod(
        name, spec={"volumes": [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]}
    )


class VolumeBindingTestEnv:
    """The plugin, and a cache with a node in zone a."""

    def __init__(self, *objects: Any) -> None:
        self.cache: Cache = make_cluster(
            make_node("node", labels={"zone": "a"}),
            make_storage_class("local", NO_PROVISIONER),
            make_storage_class("dynamic", PROVISIONED),
            *objects,
        )
        self.plugin = VolumeBinding(PluginArgs(VolumeBindingArgs(), FeatureGates()))

    def make_pod_info(self, name: str, *claims: str) -> PodInfo:
        return self.cache.snapshot().make_pod_info(make_pod_with_claims(name, *claims))

    def state(self, pod: PodInfo) -> Any:
        result = self.plugin.pre_filter(pod, self.cache.snapshot())
        assert result.status is None
        return result.state

    def fits(self, pod: PodInfo) -> bool:
        return not self.plugin.filter(pod, self.cache.snapshot().view(), self.state(pod))

    def reserve(self, pod: PodInfo) -> Any:
        state = self.state(pod)
        assert self.plugin.reserve(pod, "node", self.cache.snapshot(), state) is None
        return state

    def plan(self, pod: PodInfo, state: Any) -> ApiPlan:
        plan = self.plugin.pre_bind(pod, "node", self.cache.snapshot(), state)
        assert isinstance(plan, ApiPlan)
        return plan

    def check_wait(self, plan: ApiPlan) -> Status | None:
        assert plan.wait_condition is not None
        return plan.wait_condition(self.cache.snapshot())

    def add_objects(self, *objects: Any) -> None:
        for obj in objects:
            self.cache.add_or_update_object(obj)


CLAIM_REF = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "namespace": "default",
    "name": "data",
    "uid": "uid-data",
    "resourceVersion": "1",
}


def test_a_reserved_volume_is_not_available_until_it_is_unreserved() -> None:
    env = VolumeBindingTestEnv(make_claim("data", "local"), make_claim("data2", "local"), make_volume("pv"))
    first, second = env.make_pod_info("first", "data"), env.make_pod_info("second", "data2")
    state = env.reserve(first)
    assert not env.fits(second)
    assert env.fits(first), "a volume reserved for its own claim is available for it"
    env.plugin.unreserve(first, "node", state)
    assert env.fits(second)


def test_a_reservation_ends_when_the_volume_is_updated() -> None:
    env = VolumeBindingTestEnv(make_claim("data", "local"), make_claim("data2", "local"), make_volume("pv"))
    env.reserve(env.make_pod_info("first", "data"))
    env.add_objects(make_volume("pv", version="2"))
    assert env.fits(env.make_pod_info("second", "data2"))


def test_a_claim_with_a_selected_node_is_provisioned_only_there() -> None:
    env = VolumeBindingTestEnv(make_claim("data", "dynamic"), make_node("other"))
    pod = env.make_pod_info("first", "data")
    state = env.reserve(pod)
    (rejection,) = env.plugin.filter(pod, env.cache.snapshot().view(), env.state(pod))
    assert (rejection.nodes.tolist(), rejection.reason.text) == (
        [False, True],
        "node(s) didn't find available persistent volumes to bind",
    )
    env.plugin.unreserve(pod, "node", state)
    assert env.fits(pod)


def test_a_pod_with_bound_claims_needs_no_api_calls() -> None:
    bound = make_claim("data", "local", annotations={"pv.kubernetes.io/bind-completed": "yes"}, volume="pv")
    env = VolumeBindingTestEnv(bound, make_volume("pv"))
    pod = env.make_pod_info("first", "data")
    state = env.reserve(pod)
    assert env.plugin.pre_bind_pre_flight(pod, "node", state) == PreBindPreFlightResult(allow_parallel=True, skip=True)
    assert env.plan(pod, state) == ApiPlan()


def test_a_pod_without_claims_needs_nothing() -> None:
    env = VolumeBindingTestEnv()
    pod = env.make_pod_info("first")
    result = env.plugin.pre_filter(pod, env.cache.snapshot())
    assert result.skip
    assert env.plugin.reserve(pod, "node", env.cache.snapshot(), result.state) is None
    assert env.plugin.pre_bind_pre_flight(pod, "node", result.state) == PreBindPreFlightResult(
        allow_parallel=True, skip=True
    )


@pytest.mark.parametrize("claims", [("data",), ()], ids=["with claims", "without"])
def test_reserve_fails_without_pre_filter(claims: tuple[str, ...]) -> None:
    env = VolumeBindingTestEnv(make_claim("data", "local"), make_volume("pv"))
    pod = env.make_pod_info("first", *claims)
    assert env.plugin.reserve(pod, "node", env.cache.snapshot(), None) == error_status("not found")


def test_pre_bind_is_allowed_only_on_the_reserved_node() -> None:
    env = VolumeBindingTestEnv(make_claim("data", "local"), make_volume("pv"))
    pod = env.make_pod_info("first", "data")
    state = env.reserve(pod)
    assert env.plugin.pre_bind_pre_flight(pod, "node", state) == PreBindPreFlightResult(allow_parallel=True)
    not_reserved = error_status('no pod volume found for node "other"')
    assert env.plugin.pre_bind_pre_flight(pod, "other", state) == not_reserved
    assert env.plugin.pre_bind(pod, "other", env.cache.snapshot(), state) == not_reserved


def test_the_plan_patches_volumes_then_claims_with_their_resource_versions() -> None:
    env = VolumeBindingTestEnv(
        make_claim("data", "local"), make_claim("new", "dynamic", version="7"), make_volume("pv", version="5")
    )
    pod = env.make_pod_info("first", "data", "new")
    plan = env.plan(pod, env.reserve(pod))
    assert [(call.verb, call.kind, call.namespace, call.name, call.subresource) for call in plan.calls] == [
        ("patch", "PersistentVolume", "", "pv", ""),
        ("patch", "PersistentVolumeClaim", "default", "new", ""),
    ]
    assert [call.body for call in plan.calls] == [
        {
            "metadata": {"resourceVersion": "5", "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}},
            "spec": {"claimRef": CLAIM_REF},
        },
        {"metadata": {"resourceVersion": "7", "annotations": {"volume.kubernetes.io/selected-node": "node"}}},
    ]
    assert (plan.timeout, plan.timeout_status) == (600.0, error_status("binding volumes: context deadline exceeded"))


@pytest.mark.parametrize(
    ("claim", "annotations", "bodies"),
    [
        pytest.param(
            {"namespace": "default", "name": "data"},
            {},
            [{"metadata": {"resourceVersion": "1"}, "spec": {"claimRef": CLAIM_REF}}],
            id="a pre-bound volume gets the claim's uid, without the bound-by-controller annotation",
        ),
        pytest.param(
            {"namespace": "default", "name": "data", "uid": "uid-data"},
            {},
            [],
            id="a bound volume is not written",
        ),
        pytest.param(
            None,
            {"pv.kubernetes.io/bound-by-controller": "yes"},
            [{"metadata": {"resourceVersion": "1"}, "spec": {"claimRef": CLAIM_REF}}],
            id="an existing annotation is not written again",
        ),
    ],
)
def test_only_changed_fields_are_written(
    claim: Mapping[str, str] | None, annotations: Mapping[str, str], bodies: list[Mapping[str, Any]]
) -> None:
    env = VolumeBindingTestEnv(make_claim("data", "local"), make_volume("pv", claim=claim, annotations=annotations))
    pod = env.make_pod_info("first", "data")
    assert [call.body for call in env.plan(pod, env.reserve(pod)).calls] == bodies


BIND_COMPLETED = {"pv.kubernetes.io/bind-completed": "yes"}
SELECTED_NODE = {"volume.kubernetes.io/selected-node": "node"}
DATA_CLAIM_REF = {"namespace": "default", "name": "data", "uid": "uid-data"}


def make_static_binding() -> tuple[VolumeBindingTestEnv, ApiPlan]:
    env = VolumeBindingTestEnv(make_claim("data", "local"), make_volume("pv"))
    pod = env.make_pod_info("first", "data")
    plan = env.plan(pod, env.reserve(pod))
    env.cache.assume(pod.pod, "node")
    return env, plan


@pytest.mark.parametrize(
    ("objects", "result"),
    [
        pytest.param([], None, id="it waits for its own patch"),
        pytest.param(
            [make_volume("pv", version="2", claim=DATA_CLAIM_REF)], None, id="it waits while the claim is not bound"
        ),
        pytest.param(
            [
                make_volume("pv", version="2", claim=DATA_CLAIM_REF),
                make_claim("data", "local", annotations=BIND_COMPLETED, volume="pv"),
            ],
            SUCCESS,
            id="it succeeds when the claim is bound",
        ),
        pytest.param(
            [
                make_volume("pv", version="2", claim=DATA_CLAIM_REF),
                make_claim("data", "local", annotations=BIND_COMPLETED),
            ],
            None,
            id="a claim without its volume is not bound",
        ),
        pytest.param(
            [
                make_volume("pv", version="2", claim=DATA_CLAIM_REF),
                make_volume("far", zone="b", claim=DATA_CLAIM_REF),
                make_claim("data", "local", annotations=BIND_COMPLETED, volume="far"),
            ],
            error_status('binding volumes: pvc "data" is bound to pv "far" instead of pv "pv"'),
            id="it fails when the claim is bound to the volume of an earlier attempt",
        ),
        pytest.param(
            [make_volume("pv", version="2")],
            error_status('binding volumes: ClaimRef got reset for pv "pv"'),
            id="it fails when the binding was undone",
        ),
        pytest.param(
            [make_volume("pv", version="2", zone="b", claim=DATA_CLAIM_REF)],
            error_status(
                'binding volumes: pv "pv" node affinity doesn\'t match node "node": no matching NodeSelectorTerms'
            ),
            id="it fails when the volume does not match the node",
        ),
    ],
)
def test_the_wait_for_a_static_binding(objects: list[Any], result: Status | None) -> None:
    env, plan = make_static_binding()
    env.add_objects(*objects)
    assert env.check_wait(plan) == result


def test_the_wait_fails_if_the_pod_the_node_or_the_volume_is_deleted() -> None:
    env, plan = make_static_binding()
    env.cache.remove_object(PersistentVolume, "pv")
    assert env.check_wait(plan) == error_status(
        'binding volumes: failed to check binding: persistentvolumes "pv" not found'
    )
    env.cache.remove_pod("uid-default-first")
    assert env.check_wait(plan) == error_status('binding volumes: pod does not exist any more: pod "first" not found')
    env.cache.remove_node("node")
    assert env.check_wait(plan) == error_status('binding volumes: failed to get node "node": node "node" not found')


@pytest.mark.parametrize(
    ("objects", "result"),
    [
        pytest.param([], None, id="it waits for its own patch"),
        pytest.param(
            [make_claim("data", "dynamic", version="2", annotations=SELECTED_NODE)], None, id="it waits for the driver"
        ),
        pytest.param(
            [make_claim("data", "dynamic", version="3", annotations={**SELECTED_NODE, **BIND_COMPLETED}, volume="pv")],
            None,
            id="it waits for a volume that the informer does not have yet",
        ),
        pytest.param(
            [
                make_volume("pv"),
                make_claim(
                    "data", "dynamic", version="3", annotations={**SELECTED_NODE, **BIND_COMPLETED}, volume="pv"
                ),
            ],
            SUCCESS,
            id="it succeeds when the claim is bound to a volume that is usable on the node",
        ),
        pytest.param(
            [
                make_volume("pv", zone="b"),
                make_claim(
                    "data", "dynamic", version="3", annotations={**SELECTED_NODE, **BIND_COMPLETED}, volume="pv"
                ),
            ],
            error_status(
                'binding volumes: pv "pv" node affinity doesn\'t match node "node": no matching NodeSelectorTerms'
            ),
            id="it fails when the volume was provisioned elsewhere",
        ),
        pytest.param(
            [make_claim("data", "dynamic", version="2", annotations={"x": "y"})],
            error_status('binding volumes: provisioning failed for PVC "data"'),
            id="it fails when the driver gave up",
        ),
        pytest.param(
            [make_claim("data", "dynamic", version="2")],
            error_status('binding volumes: selectedNode annotation reset for PVC "data"'),
            id="it fails when all annotations are gone",
        ),
    ],
)
def test_the_wait_for_dynamic_provisioning(objects: list[Any], result: Status | None) -> None:
    env = VolumeBindingTestEnv(make_claim("data", "dynamic"))
    pod = env.make_pod_info("first", "data")
    plan = env.plan(pod, env.reserve(pod))
    env.cache.assume(pod.pod, "node")
    env.add_objects(*objects)
    assert env.check_wait(plan) == result


def test_a_claim_with_the_selected_node_is_not_written_again() -> None:
    env = VolumeBindingTestEnv(make_claim("data", "dynamic", annotations=SELECTED_NODE))
    pod = env.make_pod_info("first", "data")
    plan = env.plan(pod, env.reserve(pod))
    env.cache.assume(pod.pod, "node")
    assert plan.calls == ()
    env.add_objects(
        make_claim("data", "dynamic", annotations={**SELECTED_NODE, **BIND_COMPLETED}, volume="pv"), make_volume("pv")
    )
    assert env.check_wait(plan) == SUCCESS


def test_pre_bind_pre_flight_of_unreserved_claims_is_an_error() -> None:
    env = VolumeBindingTestEnv(make_claim("data", "local"), make_volume("pv"))
    pod = env.make_pod_info("first", "data")
    result = env.plugin.pre_bind_pre_flight(pod, "node", env.state(pod))
    assert isinstance(result, Status)
    assert result.code is Code.ERROR
