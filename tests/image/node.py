"""The one node of a cluster, played by runc: containers of pods run from our image, as a kubelet would run them."""

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

from tests.controlplane.api import Api, Thing
from tests.controlplane.plane import ControlPlane
from tests.image.building import Image
from tests.image.running import Container, Program

NAME: Final = "node"
_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_PATIENCE: Final = 60.0
_STEP: Final = 0.1


def answers(url: str) -> bool:
    """Whether a probe succeeds: a status of 200, whoever signed the certificate."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(url, timeout=5, context=trusting) as answer:  # noqa: S310  a probe of ours
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False


@dataclass(slots=True)
class Running:
    """A pod that runs here."""

    pod: Thing
    containers: dict[str, Container] = field(default_factory=dict)

    def printed(self) -> str:
        """What all containers have printed."""
        return "\n".join(f"--- {name}\n{one.printed()}" for name, one in self.containers.items())


class Node:
    """Runs pods.

    Args:
        plane: whose pods.
        image, files: what every container of ours runs.
        folder: for volumes, bundles and output.
        programs: files of this machine that other containers run, by command.
    """

    def __init__(
        self, plane: ControlPlane, image: Image, files: Path, folder: Path, programs: Mapping[str, Path]
    ) -> None:
        self._plane = plane
        self._api: Api = plane.api()
        self._image = image
        self._files = files
        self._folder = folder
        self._programs = programs
        self._count = 0

    def run(self, pod: Thing) -> Running:
        """Takes a pod that nobody has placed, and starts its containers, init containers first and each to its end."""
        path = self._path(pod)
        target = {"apiVersion": "v1", "kind": "Node", "name": NAME}
        meta = {field: pod["metadata"][field] for field in ("namespace", "name", "uid")}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
        self._api.call("POST", f"{path}/binding", binding)
        running = Running(pod)
        places = self._volumes(pod)
        for container in pod["spec"].get("initContainers", []):
            assert self._start(pod, container, places).ended() == 0
        for container in pod["spec"]["containers"]:
            running.containers[container["name"]] = self._start(pod, container, places)
        self._tell(pod, {"phase": "Running"})
        return running

    def until_ready(self, running: Running) -> None:
        """Waits until every container passes its readiness probe, and says so of the pod."""
        limit = monotonic() + _PATIENCE
        assert [name for name, one in running.containers.items() if not one.running()] == [], running.printed()
        for container in running.pod["spec"]["containers"]:
            probe = container["readinessProbe"]["httpGet"]
            port = next(one["containerPort"] for one in container["ports"] if one["name"] == probe["port"])
            while not answers(f"{probe['scheme'].lower()}://127.0.0.1:{port}{probe['path']}"):
                assert running.containers[container["name"]].running(), running.printed()
                assert monotonic() < limit, running.printed()
                sleep(_STEP)
        conditions = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady", "PodScheduled")]
        self._tell(running.pod, {"conditions": conditions})

    def finish(self, running: Running) -> int:
        """Waits until the only container ends; the pod has succeeded or failed by its status."""
        (container,) = running.containers.values()
        code = container.ended()
        self._tell(running.pod, {"phase": "Failed" if code else "Succeeded"})
        return code

    def stop(self, running: Running) -> dict[str, tuple[int, float]]:
        """Ends a pod as a kubelet does that is to delete it; the exit status and seconds of each container."""
        ends = {name: one.terminate() for name, one in running.containers.items()}
        self._api.call("DELETE", f"{self._path(running.pod)}?gracePeriodSeconds=0")
        return ends

    def close(self) -> None:
        """Closes connections."""
        self._api.close()

    def _path(self, pod: Thing) -> str:
        return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"

    def _tell(self, pod: Thing, status: Mapping[str, Any]) -> None:
        merge = {"Content-Type": "application/merge-patch+json"}
        self._api.call("PATCH", f"{self._path(pod)}/status", {"status": status}, merge)

    def _new_folder(self) -> Path:
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        return folder

    def _start(self, pod: Thing, container: Thing, places: Mapping[str, Path]) -> Container:
        context = {**pod["spec"]["securityContext"], **container["securityContext"]}
        assert context["readOnlyRootFilesystem"], "this node runs nothing that may write to its root"
        told = self._image.config()
        host, _, port = self._plane.url.removeprefix("https://").partition(":")
        env = [*told["Env"], f"KUBERNETES_SERVICE_HOST={host}", f"KUBERNETES_SERVICE_PORT={port}"]
        env += [f"{one['name']}={one['value']}" for one in container.get("env", [])]
        command = [*container.get("command", told["Entrypoint"]), *container.get("args", [])]
        mounts = {
            one["mountPath"]: places[one["name"]] for one in container.get("volumeMounts", []) if one.get("readOnly")
        }
        scratch = {
            one["mountPath"]: places[one["name"]]
            for one in container.get("volumeMounts", [])
            if not one.get("readOnly")
        }
        mounts |= {f"/usr/local/bin/{name}": file for name, file in self._programs.items()}
        mounts["/etc/hosts"] = self._hosts(pod)
        if pod["spec"].get("automountServiceAccountToken", True):
            mounts[_ACCOUNT] = self._account(pod)
        user = (context["runAsUser"], context["runAsGroup"])
        return Container(Program(self._files, command, env, user, mounts, scratch), self._new_folder())

    def _hosts(self, pod: Thing) -> Path:
        """Services are on loopback here."""
        names = [f"{pod['metadata']['labels']['app.kubernetes.io/instance']}-extender", "localhost"]
        text = "".join(f"127.0.0.1 {name} {name}.{pod['metadata']['namespace']}.svc\n" for name in names)
        file = self._new_folder() / "hosts"
        file.write_text(text)
        return file

    def _account(self, pod: Thing) -> Path:
        """A token of the pod's account, as the API server makes it."""
        account, namespace = pod["spec"]["serviceAccountName"], pod["metadata"]["namespace"]
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = json.loads(self._api.call("POST", path, asked))["status"]["token"]
        return self._written({"token": token, "namespace": namespace, "ca.crt": self._plane.authority.read_text()})

    def _volumes(self, pod: Thing) -> dict[str, Path]:
        """The volumes of a pod, each a folder."""
        return {one["name"]: self._volume(one, pod["metadata"]["namespace"]) for one in pod["spec"].get("volumes", [])}

    def _volume(self, volume: Thing, namespace: str) -> Path:
        if "emptyDir" in volume:
            folder = self._new_folder()
            folder.chmod(0o777)
            return folder
        if given := volume.get("configMap"):
            data = json.loads(self._api.call("GET", f"/api/v1/namespaces/{namespace}/configmaps/{given['name']}"))[
                "data"
            ]
        else:
            given = volume["secret"]
            path = f"/api/v1/namespaces/{namespace}/secrets/{given['secretName']}"
            secret = json.loads(self._api.call("GET", path))["data"]
            data = {key: base64.b64decode(text).decode() for key, text in secret.items()}
        items = given.get("items") or [{"key": key, "path": key} for key in data]
        return self._written({item["path"]: data[item["key"]] for item in items})

    def _written(self, files: Mapping[str, str]) -> Path:
        folder = self._new_folder()
        for name, text in files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return folder
