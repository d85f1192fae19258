"""The kinds that are read of a live cluster, with the API versions of its release."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from extender.analysis.input.input_errors import UnreadableError
from extender.analysis.pod_selection import PodSelection
from extender.api.kinds.pod import Pod
from extender.app import cluster_reader, wiring
from extender.app.cluster_reader import ClusterReader, read_cluster_for_pods, read_cluster_kinds
from extender.client.errors import ApiError, ForbiddenError, NotFoundError, UnauthorizedError, UnreachableError
from extender.client.kubeconfig import CredentialSource
from extender.client.transport import Request, Transport

GROUPS = {
    "v1.36.3": "/apis/scheduling.k8s.io/v1alpha2/podgroups",
    "v1.37.2": "/apis/scheduling.k8s.io/v1beta1/podgroups",
}


class RecordedApi:
    """Answers the requests of a reader with lists, and records their paths."""

    def __init__(self, version: str, lists: dict[str, list[dict[str, Any]]]) -> None:
        self.paths: list[str] = []
        self._version, self._lists = version, lists

    async def call(self, request: Request) -> bytes:
        self.paths.append(request.path)
        if request.path == "/version":
            return json.dumps({"gitVersion": self._version}).encode()
        if request.path not in self._lists:
            raise NotFoundError("not found")
        return json.dumps({"metadata": {"resourceVersion": "1"}, "items": self._lists[request.path]}).encode()


def make_pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", "namespace": "default", "uid": "p"}, "spec": {"containers": [], **spec}}


@pytest.mark.parametrize("version", GROUPS)
def test_pod_groups_are_read_in_the_api_version_of_the_release(version: str) -> None:
    group = {"metadata": {"name": "train", "namespace": "default"}, "spec": {}}
    pods = [make_pod(schedulingGroup={"podGroupName": "train"})]
    api = RecordedApi(version, {"/api/v1/nodes": [], "/api/v1/pods": pods, GROUPS[version]: [group]})
    recording = asyncio.run(ClusterReader(cast("Transport", api)).read_kinds(["Node", "Pod"], "server"))
    assert recording.recorded_kinds == {"Node", "Pod", "PodGroup"}
    assert [type(obj).__name__ for obj in recording.objects] == ["Pod", "PodGroup"]
    assert recording.kubernetes_version == version


@pytest.mark.parametrize("has_claim", [False, True])
def test_device_claims_that_are_not_served_are_missing_if_a_pod_names_one(has_claim: bool) -> None:
    """An API server before 1.34 does not serve resource.k8s.io/v1, and may have claims of an older API version."""
    pods = [make_pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}] if has_claim else [])]
    api = RecordedApi("v1.33.13", {"/api/v1/nodes": [], "/api/v1/pods": pods})
    kinds = ["Node", "Pod", "ResourceClaim", "CSINode"]
    recording = asyncio.run(ClusterReader(cast("Transport", api)).read_kinds(kinds, "server"))
    reason = "the API server does not serve resourceclaims of resource.k8s.io/v1, which Kubernetes 1.34 and later have"
    assert recording.unreadable_kinds == ({"ResourceClaim": reason} if has_claim else {})
    assert recording.recorded_kinds == {"Node", "Pod", "CSINode", *([] if has_claim else ["ResourceClaim"])}


def test_pod_groups_of_coscheduling_that_are_not_served_are_missing_if_a_pod_has_the_label() -> None:
    pod = make_pod() | {"metadata": {"name": "p", "uid": "p", "labels": {"scheduling.x-k8s.io/pod-group": "train"}}}
    api = RecordedApi("v1.37.2", {"/api/v1/nodes": [], "/api/v1/pods": [pod]})
    recording = asyncio.run(ClusterReader(cast("Transport", api)).read_kinds(["Node", "Pod"], "server"))
    assert recording.recorded_kinds == {"Node", "Pod"}
    assert list(recording.unreadable_kinds) == ["CoschedulingPodGroup"]


def test_composite_pod_groups_are_read_if_a_pod_group_names_one() -> None:
    group = {"metadata": {"name": "train", "namespace": "default"}, "spec": {"parentCompositePodGroupName": "root"}}
    root = {"metadata": {"name": "root", "namespace": "default"}, "spec": {}}
    path = "/apis/scheduling.k8s.io/v1alpha3/compositepodgroups"
    pods = [make_pod(schedulingGroup={"podGroupName": "train"})]
    lists = {"/api/v1/nodes": [], "/api/v1/pods": pods, GROUPS["v1.37.2"]: [group], path: [root]}
    reader = ClusterReader(cast("Transport", RecordedApi("v1.37.2", lists)))
    recording = asyncio.run(reader.read_kinds(["Node", "Pod"], "server"))
    assert recording.recorded_kinds == {"Node", "Pod", "PodGroup", "CompositePodGroup"}


def test_pod_groups_are_not_read_if_no_pod_has_one() -> None:
    api = RecordedApi("v1.37.2", {"/api/v1/nodes": [], "/api/v1/pods": [make_pod()]})
    recording = asyncio.run(ClusterReader(cast("Transport", api)).read_kinds(["Node", "Pod"], "server"))
    assert recording.recorded_kinds == {"Node", "Pod"}
    assert api.paths == ["/version", "/api/v1/nodes", "/api/v1/pods"]


@pytest.mark.parametrize(("version", "api_version"), [("v1.36.3", "v1beta2"), ("v1.37.2", "v1")])
def test_device_taint_rules_are_read_if_there_are_devices(version: str, api_version: str) -> None:
    rule = {"metadata": {"name": "broken"}, "spec": {"taint": {"key": "broken", "effect": "NoSchedule"}}}
    resource_slice = {"metadata": {"name": "n1"}, "spec": {"driver": "d", "pool": {"name": "n1"}}}
    lists: dict[str, list[dict[str, Any]]] = {
        "/api/v1/nodes": [],
        "/api/v1/pods": [],
        "/apis/resource.k8s.io/v1/resourceslices": [resource_slice],
        f"/apis/resource.k8s.io/{api_version}/devicetaintrules": [rule],
    }
    reader = ClusterReader(cast("Transport", RecordedApi(version, lists)))
    recording = asyncio.run(reader.read_kinds(["Node", "Pod", "ResourceSlice"], "server"))
    assert recording.recorded_kinds == {"Node", "Pod", "ResourceSlice", "DeviceTaintRule"}
    assert [obj.metadata.name for obj in recording.objects] == ["n1", "broken"]


def test_a_server_without_nodes_and_pods_is_no_empty_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong address of a web server or a proxy answers 404 to everything."""

    @asynccontextmanager
    async def open_web_server(_: CredentialSource) -> AsyncIterator[tuple[RecordedApi, str]]:
        yield RecordedApi("v1.37.2", {}), "https://web"

    monkeypatch.setattr(cluster_reader, "open_transport", open_web_server)
    message = "https://web: not found; is this the address of a Kubernetes API server?"
    with pytest.raises(UnreadableError) as caught:
        read_cluster_kinds(CredentialSource(), ["Node", "Pod", "StorageClass"])
    assert str(caught.value) == message
    with pytest.raises(UnreadableError) as caught:
        read_cluster_for_pods(CredentialSource(), PodSelection(()), {})
    assert str(caught.value) == message


