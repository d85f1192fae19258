"""The chart's roles on a real API server: everything they grant is used, and nothing else is asked for."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

import httpx2
import pytest
import yaml

from tests.chart.helm import by_name, rendered
from tests.controlplane import acts, programs
from tests.controlplane.api import Api, RefusedError, Thing, key
from tests.controlplane.plane import EXTENDER, SCHEDULER, ControlPlane
from tests.controlplane.process import free_ports

NAMESPACE: Final = "extender"
PATIENCE: Final = 30.0
STEP: Final = 0.1
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
EVERY_REQUEST: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [{"level": "Metadata", "users": [EXTENDER]}, {"level": "None"}],
}
CONFIGURATION: Final[dict[str, Any]] = {
    "profiles": [{"pluginConfig": [{"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 2}}]}]
}

LEFT: Final = ("VolumeBinding", "DynamicResources", "NodeResourcesFit")
"""What kube-scheduler leaves to an extender that binds."""

Right = tuple[str, str, str]
"""Group, resource and verb."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane that writes down every request of our account."""
    found = programs.find()
    if isinstance(found, str):
        (pytest.fail if os.environ.get("CONTROL_PLANE") == "required" else pytest.skip)(found)
    folder = tmp_path_factory.mktemp("control-plane")
    policy = folder / "every-request.json"
    policy.write_text(json.dumps(EVERY_REQUEST))
    plane = ControlPlane(found, folder, f"--audit-policy-file={policy}")
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()


