"""An `extender serve` process with certificates and permissions, as an extender of a real kube-scheduler."""

import base64
import json
import os
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import httpx2
import trustme

from extender.analysis.recorded_cluster import load_cache, parse_recording
from extender.app import wiring
from extender.cache.cache import Cache
from extender.cycle.diagnosis import find_nodes_that_pass_filters
from tests.controlplane.api_client import ApiClient, JsonObject, object_key
from tests.controlplane.control_plane import EXTENDER, ControlPlane
from tests.controlplane.offline_scheduler import list_objects
from tests.controlplane.process import Process, free_ports
from tests.controlplane.programs import make_extender_command

CLIENT_NAME: Final = "system:kube-scheduler"
READY_MESSAGE: Final = "the cache of the extender is synced"

_PLUGIN_PATH: Final = Path(__file__).resolve().parents[2] / "docs" / "examples" / "plugin" / "src"
_READ_RESOURCES: Final = {
    "": ["namespaces", "nodes", "persistentvolumeclaims", "persistentvolumes", "pods", "replicationcontrollers",
         "services"],
    "apps": ["replicasets", "statefulsets"],
    "policy": ["poddisruptionbudgets"],
    "storage.k8s.io": ["csidrivers", "csinodes", "csistoragecapacities", "storageclasses", "volumeattachments"],
    "resource.k8s.io": ["deviceclasses", "devicetaintrules", "resourceclaims", "resourceslices"],
}  # fmt: skip
_RULES: Final = [
    *(
        {"apiGroups": [group], "resources": names, "verbs": ["list", "watch"]}
        for group, names in _READ_RESOURCES.items()
    ),
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]},
    {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
    {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
]
"""All permissions that an extender with the verb bind needs."""


def grant_permissions(api: ApiClient, *rules: Mapping[str, Any]) -> None:
    """Grant the extender its permissions, and those of further rules, until `delete_created`."""
    role = {"kind": "ClusterRole", "metadata": {"name": "extender"}, "rules": [*_RULES, *rules]}
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": EXTENDER}
    reference = {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": "extender"}
    binding = {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "extender"},
        "subjects": [subject],
        "roleRef": reference,
    }
    for manifest in (role, binding):
        api.create(manifest)


class ExtenderProcess:
    """`extender serve` over TLS for clients with a certificate.

    Args:
        plane: the control plane.
        config: fields of its KubeSchedulerConfiguration that differ from the default.
        plugins: whether the plugins of the example are installed.
        port: the port; 0 means a free one.
        more_flags: additional flags.
    """

    def __init__(
        self,
        plane: ControlPlane,
        config: Mapping[str, Any] | None = None,
        *,
        plugins: bool = False,
        port: int = 0,
        more_flags: Sequence[str] = (),
    ) -> None:
        self._plane = plane
        self.port = port or free_ports(1)[0]
        self._ca, other_ca = trustme.CA(), trustme.CA()
        self._client_cert = self._ca.issue_cert("caller.test", common_name=CLIENT_NAME)
        self._other_certs = {
            "another authority": other_ca.issue_cert("caller.test", common_name=CLIENT_NAME),
            "another name": self._ca.issue_cert("eve.test", common_name="eve"),
        }
        folder = plane.folder / f"extender-{self.port}"
        folder.mkdir(exist_ok=True)
        server_cert = self._ca.issue_cert("127.0.0.1")
        self._ca.cert_pem.write_to_path(folder / "ca.crt")
        server_cert.private_key_pem.write_to_path(folder / "tls.key")
        server_cert.cert_chain_pems[0].write_to_path(folder / "tls.crt")
        connection = {"kubeconfig": str(plane.write_kubeconfig(EXTENDER)), "qps": 1000, "burst": 1000}
        head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
        (folder / "config.json").write_text(json.dumps({**head, "clientConnection": connection, **(config or {})}))
        flags = {
            "config": folder / "config.json",
            "port": self.port,
            "tls-cert-file": folder / "tls.crt",
            "tls-private-key-file": folder / "tls.key",
            "client-ca-file": folder / "ca.crt",
            "allowed-client-names": CLIENT_NAME,
        }
        self._command = make_extender_command(
            "serve", *(f"--{name}={value}" for name, value in flags.items()), *more_flags
        )
        if plugins:
            self._command = ["env", f"PYTHONPATH={_install_plugins(folder)}", *self._command]
        self.process = self._start()

    def _start(self) -> Process:
        process = self._plane.start_program(self._command, f"extender-{self.port}")
        process.wait_for_output(READY_MESSAGE)
        return process

    def restart(self) -> None:
        """Start the extender again after it ended."""
        self.process = self._start()

    def configuration_entry(self, **fields: Any) -> dict[str, Any]:
        """Return the extender's entry in the configuration of kube-scheduler, with all verbs but bind."""
        texts = {
            "caData": self._ca.cert_pem,
            "certData": self._client_cert.cert_chain_pems[0],
            "keyData": self._client_cert.private_key_pem,
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
            **fields,
        }

    def send(self, verb: str, body: Any, identity: str = "") -> httpx2.Response:
        """Send a request as kube-scheduler, or as a client that is not allowed."""
        with httpx2.Client(verify=self._tls_context(identity), trust_env=False, timeout=20.0) as client:
            return client.post(f"https://127.0.0.1:{self.port}/{verb}", json=body)

    def read_metrics(self) -> dict[str, float]:
        """Return the values of `/metrics` by name and labels; the process needs a flag that allows the page."""
        with httpx2.Client(verify=self._tls_context(), trust_env=False, timeout=20.0) as client:
            lines = client.get(f"https://127.0.0.1:{self.port}/metrics").raise_for_status().text.splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines) if name[:1] != "#"}

    def _tls_context(self, identity: str = "") -> ssl.SSLContext:
        trust = ssl.create_default_context()
        self._ca.configure_trust(trust)
        if identity != "no certificate":
            self._other_certs.get(identity, self._client_cert).configure_cert(trust)
        return trust

    def forward(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Forward a request of kube-scheduler; return status and body of the response."""
        with httpx2.Client(verify=self._tls_context(), trust_env=False, timeout=20.0) as client:
            response = client.post(
                f"https://127.0.0.1:{self.port}{path}", content=body, headers={"Content-Type": "application/json"}
            )
            return response.status_code, response.content

    def bind(self, **names: str) -> str:
        """Send a bind request and return the error of the response."""
        return str(self.send("bind", names).json()["Error"])


def _install_plugins(folder: Path) -> str:
    """Install the plugins of the example and return the PYTHONPATH."""
    site = folder / "site"
    info = site / "gpu_plugins-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gpu-plugins\nVersion: 1.0\n")
    entries = "GpuModel = gpu_plugins.gpu_model:GpuModel\nGpuPacking = gpu_plugins.gpu_packing:GpuPacking\n"
    (info / "entry_points.txt").write_text(f"[extender.plugins]\n{entries}")
    root = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join((str(site), str(_PLUGIN_PATH), root))


def find_rejected_assignments(api: ApiClient) -> list[str]:
    """Return the assigned pods that our default profile would now reject on their nodes."""
    cache = load_cache(parse_recording(list_objects(api), "API server"))
    rejected = []
    for record in list(cache.assigned_pods.values()):
        cache.remove_pod(record.uid)
        reason = _rejection_reason(cache, record.pod, record.node_name)
        if reason:
            rejected.append(f"{record.key} on {record.node_name}: {reason}")
        cache.assume(record.pod, record.node_name)
    return rejected


def _rejection_reason(cache: Cache, pod: Any, node: str) -> str:
    profile, snapshot = wiring.build_setup().first_profile, cache.snapshot()
    result = find_nodes_that_pass_filters(
        snapshot.make_pod_info(pod), snapshot, profile, wiring.make_runtime(), with_rejections=True
    )
    row = snapshot.row(node)
    if row is None or result.feasible[row]:
        return ""
    return (
        ", ".join(rejection.reason.text for rejection in result.rejections if rejection.nodes[row])
        or result.pre_filter_run.excluded_reason
    )


def node_names_by_pod(api: ApiClient) -> dict[str, str]:
    """Return the node of every pod by key; empty for pending pods."""
    return {object_key(pod): pod["spec"].get("nodeName", "") for pod in json.loads(api.list("Pod"))["items"]}


def is_assigned(pod: JsonObject) -> bool:
    """Return whether the pod has a node."""
    return bool(pod["spec"].get("nodeName"))