def test_a_workload_that_may_not_be_read_is_no_missing_workload(monkeypatch: pytest.MonkeyPatch) -> None:
    forbidden = 'deployments.apps "web" is forbidden: User "eve" cannot get resource "deployments"'

    class RestrictedApi(RecordedApi):
        async def call(self, request: Request) -> bytes:
            if request.path == "/apis/apps/v1/namespaces/shop/deployments/web":
                raise ForbiddenError(forbidden)
            return await super().call(request)

    @asynccontextmanager
    async def open_restricted(_: CredentialSource) -> AsyncIterator[tuple[RecordedApi, str]]:
        yield RestrictedApi("v1.37.2", {"/api/v1/nodes": [], "/api/v1/pods": []}), "https://api"

    monkeypatch.setattr(cluster_reader, "open_transport", open_restricted)
    with pytest.raises(UnreadableError) as caught:
        read_cluster_for_pods(CredentialSource(), PodSelection(("deployment/web",), "shop"), {})
    assert str(caught.value) == f'https://api: {forbidden}; grant the verb "get" on deployments'


@pytest.mark.parametrize("class_name", ["", "high"])
def test_a_workload_without_pods_has_the_priority_of_the_class_and_may_preempt_pods_with_budgets(
    class_name: str,
) -> None:
    pod_spec = {"schedulerName": "default-scheduler", "containers": [{"name": "a"}], "priorityClassName": class_name}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod_spec}
    deployment = {"metadata": {"name": "web", "namespace": "shop", "uid": "w"}, "spec": {"template": template}}

    class DeploymentApi(RecordedApi):
        async def call(self, request: Request) -> bytes:
            if request.path == "/apis/apps/v1/namespaces/shop/deployments/web":
                return json.dumps(deployment).encode()
            return await super().call(request)

    high = {"metadata": {"name": "high"}, "value": 1000, "globalDefault": True}
    lists = {
        "/api/v1/nodes": [],
        "/api/v1/pods": [make_pod(nodeName="n1", priority=0)],
        "/apis/scheduling.k8s.io/v1/priorityclasses": [high],
        "/apis/policy/v1/poddisruptionbudgets": [],
    }
    reader = ClusterReader(cast("Transport", DeploymentApi("v1.37.2", lists)))
    selection, profiles = PodSelection(("deployment/web",), "shop"), wiring.build_setup().profiles
    recording = asyncio.run(reader.read_for_pods(selection, profiles, "server"))
    assert [obj.spec.priority for obj in recording.objects if isinstance(obj, Pod)] == [0, 1000]
    assert "PodDisruptionBudget" in recording.recorded_kinds


