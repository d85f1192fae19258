"""The files of scheduler-config, loaded by a real kube-scheduler and by ours: each places pods, with our extender."""

import json
import ssl
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
import trustme
import yaml

from extender import wiring
from extender.policy import document
from extender.policy.text import text
from tests.controlplane.api import Api
from tests.controlplane.candidates import create, extender, settings, until_bound
from tests.controlplane.plane import ADMIN, ControlPlane
from tests.controlplane.process import free_ports

FOLDER: Final = Path(__file__).parents[2] / "scheduler-config"
FILES: Final = sorted(str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*.yaml"))
VERBS: Final = ("filterVerb", "prioritizeVerb", "bindVerb")
GPU: Final = "example.com/gpu"
CALLER: Final = "system:kube-scheduler"


@dataclass
class Answering:
    """`extender serve` as the files expect it: on this machine over HTTP, or over TLS for one caller."""

    plane: ControlPlane
    secure: bool

    def __post_init__(self) -> None:
        self.port = free_ports(1)[0]
        self.folder = self.plane.folder / f"answering-{self.port}"
        self.folder.mkdir()
        self._authority = trustme.CA()
        shown = self._authority.issue_cert("extender.kube-system.svc", "127.0.0.1")
        self._caller = self._authority.issue_cert("caller.test", common_name=CALLER)
        self._authority.cert_pem.write_to_path(str(self.folder / "ca.crt"))
        for leaf, name in ((shown, "tls"), (self._caller, "kube-scheduler")):
            leaf.cert_chain_pems[0].write_to_path(str(self.folder / f"{name}.crt"))
            leaf.private_key_pem.write_to_path(str(self.folder / f"{name}.key"))
        flags = {"kubeconfig": self.plane.kubeconfig(ADMIN), "port": self.port}
        if self.secure:
            flags |= {
                "tls-cert-file": self.folder / "tls.crt",
                "tls-private-key-file": self.folder / "tls.key",
                "client-ca-file": self.folder / "ca.crt",
                "allowed-client-names": CALLER,
            }
        command = [sys.executable, "-m", "extender", "serve", *(f"--{name}={value}" for name, value in flags.items())]
        self.plane.run(command, f"answering-{self.port}").says("the extender knows the cluster")

    def reached(self, entry: dict[str, Any]) -> dict[str, Any]:
        """*entry* of a file, with the address and the files that hold here."""
        address = f"{'https' if self.secure else 'http'}://127.0.0.1:{self.port}"
        files = {key: str(self.folder / Path(value).name) if key.endswith("File") else value
                 for key, value in entry.get("tlsConfig", {}).items()}  # fmt: skip
        return {**entry, "urlPrefix": address, **({"tlsConfig": files} if files else {})}

    def answered(self, verb: str) -> bool:
        """Whether a request with *verb* was answered with success."""
        trust = ssl.create_default_context()
        self._authority.configure_trust(trust)
        url = f"{'https' if self.secure else 'http'}://127.0.0.1:{self.port}/metrics"
        headers = {"Authorization": f"Bearer {self.plane.token(ADMIN)}"}
        with httpx2.Client(verify=trust, trust_env=False, timeout=20.0) as client:
            page = client.get(url, headers=headers)
        assert page.status_code == 200, page.text
        return f'extender_request_duration_seconds_count{{code="200",verb="{verb}"}}' in page.text


def shipped(file: str) -> dict[str, Any]:
    """What is in the file; of a Policy, the extenders as today's kube-scheduler spells them."""
    data = (FOLDER / file).read_bytes()
    if file != "policy.yaml":
        return dict(yaml.safe_load(data))
    converted = yaml.safe_load(text(wiring.from_policy(document.load(data, file)).configuration))
    return {"extenders": converted["extenders"]}


def a_pod(name: str, scheduler: str) -> dict[str, Any]:
    container = {"name": "app", "image": "app", "resources": {"limits": {GPU: "1"}}}
    spec = {"schedulerName": scheduler, "containers": [container]}
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def a_node(name: str) -> dict[str, Any]:
    room = {"cpu": "4", "memory": "8Gi", "pods": "110", GPU: "4"}
    return {"kind": "Node", "metadata": {"name": name}, "status": {"capacity": room, "allocatable": room}}


@pytest.mark.parametrize("ours", [False, True], ids=["kube-scheduler", "extender schedule"])
@pytest.mark.parametrize("file", FILES)
def test_a_shipped_file_is_loaded_and_places_pods(control_plane: ControlPlane, api: Api, file: str, ours: bool) -> None:
    create(api, [a_node("n1"), a_node("n2")])
    content = shipped(file)
    entries = content.get("extenders", [])
    answering = Answering(control_plane, secure=bool(entries and "tlsConfig" in entries[0])) if entries else None
    local = settings(control_plane)
    content |= {key: local[key] for key in ("apiVersion", "kind", "clientConnection", "leaderElection")}
    if answering is not None:
        content["extenders"] = [answering.reached(entry) for entry in entries]
    if ours:
        extender(control_plane, content)
    else:
        control_plane.scheduler(content)
    names = [profile["schedulerName"] for profile in content.get("profiles", [{"schedulerName": "default-scheduler"}])]
    create(api, (a_pod(f"pod-{number}", name) for number, name in enumerate(names)))
    until_bound(api, len(names))
    for key in VERBS:
        if answering is not None and key in entries[0]:
            assert answering.answered(entries[0][key])


def test_every_kind_of_file_is_there() -> None:
    assert {"filter-and-prioritize.yaml", "extender.yaml", "managed-resources.yaml", "mtls.yaml", "policy.yaml"} <= {
        *FILES
    }
    assert json.dumps(shipped("policy.yaml")["extenders"]).count("5s") == 1