class Granted:
    """The chart's roles and bindings for our account, in force."""

    def __init__(self, plane: ControlPlane, api: Api, folder: Path, **values: Any) -> None:
        file = folder / "values.yaml"
        file.write_text(yaml.safe_dump({"fullnameOverride": "extender", **values}))
        self._api = api
        self.since = plane.audit_log.stat().st_size
        self.objects = by_name(rendered(file, namespace=NAMESPACE))
        api.create({"kind": "Namespace", "metadata": {"name": NAMESPACE}})
        self._paths = []
        for one in self.objects.values():
            if one["apiVersion"].startswith("rbac."):
                space = one["metadata"].get("namespace")
                where = f"{RBAC}/namespaces/{space}/" if space else f"{RBAC}/"
                plural = f"{one['kind'].lower()}s"
                api.call("POST", where + plural, one)
                self._paths.append(f"{where}{plural}/{one['metadata']['name']}")

    @property
    def rights(self) -> set[Right]:
        """What the roles allow, one by one."""
        roles = [one for one in self.objects.values() if one["kind"] in {"ClusterRole", "Role"}]
        return {
            (group, resource, verb)
            for role in roles
            for rule in role["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }

    def withdraw(self) -> None:
        """As if nothing had been granted."""
        for path in self._paths:
            self._api.call("DELETE", path)


def asked(plane: ControlPlane, since: int) -> dict[Right, set[int]]:
    """What our account asked of the API server from byte *since* of the log on, and how it was answered."""
    found: dict[Right, set[int]] = {}
    for line in plane.audit_log.read_bytes()[since:].splitlines():
        event = json.loads(line)
        what = event.get("objectRef", {})
        if event["user"]["username"] == EXTENDER and "resource" in what:
            resource = "/".join(filter(None, (what["resource"], what.get("subresource"))))
            right = (what.get("apiGroup", ""), resource, event["verb"])
            found.setdefault(right, set()).add(event["responseStatus"]["code"])
    return found


AUTHORITIES: Final = ("", "configmaps", "get")
"""Read with the role of upstream's, which is bound and not ours."""

SILENT: Final = ("resource.k8s.io", "resourceclaims/binding", "patch")
"""Asked for by the API server itself when a claim's status is written; no request of ours bears its name."""


def judged(plane: ControlPlane, granted: Granted) -> None:
    """Nothing was refused, and what was granted and what was asked for are the same."""
    until = monotonic() + PATIENCE
    while granted.rights - set(done := asked(plane, granted.since)) - {SILENT} and monotonic() < until:
        sleep(STEP)  # a watch is written down once the server knows that it has ended
    assert {right: codes for right, codes in done.items() if 403 in codes} == {}
    assert granted.rights - set(done) - {SILENT} == set()
    assert set(done) - granted.rights - {AUTHORITIES} == set()


def a_cluster(api: Api, plane: ControlPlane) -> None:
    """What the story takes place in."""
    for thing in [*acts.nodes(), *acts.things()]:
        api.create(thing)
    plane.controllers(*acts.CONTROLLERS)
    api.wait_until("PersistentVolume", acts.all_available, "the volumes' becoming available")


def test_the_standalone_scheduler_uses_all_its_rights_and_misses_none(plane: ControlPlane, tmp_path: Path) -> None:
    with plane.api() as api:
        granted = Granted(plane, api, tmp_path, mode="standalone")
        port = free_ports(1)[0]
        try:
            a_cluster(api, plane)
            lease = {"leaderElect": True, "resourceName": "extender", "resourceNamespace": NAMESPACE}
            config = plane.configure({**CONFIGURATION, "leaderElection": lease}, EXTENDER)
            command = [sys.executable, "-m", "extender", "schedule", f"--config={config}", f"--secure-port={port}"]
            ours = plane.run([*command, f"--authentication-kubeconfig={plane.kubeconfig(EXTENDER)}",
                       f"--authorization-kubeconfig={plane.kubeconfig(EXTENDER)}"])  # fmt: skip
            acts.perform(api)
            told_twice(api)
            claimed_for_a_pod(api)
            assert metrics(plane, f"https://127.0.0.1:{port}") == 403
            plane.end(ours)
            judged(plane, granted)
        finally:
            plane.end_guests()
            api.clean()
            granted.withdraw()


@pytest.mark.parametrize("bind", [False, True], ids=["which only reads", "which binds"])
def test_the_service_uses_all_its_rights_and_misses_none(plane: ControlPlane, tmp_path: Path, bind: bool) -> None:
    """kube-scheduler leaves volumes and devices to the extender, so that it writes what must be written of them."""
    verbs = ["filter", "prioritize", "preempt", *(["bind"] if bind else [])]
    with plane.api() as api:
        granted = Granted(plane, api, tmp_path, mode="service", extender={"verbs": verbs})
        port = free_ports(1)[0]
        try:
            a_cluster(api, plane)
            whom = f"--kubeconfig={plane.kubeconfig(EXTENDER)}"
            ours = plane.run([sys.executable, "-m", "extender", "serve", whom, f"--port={port}"])
            address = f"http://127.0.0.1:{port}"
            asking = {f"{verb}Verb": verb for verb in verbs} | {"weight": 1, "nodeCacheCapable": True}
            left = [{"name": name} for name in (LEFT if bind else ())]
            profile = {"plugins": {"multiPoint": {"disabled": left}}}
            plane.scheduler({"extenders": [{"urlPrefix": address, **asking}], "profiles": [profile]})
            bound(api, acts.a_pod("plain"))
            if bind:
                bound(api, acts.a_pod("volume", **acts.mounting("local")))
                bound(api, acts.a_pod("device", **acts.using("gpu")))
                claimed_for_a_pod(api)
                promised(api)
            assert metrics(plane, address) == 403
            plane.end(ours)
            judged(plane, granted)
        finally:
            plane.end_guests()
            api.clean()
            granted.withdraw()


def promised(api: Api) -> None:
    """A pod whose volume must be made first: its claim is told the node."""
    api.create(acts.a_pod("promised", on="alpha", **acts.mounting("nobody")))
    chosen = "volume.kubernetes.io/selected-node"

    def told(claims: Mapping[str, Thing]) -> bool:
        return claims["default/nobody"]["metadata"].get("annotations", {}).get(chosen) == "alpha"

    api.wait_until("PersistentVolumeClaim", told, "the node's being told")


def bound(api: Api, manifest: Thing) -> None:
    """Creates a pod and waits for its node."""
    name = key(api.create(manifest))
    # On a busy machine the extender may answer too late; then kube-scheduler comes back to the pod after its backoff.
    api.wait_until("Pod", lambda pods: bool(pods[name]["spec"].get("nodeName")), f"binding {name}", 3 * PATIENCE)


def metrics(plane: ControlPlane, address: str) -> int:
    """The status that somebody gets who is known, and has no right to the metrics."""
    with httpx2.Client(verify=False) as client:
        token = {"Authorization": f"Bearer {plane.token(SCHEDULER)}"}
        return client.get(f"{address}/metrics", headers=token).status_code


def told_twice(api: Api) -> None:
    """A pod that nothing changes about is refused in the same words whenever its node appears: one event, counted."""
    room = {"cpu": "4", "memory": "8Gi", "pods": "30"}
    late = {"kind": "Node", "metadata": {"name": "late", "labels": {acts.HOST: "late"}}}
    api.create(acts.a_pod("again", "100", on="late"))
    until = monotonic() + PATIENCE
    while not any(event.get("series") for event in _events(api, "again")):
        assert monotonic() < until, _events(api, "again")
        node = api.create({**late, "status": {"capacity": room, "allocatable": room}})
        told = len(_events(api, "again"))
        pause = monotonic() + 3  # it backs off for a second or two before it is tried again
        while monotonic() < pause and len(_events(api, "again")) == told:
            sleep(STEP)
        api.delete(node)


def _events(api: Api, pod: str) -> list[Thing]:
    listed = json.loads(api.call("GET", "/apis/events.k8s.io/v1/namespaces/default/events"))["items"]
    return [event for event in listed if event["regarding"].get("name") == pod]


def claimed_for_a_pod(api: Api) -> None:
    """Devices asked for as an extended resource: a claim is made for the pod, and taken back if it cannot be bound."""
    pool = {"name": "alpha", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"ext-{number}"} for number in range(2)]
    offer = {"driver": "ext.example.com", "nodeName": "alpha", "pool": pool, "devices": devices}
    selector = {"cel": {"expression": 'device.driver == "ext.example.com"'}}
    spec = {"selectors": [selector], "extendedResourceName": "example.com/ext"}
    api.create({"kind": "ResourceSlice", "metadata": {"name": "alpha-ext"}, "spec": offer})
    api.create({"kind": "DeviceClass", "metadata": {"name": "ext"}, "spec": spec})
    wanted = {"resources": {"requests": {"example.com/ext": "1"}, "limits": {"example.com/ext": "1"}}}
    pod = api.create(acts.a_pod("extended", container=wanted))
    api.wait_for(pod, lambda each: each["spec"].get("nodeName") == "alpha", "binding of the pod with the resource")
    with unbindable(api, "stuck"):
        api.create(acts.a_pod("stuck", container=wanted))
        seen: set[str] = set()

        def came_and_went(claims: Mapping[str, Thing]) -> bool:
            now = {name for name in claims if "stuck" in name}
            seen.update(now)
            return bool(seen) and not now

        api.wait_until("ResourceClaim", came_and_went, "the claim's being made and taken back")


@contextmanager
def unbindable(api: Api, name: str) -> Iterator[None]:
    """Meanwhile the API server refuses to bind the pod of this name."""
    group = "/apis/admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}
    refusal = {"expression": f"request.name != '{name}'", "message": "not this one"}
    policy = {"metadata": {"name": "unbindable"}, "spec": {
        "failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]}, "validations": [refusal]}}  # fmt: skip
    binding = {"metadata": {"name": "unbindable"}, "spec": {"policyName": "unbindable", "validationActions": ["Deny"]}}
    both = (("validatingadmissionpolicies", policy), ("validatingadmissionpolicybindings", binding))
    for plural, body in both:
        api.call("POST", f"{group}/{plural}", body)
    probe = api.create(acts.a_pod(name, schedulerName="nobody"))
    target = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "nowhere"}}
    until = monotonic() + PATIENCE
    while "not this one" not in _answer(api, target):  # a policy is in force a moment later than it is there
        assert monotonic() < until
    api.delete(probe)
    yield
    for plural, _ in both:
        api.call("DELETE", f"{group}/{plural}/unbindable")


def _answer(api: Api, binding: Thing) -> str:
    """What the API server says to a binding, as a trial."""
    path = f"/api/v1/namespaces/default/pods/{binding['metadata']['name']}/binding?dryRun=All"
    try:
        return api.call("POST", path, binding).decode()
    except RefusedError as fault:
        return str(fault)
