"""Our extender beside a real kube-scheduler: the process with its certificates and rights, and how it is asked."""

import base64
import json
import os
import ssl
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import httpx2
import trustme

from extender import wiring
from extender.cluster.state import ClusterState
from extender.decide.feasible import feasible
from extender.offline.capture import load_state, parse_capture
from tests.controlplane.api import Api, RefusedError, Thing, key
from tests.controlplane.ours import lists
from tests.controlplane.plane import EXTENDER, ControlPlane
from tests.controlplane.process import Process, free_ports

CALLER: Final = "system:kube-scheduler"
KNOWN: Final = "the extender knows the cluster"

_PLUGIN: Final = Path(__file__).resolve().parents[2] / "docs" / "examples" / "plugin" / "src"
_READ: Final = {
    "": ["namespaces", "nodes", "persistentvolumeclaims", "persistentvolumes", "pods", "replicationcontrollers",
         "services"],
    "apps": ["replicasets", "statefulsets"],
    "policy": ["poddisruptionbudgets"],
    "storage.k8s.io": ["csidrivers", "csinodes", "csistoragecapacities", "storageclasses", "volumeattachments"],
    "resource.k8s.io": ["deviceclasses", "resourceclaims", "resourceslices"],
}  # fmt: skip
_RULES: Final = [
    *({"apiGroups": [group], "resources": names, "verbs": ["list", "watch"]} for group, names in _READ.items()),
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]},
    {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
    {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
]
"""What an extender with the verb bind may do, and no more."""


def grant(api: Api) -> None:
    """Gives our account its rights, if it does not have them yet."""
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    role = {"metadata": {"name": "extender"}, "rules": _RULES}
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": EXTENDER}
    reference = {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": "extender"}
    binding = {"metadata": {"name": "extender"}, "subjects": [subject], "roleRef": reference}
    for plural, body in (("clusterroles", role), ("clusterrolebindings", binding)):
        with suppress(RefusedError):
            api.call("POST", f"{rbac}/{plural}", body)


class Beside:
    """`extender serve` over TLS for callers with a certificate.

    Args:
        plane: whose cluster it is joined to.
        config: its KubeSchedulerConfiguration, fields that differ from the default.
        plugins: whether the example's plugins are installed.
        port: where it listens; 0 takes a free one.
    """

    def __init__(
        self, plane: ControlPlane, config: Mapping[str, Any] | None = None, *, plugins: bool = False, port: int = 0
    ) -> None:
        self._plane = plane
        self.port = port or free_ports(1)[0]
        self._authority, stranger = trustme.CA(), trustme.CA()
        self._caller = self._authority.issue_cert("caller.test", common_name=CALLER)
        self._strangers = {
            "another authority": stranger.issue_cert("caller.test", common_name=CALLER),
            "another name": self._authority.issue_cert("eve.test", common_name="eve"),
        }
        folder = plane.folder / f"extender-{self.port}"
        folder.mkdir(exist_ok=True)
        shown = self._authority.issue_cert("127.0.0.1")
        self._authority.cert_pem.write_to_path(folder / "ca.crt")
        shown.private_key_pem.write_to_path(folder / "tls.key")
        shown.cert_chain_pems[0].write_to_path(folder / "tls.crt")
        connection = {"kubeconfig": str(plane.kubeconfig(EXTENDER)), "qps": 1000, "burst": 1000}
        head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
        (folder / "config.json").write_text(json.dumps({**head, "clientConnection": connection, **(config or {})}))
        flags = {
            "config": folder / "config.json",
            "port": self.port,
            "tls-cert-file": folder / "tls.crt",
            "tls-private-key-file": folder / "tls.key",
            "client-ca-file": folder / "ca.crt",
            "allowed-client-names": CALLER,
        }
        self._command = [
            sys.executable,
            "-m",
            "extender",
            "serve",
            *(f"--{name}={value}" for name, value in flags.items()),
        ]
        if plugins:
            self._command = ["env", f"PYTHONPATH={_installed(folder)}", *self._command]
        self.process = self._started()

    def _started(self) -> Process:
        process = self._plane.run(self._command, f"extender-{self.port}")
        process.says(KNOWN)
        return process

    def again(self) -> None:
        """Starts it once more, after it was ended."""
        self.process = self._started()

    def entry(self, **more: Any) -> dict[str, Any]:
        """Its entry in kube-scheduler's configuration, with all verbs but bind."""
        texts = {
            "caData": self._authority.cert_pem,
            "certData": self._caller.cert_chain_pems[0],
            "keyData": self._caller.private_key_pem,
        }
        return {
            "urlPrefix": f"https://127.0.0.1:{self.port}",
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "preemptVerb": "preempt",
            "weight": 1,
            "enableHTTPS": True,
            "tlsConfig": {name: base64.b64encode(blob.bytes()).decode() for name, blob in texts.items()},
            "nodeCacheCapable": True,
            "httpTimeout": "5s",
            **more,
        }

    def ask(self, verb: str, body: Any, who: str = "") -> httpx2.Response:
        """One request by kube-scheduler, or by one of those who must not ask."""
        with httpx2.Client(verify=self._trust(who), trust_env=False, timeout=20.0) as client:
            return client.post(f"https://127.0.0.1:{self.port}/{verb}", json=body)

    def _trust(self, who: str = "") -> ssl.SSLContext:
        trust = ssl.create_default_context()
        self._authority.configure_trust(trust)
        if who != "nobody":
            self._strangers.get(who, self._caller).configure_cert(trust)
        return trust

    def pass_on(self, path: str, body: bytes) -> tuple[int, bytes]:
        """One request by kube-scheduler, as it stands: status and body of the answer."""
        with httpx2.Client(verify=self._trust(), trust_env=False, timeout=20.0) as client:
            answer = client.post(f"https://127.0.0.1:{self.port}{path}", content=body)
            return answer.status_code, answer.content

    def bind(self, **names: str) -> str:
        """The error that a request to bind is answered with."""
        return str(self.ask("bind", names).json()["Error"])


def _installed(folder: Path) -> str:
    """Where the example's plugins are installed."""
    site = folder / "site"
    info = site / "gpu_plugins-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gpu-plugins\nVersion: 1.0\n")
    entries = "GpuModel = gpu_plugins.gpu_model:GpuModel\nGpuPacking = gpu_plugins.gpu_packing:GpuPacking\n"
    (info / "entry_points.txt").write_text(f"[extender.plugins]\n{entries}")
    root = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join((str(site), str(_PLUGIN), root))


def violations(api: Api) -> list[str]:
    """Pods that, taken off their node, our default profile would not let go back there."""
    state = load_state(parse_capture(lists(api), "API server"))
    found = []
    for record in list(state.placed.values()):
        state.drop_pod(record.uid)
        said = _refusal(state, record.pod, record.node_name)
        if said:
            found.append(f"{record.key} on {record.node_name}: {said}")
        state.assume(record.pod, record.node_name)
    return found


def _refusal(state: ClusterState, pod: Any, node: str) -> str:
    profile, cluster = wiring.scheduling().first, state.snapshot()
    result = feasible(cluster.query(pod), cluster, profile, wiring.engine(), reasons=True)
    row = cluster.row(node)
    if row is None or result.feasible[row]:
        return ""
    return ", ".join(each.reason.text for each in result.refusals if each.nodes[row]) or result.before.absent


def nodes_of(api: Api) -> dict[str, str]:
    """The node of every pod by its key; empty for those that wait."""
    return {key(pod): pod["spec"].get("nodeName", "") for pod in json.loads(api.list("Pod"))["items"]}


def is_placed(pod: Thing) -> bool:
    """Whether the pod has a node."""
    return bool(pod["spec"].get("nodeName"))