def test_a_finished_job_is_read_with_a_pod_that_it_would_make() -> None:
    template = {"spec": {"containers": [{"name": "a", "image": "a"}]}}
    status = {"conditions": [{"type": "Complete", "status": "True"}]}
    job = {"metadata": {"name": "import", "namespace": "shop", "uid": "j"}, "spec": {"template": template}}

    class JobApi(RecordedApi):
        async def call(self, request: Request) -> bytes:
            if request.path == "/apis/batch/v1/namespaces/shop/jobs/import":
                return json.dumps({**job, "status": status}).encode()
            return await super().call(request)

    api = JobApi("v1.37.2", {"/api/v1/nodes": [], "/api/v1/pods": []})
    selection = PodSelection(("job/import",), "shop")
    recording = asyncio.run(ClusterReader(cast("Transport", api)).read_for_pods(selection, {}, "server"))
    assert len(recording.workload_pods["job/shop/import"]) == 1


def test_a_suspended_cron_job_is_read_with_a_pod_that_it_would_make_and_a_note() -> None:
    template = {"spec": {"containers": [{"name": "a", "image": "a"}]}}
    meta = {"name": "nightly", "namespace": "shop", "uid": "c"}
    cron_job = {"metadata": meta, "spec": {"suspend": True, "jobTemplate": {"spec": {"template": template}}}}

    class CronJobApi(RecordedApi):
        async def call(self, request: Request) -> bytes:
            if request.path == "/apis/batch/v1/namespaces/shop/cronjobs/nightly":
                return json.dumps(cron_job).encode()
            return await super().call(request)

    api = CronJobApi("v1.37.2", {"/api/v1/nodes": [], "/api/v1/pods": []})
    selection = PodSelection(("cronjob/nightly",), "shop")
    recording = asyncio.run(ClusterReader(cast("Transport", api)).read_for_pods(selection, {}, "server"))
    assert recording.workload_pods == {"cronjob/shop/nightly": ("shop/nightly-1",)}
    note = "cronjob/shop/nightly is suspended: it has pods after spec.suspend is set to false"
    assert recording.notes == (note,)


def test_a_pod_group_without_pods_is_not_read_as_a_workload() -> None:
    api = RecordedApi("v1.37.2", {"/api/v1/nodes": [], "/api/v1/pods": []})
    selection = PodSelection(("podgroup/train",), "ml")
    recording = asyncio.run(ClusterReader(cast("Transport", api)).read_for_pods(selection, {}, "server"))
    assert (recording.objects, recording.workload_pods) == ((), {})


