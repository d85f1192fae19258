"""A simulated kubelet: runs the containers of pods from our image with runc."""

import base64
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

from tests.controlplane.api_client import ApiClient, JsonObject
from tests.controlplane.control_plane import ControlPlane
from tests.image.container import Container, ContainerSpec
from tests.image.image_builder import Image

NAME: Final = "node"
_SERVICE_ACCOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_TIMEOUT: Final = 60.0
_POLL_INTERVAL: Final = 0.1


def probe_succeeds(url: str) -> bool:
    """Return whether an HTTP probe succeeds with status 200; certificates are not verified."""
    tls_context = ssl.create_default_context()
    tls_context.check_hostname, tls_context.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(url, timeout=5, context=tls_context) as response:  # noqa: S310  only probe URLs
            return bool(response.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False


@dataclass(slots=True)
class RunningPod:
    """A pod that runs on this kubelet."""

    pod: JsonObject
    containers: dict[str, Container] = field(default_factory=dict)

    def output(self) -> str:
        """Return the output of all containers."""
        return "\n".join(f"--- {name}\n{entry.output()}" for name, entry in self.containers.items())


class Kubelet:
    """The kubelet of one node.

    Args:
        plane: the control plane.
        image, files: our image and its mounted files.
        folder: gets volumes, bundles and output.
        programs: files of the host that other containers run, by command.
    """

    def __init__(
        self, plane: ControlPlane, image: Image, files: Path, folder: Path, programs: Mapping[str, Path]
    ) -> None:
        self._plane = plane
        self._api: ApiClient = plane.client()
        self._image = image
        self._files = files
        self._folder = folder
        self._programs = programs
        self._folder_count = 0

    def run(self, pod: JsonObject) -> RunningPod:
        """Bind a pod to this node, run its init containers one after another, and start its containers."""
        path = self._pod_path(pod)
        target = {"apiVersion": "v1", "kind": "Node", "name": NAME}
        meta = {field: pod["metadata"][field] for field in ("namespace", "name", "uid")}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
        self._api.call("POST", f"{path}/binding", binding)
        running = RunningPod(pod)
        volumes = self._write_volumes(pod)
        for container in pod["spec"].get("initContainers", []):
            assert self._start(pod, container, volumes).wait() == 0
        for container in pod["spec"]["containers"]:
            running.containers[container["name"]] = self._start(pod, container, volumes)
        self._patch_status(pod, {"phase": "Running"})
        return running

    def wait_until_ready(self, running: RunningPod) -> None:
        """Wait until all readiness probes succeed, then write the conditions of the pod."""
        deadline = monotonic() + _TIMEOUT
        assert [name for name, entry in running.containers.items() if not entry.is_running()] == [], running.output()
        for container in running.pod["spec"]["containers"]:
            probe = container["readinessProbe"]["httpGet"]
            port = next(entry["containerPort"] for entry in container["ports"] if entry["name"] == probe["port"])
            while not probe_succeeds(f"{probe['scheme'].lower()}://127.0.0.1:{port}{probe['path']}"):
                assert running.containers[container["name"]].is_running(), running.output()
                assert monotonic() < deadline, running.output()
                sleep(_POLL_INTERVAL)
        conditions = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady", "PodScheduled")]
        self._patch_status(running.pod, {"conditions": conditions})

    def wait_until_finished(self, running: RunningPod) -> int:
        """Wait until the only container ends, write the phase, and return the exit status."""
        (container,) = running.containers.values()
        code = container.wait()
        self._patch_status(running.pod, {"phase": "Failed" if code else "Succeeded"})
        return code

    def stop(self, running: RunningPod) -> dict[str, tuple[int, float]]:
        """Terminate and delete a pod; return exit status and seconds of each container."""
        results = {name: entry.terminate() for name, entry in running.containers.items()}
        self._api.call("DELETE", f"{self._pod_path(running.pod)}?gracePeriodSeconds=0")
        return results

    def close(self) -> None:
        """Close all connections."""
        self._api.close()

    def _pod_path(self, pod: JsonObject) -> str:
        return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"

    def _patch_status(self, pod: JsonObject, status: Mapping[str, Any]) -> None:
        merge = {"Content-Type": "application/merge-patch+json"}
        self._api.call("PATCH", f"{self._pod_path(pod)}/status", {"status": status}, merge)

    def _new_folder(self) -> Path:
        self._folder_count += 1
        folder = self._folder / str(self._folder_count)
        folder.mkdir()
        return folder

    def _start(self, pod: JsonObject, container: JsonObject, volumes: Mapping[str, Path]) -> Container:
        context = {**pod["spec"]["securityContext"], **container["securityContext"]}
        assert context["readOnlyRootFilesystem"], "the root file system must be read-only"
        image_config = self._image.config()
        host, _, port = self._plane.url.removeprefix("https://").partition(":")
        env = [*image_config["Env"], f"KUBERNETES_SERVICE_HOST={host}", f"KUBERNETES_SERVICE_PORT={port}"]
        env += [f"{entry['name']}={entry['value']}" for entry in container.get("env", [])]
        command = [*container.get("command", image_config["Entrypoint"]), *container.get("args", [])]
        mount_entries = container.get("volumeMounts", [])
        mounts = {entry["mountPath"]: volumes[entry["name"]] for entry in mount_entries if entry.get("readOnly")}
        scratch = {entry["mountPath"]: volumes[entry["name"]] for entry in mount_entries if not entry.get("readOnly")}
        mounts |= {f"/usr/local/bin/{name}": file for name, file in self._programs.items()}
        mounts["/etc/hosts"] = self._write_hosts_file(pod)
        if pod["spec"].get("automountServiceAccountToken", True):
            mounts[_SERVICE_ACCOUNT_PATH] = self._write_service_account(pod)
        user = (context["runAsUser"], context["runAsGroup"])
        return Container(ContainerSpec(self._files, command, env, user, mounts, scratch), self._new_folder())

    def _write_hosts_file(self, pod: JsonObject) -> Path:
        """Write a hosts file with the names of services on loopback."""
        names = [f"{pod['metadata']['labels']['app.kubernetes.io/instance']}-extender", "localhost"]
        text = "".join(f"127.0.0.1 {name} {name}.{pod['metadata']['namespace']}.svc\n" for name in names)
        file = self._new_folder() / "hosts"
        file.write_text(text)
        return file

    def _write_service_account(self, pod: JsonObject) -> Path:
        """Request a token of the pod's service account and write it to a folder."""
        account, namespace = pod["spec"]["serviceAccountName"], pod["metadata"]["namespace"]
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        token_request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = json.loads(self._api.call("POST", path, token_request))["status"]["token"]
        return self._write_files({"token": token, "namespace": namespace, "ca.crt": self._plane.ca_file.read_text()})

    def _write_volumes(self, pod: JsonObject) -> dict[str, Path]:
        """Write the volumes of a pod; return a folder by volume name."""
        return {
            entry["name"]: self._write_volume(entry, pod["metadata"]["namespace"])
            for entry in pod["spec"].get("volumes", [])
        }

    def _write_volume(self, volume: JsonObject, namespace: str) -> Path:
        if "emptyDir" in volume:
            folder = self._new_folder()
            folder.chmod(0o777)
            return folder
        if source := volume.get("configMap"):
            data = json.loads(self._api.call("GET", f"/api/v1/namespaces/{namespace}/configmaps/{source['name']}"))[
                "data"
            ]
        else:
            source = volume["secret"]
            path = f"/api/v1/namespaces/{namespace}/secrets/{source['secretName']}"
            secret = json.loads(self._api.call("GET", path))["data"]
            data = {key: base64.b64decode(text).decode() for key, text in secret.items()}
        items = source.get("items") or [{"key": key, "path": key} for key in data]
        return self._write_files({item["path"]: data[item["key"]] for item in items})

    def _write_files(self, files: Mapping[str, str]) -> Path:
        folder = self._new_folder()
        for name, text in files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return folder
