"""The chart installed by Helm on a real control plane, its containers run, in all three topologies."""

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
from tests.controlplane.api import Api, Thing
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import free_ports
from tests.image.building import Image
from tests.image.node import Node, Running

RELEASE: Final = "x"
NAMESPACE: Final = "scheduling"
_PATIENCE: Final = 60.0
_STEP: Final = 0.1


class Site:
    """A cluster with one node that is played, and Helm to install on it."""

    def __init__(self, plane: ControlPlane, node: Node, folder: Path) -> None:
        self.plane, self.node, self.folder = plane, node, folder
        self.api: Api = plane.api()
        self.verbs_port = 0
        self.running: list[Running] = []

    def helm(self, verb: str, *arguments: str) -> str:
        """Helm in our namespace, as the administrator."""
        where = ["--kubeconfig", str(self.plane.kubeconfig()), "--namespace", NAMESPACE]
        return helm(verb, *where, *arguments)

    def values(self, mode: str, **more: Any) -> str:
        """A file of values: one replica, and ports of this machine, others each time."""
        metrics, extender, self.verbs_port = free_ports(3)
        own: dict[str, Any] = {"mode": mode, "replicaCount": 1, "metrics": {"port": metrics, "extenderPort": extender}}
        own["extender"] = {"port": self.verbs_port}
        file = self.folder / f"{mode}.yaml"
        file.write_text(yaml.safe_dump({**own, **more}))
        return str(file)

    def pods(self) -> list[Thing]:
        """The pods of the release that are not on their way out."""
        listed = json.loads(self.api.call("GET", f"/api/v1/namespaces/{NAMESPACE}/pods"))["items"]
        return [one for one in listed if not one["metadata"].get("deletionTimestamp")]

    def until(self, happened: Callable[[], Any], what: str) -> Any:
        """Waits for something; what it is then."""
        limit = monotonic() + _PATIENCE
        while not (found := happened()):
            assert monotonic() < limit, f"{what}\n" + "\n".join(one.printed() for one in self.running)
            sleep(_STEP)
        return found

    def start(self) -> Running:
        """Runs the pod that waits for a node, until it is ready."""
        (pod,) = self.until(lambda: [one for one in self.pods() if not one["spec"].get("nodeName")], "no pod waits")
        running = self.node.run(pod)
        self.running.append(running)
        self.node.until_ready(running)
        return running

    def replace(self) -> None:
        """Does what a change of the Deployment asks for: the new pod runs before the old one ends."""
        (old,) = self.running
        self.start()
        gone = self.until(lambda: self._leaving(old), "the old pod stays")
        assert gone
        ends = self.node.stop(old)
        self.running.remove(old)
        assert {code for code, _ in ends.values()} <= {0, 1}
        assert all(seconds < 5 for _, seconds in ends.values())

    def _leaving(self, running: Running) -> bool:
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{running.pod['metadata']['name']}"
        return "deletionTimestamp" in json.loads(self.api.call("GET", path))["metadata"]

    def place(self, name: str, scheduler: str) -> str:
        """Creates a pod for *scheduler* and waits for its node."""
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        spec = {"schedulerName": scheduler, "containers": [container]}
        pod = self.api.create({"kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec})
        placed = self.api.wait_for(pod, lambda now: bool(now["spec"].get("nodeName")), f"the placing of {name}")
        return str(placed["spec"]["nodeName"])

    def test(self) -> str:
        """`helm test`, whose pod is run as soon as it is there."""
        codes: list[int] = []

        def play() -> None:
            named = f"{RELEASE}-extender-test-ready"
            found = self.until(lambda: [one for one in self.pods() if one["metadata"]["name"] == named], "no test pod")
            codes.append(self.node.finish(self.node.run(found[0])))

        player = threading.Thread(target=play)
        player.start()
        told = self.helm("test", RELEASE, "--timeout", "60s")
        player.join()
        assert codes == [0]
        return told

    def close(self) -> None:
        """Ends all containers, whatever they do."""
        for one in self.running:
            for container in one.containers.values():
                container.kill()
        self.api.clean()
        self.api.close()


@pytest.fixture
def site(plane: ControlPlane, image: Image, files: Path, tmp_path: Path) -> Iterator[Site]:
    """Two nodes that take pods, of which one is played, and a namespace that takes only restricted pods."""
    found = programs.find()
    assert not isinstance(found, str)
    node = Node(plane, image, files, tmp_path, {"kube-scheduler": Path(found.path("kube-scheduler"))})
    site = Site(plane, node, tmp_path)
    room = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    for name in ("node", "other"):
        site.api.create({"kind": "Node", "metadata": {"name": name}, "status": {"capacity": room, "allocatable": room}})
    strict = {f"pod-security.kubernetes.io/{how}": "restricted" for how in ("enforce", "warn", "audit")}
    site.api.create({"kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": strict}})
    try:
        yield site
    finally:
        site.helm("uninstall", RELEASE, "--ignore-not-found")
        site.close()
        node.close()


@contextmanager
def installed(site: Site, mode: str, **more: Any) -> Iterator[None]:
    """The release is there and its pod is ready; at the end everything of it is gone."""
    site.helm("install", RELEASE, str(CHART), "--values", site.values(mode, **more))
    site.start()
    yield
    site.helm("uninstall", RELEASE)
    left = [
        *json.loads(site.api.call("GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps"))["items"],
        *json.loads(site.api.call("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles"))["items"],
    ]
    assert [one["metadata"]["name"] for one in left if RELEASE + "-extender" in one["metadata"]["name"]] == []


def changed_and_changed_back(site: Site, mode: str) -> None:
    """`helm upgrade` and `helm rollback`, each of which puts a new pod in the place of the old one.

    Both share a network here and are there at once, so the upgrade moves the ports and the rollback moves them back.
    """
    qps = {"clientConnection": {"qps": 50, "burst": 100}}
    site.helm("upgrade", RELEASE, str(CHART), "--values", site.values(mode, **qps))
    site.replace()
    site.helm("rollback", RELEASE, "1")
    site.replace()


def test_the_standalone_scheduler(site: Site) -> None:
    with installed(site, "standalone"):
        assert site.place("first", "extender") in {"node", "other"}
        assert "Phase:          Succeeded" in site.test()
        changed_and_changed_back(site, "standalone")
        assert site.place("second", "extender") in {"node", "other"}


def test_kube_scheduler_with_the_extender_beside_it(site: Site) -> None:
    with installed(site, "beside"):
        assert site.place("first", "extender") in {"node", "other"}
        assert "Phase:          Succeeded" in site.test()
        changed_and_changed_back(site, "beside")
        assert site.place("second", "extender") in {"node", "other"}


def test_the_service_called_by_a_kube_scheduler_with_the_client_s_certificate(site: Site) -> None:
    with installed(site, "service"):
        secret = json.loads(site.api.call("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets/x-extender-client"))["data"]
        name = f"x-extender.{NAMESPACE}.svc"
        tls = {
            "caData": secret["ca.crt"],
            "certData": secret["tls.crt"],
            "keyData": secret["tls.key"],
            "serverName": name,
        }
        verbs = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 1, "nodeCacheCapable": True}
        extender = {"urlPrefix": f"https://127.0.0.1:{site.verbs_port}", "enableHTTPS": True, "tlsConfig": tls, **verbs}
        # Not the default scheduler, which would also place the release's own pods.
        site.plane.scheduler({"profiles": [{"schedulerName": "calling"}], "extenders": [extender]})
        assert site.place("first", "calling") in {"node", "other"}
        assert "Phase:          Succeeded" in site.test()
        changed_and_changed_back(site, "service")
        # The certificates are those made at first: kube-scheduler has its copy.
        assert site.place("second", "calling") in {"node", "other"}


def test_the_api_server_takes_every_example(site: Site) -> None:
    for group, kinds in {
        "monitoring.coreos.com": ("ServiceMonitor", "PrometheusRule"),
        "cert-manager.io": ("Issuer", "Certificate"),
    }.items():
        for kind in kinds:
            _define(site.api, group, kind)
    for example in sorted(CHART.glob("ci/*-values.yaml")):
        name = example.stem.removesuffix("-values")[:20]
        site.helm("install", name, str(CHART), "--values", str(example), "--dry-run=server")


def _define(api: Api, group: str, kind: str) -> None:
    """A kind of other projects, with no rules about its fields."""
    names = {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower()}
    anything = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": anything}
    spec: Mapping[str, Any] = {"group": group, "names": names, "scope": "Namespaced", "versions": [version]}
    body = {"metadata": {"name": f"{names['plural']}.{group}"}, "spec": spec}
    api.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