def test_expired_credentials_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def open_with_old_token(_: CredentialSource) -> AsyncIterator[tuple[Any, str]]:
        raise UnauthorizedError("Unauthorized")
        yield

    monkeypatch.setattr(cluster_reader, "open_transport", open_with_old_token)
    with pytest.raises(UnreadableError) as caught:
        read_cluster_kinds(CredentialSource(), ["Node", "Pod"])
    message = "the credentials of the kubeconfig are not accepted (Unauthorized); log in again"
    assert str(caught.value) == f"the cluster: {message}"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            UnreachableError("GET /api/v1/nodes: no response in time", maybe_sent=True),
            "GET /api/v1/nodes: no response in time; check the server and the certificate-authority of the"
            " cluster in the kubeconfig, or use a recording with -f",
        ),
        (
            ForbiddenError('nodes is forbidden: User "system:anonymous" cannot list resource "nodes"'),
            'nodes is forbidden: User "system:anonymous" cannot list resource "nodes"; the user of the kubeconfig\'s'
            " context does not exist or has no credentials",
        ),
        (
            ForbiddenError('nodes is forbidden: User "eve" cannot list resource "nodes"'),
            'nodes is forbidden: User "eve" cannot list resource "nodes"; grant the verb "list" on nodes and pods'
            " in all namespaces, or use a recording with -f",
        ),
    ],
)
def test_an_error_of_the_server_says_what_to_check(
    monkeypatch: pytest.MonkeyPatch, error: ApiError, message: str
) -> None:
    @asynccontextmanager
    async def open_failing(_: CredentialSource) -> AsyncIterator[tuple[Any, str]]:
        raise error
        yield

    monkeypatch.setattr(cluster_reader, "open_transport", open_failing)
    with pytest.raises(UnreadableError) as caught:
        read_cluster_kinds(CredentialSource(), ["Node", "Pod"])
    assert str(caught.value) == f"the cluster: {message}"


def test_an_unreachable_server_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def open_unreachable(_: CredentialSource) -> AsyncIterator[tuple[Any, str]]:
        yield UnreachableTransport(), "https://api"

    class UnreachableTransport:
        async def call(self, request: Request) -> bytes:
            message, reason = "cannot connect to https://api: connection refused", "connection refused"
            raise UnreachableError(message, maybe_sent=False, connect_error=reason)

    monkeypatch.setattr(cluster_reader, "open_transport", open_unreachable)
    with pytest.raises(UnreadableError) as caught:
        read_cluster_kinds(CredentialSource(), ["Node", "Pod"])
    assert str(caught.value).startswith("https://api: cannot connect: connection refused; check the server")


QUOTA = 'pods "web-1" is forbidden: exceeded quota: team, requested: cpu=1, used: cpu=4, limited: cpu=4'


@pytest.mark.parametrize(("status", "notes"), [
    ("True", (f"deployment/shop/web: its controller cannot create pods: {QUOTA}",)),
    ("False", ()),
])  # fmt: skip
def test_a_workload_without_pods_is_read_with_the_reason_of_its_controller(status: str, notes: tuple[str, ...]) -> None:
    spec = {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}},
    }
    condition = {"type": "ReplicaFailure", "status": status, "reason": "FailedCreate", "message": QUOTA}
    metadata = {"name": "web", "namespace": "shop", "uid": "w"}

    class DeploymentApi(RecordedApi):
        async def call(self, request: Request) -> bytes:
            if request.path == "/apis/apps/v1/namespaces/shop/deployments/web":
                deployment = {"metadata": metadata, "spec": spec, "status": {"conditions": [condition]}}
                return json.dumps(deployment).encode()
            return await super().call(request)

    api = DeploymentApi("v1.37.2", {"/api/v1/nodes": [], "/api/v1/pods": []})
    selection = PodSelection(("deployment/web",), "shop")
    recording = asyncio.run(ClusterReader(cast("Transport", api)).read_for_pods(selection, {}, "server"))
    assert len(recording.workload_pods["deployment/shop/web"]) == 1
    assert recording.notes == notes
