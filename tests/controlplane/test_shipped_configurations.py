"""The files of scheduler-config with a real kube-scheduler and with ours: pods are bound, with our extender."""

import json
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
import trustme
import yaml

from extender.app import wiring
from extender.config.legacy_policy import policy_document
from extender.config.render import render_without_defaults
from tests.controlplane.api_client import ApiClient
from tests.controlplane.control_plane import ADMIN, ControlPlane
from tests.controlplane.process import free_ports
from tests.controlplane.programs import make_extender_command
from tests.controlplane.scheduler_processes import create_all, make_configuration, start_scheduler, wait_until_bound

FOLDER: Final = Path(__file__).parents[2] / "scheduler-config"
FILES: Final = sorted(str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*.yaml"))
VERBS: Final = ("filterVerb", "prioritizeVerb", "bindVerb")
GPU: Final = "example.com/gpu"
CLIENT_NAME: Final = "system:kube-scheduler"


@dataclass
class ServedExtender:
    """`extender serve` as the files expect it: over HTTP, or over TLS for one client."""

    plane: ControlPlane
    secure: bool

    def __post_init__(self) -> None:
        self.port = free_ports(1)[0]
        self.folder = self.plane.folder / f"served-extender-{self.port}"
        self.folder.mkdir()
        self._ca = trustme.CA()
        server_cert = self._ca.issue_cert("extender.kube-system.svc", "127.0.0.1")
        self._client_cert = self._ca.issue_cert("caller.test", common_name=CLIENT_NAME)
        self._ca.cert_pem.write_to_path(str(self.folder / "ca.crt"))
        for certificate, name in ((server_cert, "tls"), (self._client_cert, "kube-scheduler")):
            certificate.cert_chain_pems[0].write_to_path(str(self.folder / f"{name}.crt"))
            certificate.private_key_pem.write_to_path(str(self.folder / f"{name}.key"))
        flags = {"kubeconfig": self.plane.write_kubeconfig(ADMIN), "port": self.port}
        if self.secure:
            flags |= {
                "tls-cert-file": self.folder / "tls.crt",
                "tls-private-key-file": self.folder / "tls.key",
                "client-ca-file": self.folder / "ca.crt",
                "allowed-client-names": CLIENT_NAME,
            }
        command = make_extender_command("serve", *(f"--{name}={value}" for name, value in flags.items()))
        self.plane.start_program(command, f"served-extender-{self.port}").wait_for_output(
            "the cache of the extender is synced"
        )

    def localize(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Return an entry of a file with the address and the certificates of this process."""
        address = f"{'https' if self.secure else 'http'}://127.0.0.1:{self.port}"
        tls_files = {key: str(self.folder / Path(value).name) if key.endswith("File") else value
                 for key, value in entry.get("tlsConfig", {}).items()}  # fmt: skip
        return {**entry, "urlPrefix": address, **({"tlsConfig": tls_files} if tls_files else {})}

    def has_served(self, verb: str) -> bool:
        """Return whether a request with *verb* has succeeded."""
        tls_context = ssl.create_default_context()
        self._ca.configure_trust(tls_context)
        url = f"{'https' if self.secure else 'http'}://127.0.0.1:{self.port}/metrics"
        headers = {"Authorization": f"Bearer {self.plane.token(ADMIN)}"}
        with httpx2.Client(verify=tls_context, trust_env=False, timeout=20.0) as client:
            response = client.get(url, headers=headers)
        assert response.status_code == 200, response.text
        return f'extender_request_duration_seconds_count{{code="200",verb="{verb}"}}' in response.text


def load_configuration(file: str) -> dict[str, Any]:
    """Load a file; of a Policy, the converted extenders."""
    data = (FOLDER / file).read_bytes()
    if file != "policy.yaml":
        return dict(yaml.safe_load(data))
    converted = yaml.safe_load(
        render_without_defaults(wiring.build_setup_from_policy(policy_document.load_policy(data, file)).configuration)
    )
    return {"extenders": converted["extenders"]}


def make_pod(name: str, scheduler: str) -> dict[str, Any]:
    container = {"name": "app", "image": "app", "resources": {"limits": {GPU: "1"}}}
    spec = {"schedulerName": scheduler, "containers": [container]}
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def make_node(name: str) -> dict[str, Any]:
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "110", GPU: "4"}
    return {"kind": "Node", "metadata": {"name": name}, "status": {"capacity": capacity, "allocatable": capacity}}


@pytest.mark.parametrize("ours", [False, True], ids=["kube-scheduler", "extender schedule"])
@pytest.mark.parametrize("file", FILES)
def test_a_shipped_file_is_loaded_and_places_pods(
    control_plane: ControlPlane, api: ApiClient, file: str, ours: bool
) -> None:
    create_all(api, [make_node("n1"), make_node("n2")])
    content = load_configuration(file)
    entries = content.get("extenders", [])
    extender_process = (
        ServedExtender(control_plane, secure=bool(entries and "tlsConfig" in entries[0])) if entries else None
    )
    base_configuration = make_configuration(control_plane)
    content |= {key: base_configuration[key] for key in ("apiVersion", "kind", "clientConnection", "leaderElection")}
    if extender_process is not None:
        content["extenders"] = [extender_process.localize(entry) for entry in entries]
    if ours:
        start_scheduler(control_plane, content)
    else:
        control_plane.start_kube_scheduler(content)
    scheduler_names = [
        profile["schedulerName"] for profile in content.get("profiles", [{"schedulerName": "default-scheduler"}])
    ]
    create_all(api, (make_pod(f"pod-{number}", name) for number, name in enumerate(scheduler_names)))
    wait_until_bound(api, len(scheduler_names))
    for key in VERBS:
        if extender_process is not None and key in entries[0]:
            assert extender_process.has_served(entries[0][key])


def test_bind_uses_the_claim_that_kube_scheduler_creates_for_extended_resources(
    control_plane: ControlPlane, api: ApiClient
) -> None:
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    slice_spec = {"driver": "gpu.example.com", "nodeName": "n1", "pool": pool, "devices": [{"name": "gpu-0"}]}
    selector = {"cel": {"expression": 'device.driver == "gpu.example.com"'}}
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    objects = (
        {"kind": "Node", "metadata": {"name": "n1"}, "status": {"capacity": capacity, "allocatable": capacity}},
        {"kind": "ResourceSlice", "metadata": {"name": "n1"}, "spec": slice_spec},
        {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {
            "selectors": [selector], "extendedResourceName": GPU}},
    )  # fmt: skip
    create_all(api, objects)
    extender_process, content = ServedExtender(control_plane, secure=False), make_configuration(control_plane)
    entries = load_configuration("extender.yaml")["extenders"]
    content["extenders"] = [extender_process.localize(entry) for entry in entries]
    control_plane.start_kube_scheduler(content)
    create_all(api, (make_pod("trainer", "default-scheduler"),))
    wait_until_bound(api, 1)
    assert extender_process.has_served("bind")
    claims = [claim["metadata"] for claim in json.loads(api.list("ResourceClaim"))["items"]]
    owners = [owner["name"] for claim in claims for owner in claim["ownerReferences"]]
    assert owners.count("trainer") == 1, claims


def test_all_kinds_of_files_exist() -> None:
    assert {"filter-and-prioritize.yaml", "extender.yaml", "managed-resources.yaml", "mtls.yaml", "policy.yaml"} <= {
        *FILES
    }
    assert json.dumps(load_configuration("policy.yaml")["extenders"]).count("5s") == 1
