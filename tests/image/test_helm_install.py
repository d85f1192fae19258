"""The chart installed with Helm on a real control plane, with running containers, in all three modes."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

import pytest
import yaml

from tests.chart.helm import CHART, helm
from tests.controlplane import programs
from tests.controlplane.api_client import ApiClient, JsonObject
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.process import free_ports
from tests.image.image_builder import Image
from tests.image.kubelet import Kubelet, RunningPod

RELEASE: Final = "x"
NAMESPACE: Final = "scheduling"
# Building the image takes five minutes on two cores that run other tests.
pytestmark = pytest.mark.timeout(1200)

_TIMEOUT: Final = 60.0
_POLL_INTERVAL: Final = 0.1


class HelmInstallation:
    """A cluster with one simulated kubelet, and Helm."""

    def __init__(self, plane: ControlPlane, kubelet: Kubelet, folder: Path) -> None:
        self.plane, self.node, self.folder = plane, kubelet, folder
        self.api: ApiClient = plane.client()
        self.verbs_port = 0
        self.running: list[RunningPod] = []

    def helm(self, verb: str, *arguments: str) -> str:
        """Run Helm in our namespace as the administrator."""
        flags = ["--kubeconfig", str(self.plane.write_kubeconfig()), "--namespace", NAMESPACE]
        return helm(verb, *flags, *arguments)

    def write_values(self, mode: str, **more: Any) -> str:
        """Write a file of values with one replica and new ports; return its path."""
        metrics, extender, self.verbs_port = free_ports(3)
        values: dict[str, Any] = {
            "mode": mode,
            "replicaCount": 1,
            "metrics": {"port": metrics, "extenderPort": extender},
        }
        values["extender"] = {"port": self.verbs_port}
        file = self.folder / f"{mode}.yaml"
        file.write_text(yaml.safe_dump({**values, **more}))
        return str(file)

    def list_pods(self) -> list[JsonObject]:
        """Return the pods of the release that are not terminating."""
        listed = json.loads(self.api.call("GET", f"/api/v1/namespaces/{NAMESPACE}/pods"))["items"]
        return [pod for pod in listed if not pod["metadata"].get("deletionTimestamp")]

    def wait_until(self, condition: Callable[[], Any], description: str) -> Any:
        """Wait until *condition* returns a true value, and return it."""
        deadline = monotonic() + _TIMEOUT
        while not (value := condition()):
            assert monotonic() < deadline, f"{description}\n" + "\n".join(pod.output() for pod in self.running)
            sleep(_POLL_INTERVAL)
        return value

    def start_pod(self) -> RunningPod:
        """Run the pending pod and wait until it is ready."""
        (pod,) = self.wait_until(
            lambda: [pod for pod in self.list_pods() if not pod["spec"].get("nodeName")], "no pod waits"
        )
        running = self.node.run(pod)
        self.running.append(running)
        self.node.wait_until_ready(running)
        return running

    def replace_pod(self) -> None:
        """Roll out a change of the Deployment: start the new pod, then stop the old one."""
        (old,) = self.running
        self.start_pod()
        is_terminating = self.wait_until(lambda: self._is_terminating(old), "the old pod stays")
        assert is_terminating
        results = self.node.stop(old)
        self.running.remove(old)
        assert {code for code, _ in results.values()} <= {0, 1}
        assert all(seconds < 5 for _, seconds in results.values())

    def _is_terminating(self, running: RunningPod) -> bool:
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{running.pod['metadata']['name']}"
        return "deletionTimestamp" in json.loads(self.api.call("GET", path))["metadata"]

    def schedule_pod(self, name: str, scheduler: str) -> str:
        """Create a pod for *scheduler* and return its node."""
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        spec = {"schedulerName": scheduler, "containers": [container]}
        pod = self.api.create({"kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec})
        placed = self.api.wait_for(pod, lambda now: bool(now["spec"].get("nodeName")), f"binding {name}")
        return str(placed["spec"]["nodeName"])

    def run_helm_test(self) -> str:
        """Run `helm test` and its pod; return the output."""
        codes: list[int] = []

        def run_test_pod() -> None:
            pod_name = f"{RELEASE}-extender-test-ready"
            found = self.wait_until(
                lambda: [pod for pod in self.list_pods() if pod["metadata"]["name"] == pod_name], "no test pod"
            )
            codes.append(self.node.wait_until_finished(self.node.run(found[0])))

        thread = threading.Thread(target=run_test_pod)
        thread.start()
        output = self.helm("test", RELEASE, "--timeout", "60s")
        thread.join()
        assert codes == [0]
        return output

    def close(self) -> None:
        """Kill all containers and delete the created objects."""
        for pod in self.running:
            for container in pod.containers.values():
                container.kill()
        self.api.delete_created()
        self.api.close()


@pytest.fixture
def installation(plane: ControlPlane, image: Image, files: Path, tmp_path: Path) -> Iterator[HelmInstallation]:
    """Create two nodes, one with a simulated kubelet, and a namespace that admits only restricted pods."""
    found = programs.find()
    assert not isinstance(found, str)
    node = Kubelet(plane, image, files, tmp_path, {"kube-scheduler": Path(found.path("kube-scheduler"))})
    installation = HelmInstallation(plane, node, tmp_path)
    capacity = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    for name in ("node", "other"):
        status = {"capacity": capacity, "allocatable": capacity}
        installation.api.create({"kind": "Node", "metadata": {"name": name}, "status": status})
    labels = {f"pod-security.kubernetes.io/{mode_}": "restricted" for mode_ in ("enforce", "warn", "audit")}
    installation.api.create({"kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}})
    try:
        yield installation
    finally:
        installation.helm("uninstall", RELEASE, "--ignore-not-found")
        installation.close()
        node.close()


@contextmanager
def install_release(installation: HelmInstallation, mode: str, **more: Any) -> Iterator[None]:
    """Install the release and wait until its pod is ready; uninstall it afterwards and check that nothing is left."""
    installation.helm("install", RELEASE, str(CHART), "--values", installation.write_values(mode, **more))
    installation.start_pod()
    yield
    installation.helm("uninstall", RELEASE)
    remaining = [
        *json.loads(installation.api.call("GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps"))["items"],
        *json.loads(installation.api.call("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles"))["items"],
    ]
    assert [pod["metadata"]["name"] for pod in remaining if RELEASE + "-extender" in pod["metadata"]["name"]] == []


def upgrade_and_rollback(installation: HelmInstallation, mode: str) -> None:
    """Run `helm upgrade` and `helm rollback`; each replaces the pod.

    Old and new pod run at the same time in one network, so the upgrade changes the ports and the rollback resets them.
    """
    qps = {"clientConnection": {"qps": 50, "burst": 100}}
    installation.helm("upgrade", RELEASE, str(CHART), "--values", installation.write_values(mode, **qps))
    installation.replace_pod()
    installation.helm("rollback", RELEASE, "1")
    installation.replace_pod()


def test_the_standalone_scheduler(installation: HelmInstallation) -> None:
    with install_release(installation, "standalone"):
        assert installation.schedule_pod("first", "extender") in {"node", "other"}
        assert "Phase:          Succeeded" in installation.run_helm_test()
        upgrade_and_rollback(installation, "standalone")
        assert installation.schedule_pod("second", "extender") in {"node", "other"}


def test_kube_scheduler_with_the_extender_beside_it(installation: HelmInstallation) -> None:
    with install_release(installation, "beside"):
        assert installation.schedule_pod("first", "extender") in {"node", "other"}
        assert "Phase:          Succeeded" in installation.run_helm_test()
        upgrade_and_rollback(installation, "beside")
        assert installation.schedule_pod("second", "extender") in {"node", "other"}


def test_the_service_with_a_kube_scheduler_that_has_a_client_certificate(installation: HelmInstallation) -> None:
    with install_release(installation, "service"):
        secret = json.loads(installation.api.call("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets/x-extender-client"))[
            "data"
        ]
        name = f"x-extender.{NAMESPACE}.svc"
        tls = {
            "caData": secret["ca.crt"],
            "certData": secret["tls.crt"],
            "keyData": secret["tls.key"],
            "serverName": name,
        }
        verbs = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 1, "nodeCacheCapable": True}
        extender = {
            "urlPrefix": f"https://127.0.0.1:{installation.verbs_port}",
            "enableHTTPS": True,
            "tlsConfig": tls,
            **verbs,
        }
        # Not the default scheduler, which would also schedule the pods of the release.
        installation.plane.start_kube_scheduler({"profiles": [{"schedulerName": "calling"}], "extenders": [extender]})
        assert installation.schedule_pod("first", "calling") in {"node", "other"}
        assert "Phase:          Succeeded" in installation.run_helm_test()
        upgrade_and_rollback(installation, "service")
        # The certificates are unchanged: kube-scheduler still has the first ones.
        assert installation.schedule_pod("second", "calling") in {"node", "other"}


def test_the_api_server_accepts_every_example(installation: HelmInstallation) -> None:
    for group, kinds in {
        "monitoring.coreos.com": ("ServiceMonitor", "PrometheusRule"),
        "cert-manager.io": ("Issuer", "Certificate"),
    }.items():
        for kind in kinds:
            _create_crd(installation.api, group, kind)
    for example in sorted(CHART.glob("ci/*-values.yaml")):
        name = example.stem.removesuffix("-values")[:20]
        installation.helm("install", name, str(CHART), "--values", str(example), "--dry-run=server")


def _create_crd(api: ApiClient, group: str, kind: str) -> None:
    """Create the CRD of a kind of another project, without a schema."""
    names = {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower()}
    anything = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": anything}
    spec: Mapping[str, Any] = {"group": group, "names": names, "scope": "Namespaced", "versions": [version]}
    body = {"metadata": {"name": f"{names['plural']}.{group}"}, "spec": spec}
    api.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
