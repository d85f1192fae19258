"""etcd and kube-apiserver on loopback with throw-away data, and who may speak to them."""

import json
import signal
import ssl
import sys
from pathlib import Path
from time import monotonic
from typing import Final

from tests.controlplane.api import Api, Unreachable
from tests.controlplane.process import EndedError, Process, free_ports, listening
from tests.controlplane.programs import Programs

USERS: Final = {
    "admin": "system:masters",
    "system:kube-scheduler": "",
    "system:serviceaccount:extender:extender": "system:serviceaccounts",
}
"""Who has a token, and their groups. The scheduler has the rights of upstream's own role and no more, the service
account none until a test grants it some."""

COPIES: Final = ("", "one", "two")
"""Everybody has so many tokens: in the audit log the uid tells which was used, so replicas can be told apart."""

ADMIN: Final = "admin"
SCHEDULER: Final = "system:kube-scheduler"
EXTENDER: Final = "system:serviceaccount:extender:extender"

_PATIENCE: Final = 120.0
_STEP: Final = 0.1
_TRIES: Final = 3

_AUDIT: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Request",
            "verbs": ["create", "update"],
            "resources": [
                {"group": "", "resources": ["pods/binding"]},
                {"group": "coordination.k8s.io", "resources": ["leases"]},
            ],
        },
        {"level": "None"},
    ],
}
"""What the audit log holds: bindings and leases, with who wrote what."""


class ControlPlane:
    """A running API server and its store.

    There is no kubelet, so pods never run, and a pod on a node that is deleted with grace stays. The admission of
    not-ready taints is off, as nothing would ever take them away. Controllers run only if a test starts them.

    Args:
        programs: what to run.
        folder: for data, keys, certificates and logs.
        flags: more of them for the API server.
    """

    def __init__(self, programs: Programs, folder: Path, *flags: str) -> None:
        self.folder = folder
        self._flags = flags
        self._programs = programs
        self._running: list[Process] = []
        self._etcd: Process | None = None
        self._api_server: Process | None = None
        self._etcd_port = self._port = 0

    @property
    def url(self) -> str:
        """The API server's address."""
        return f"https://127.0.0.1:{self._port}"

    @property
    def authority(self) -> Path:
        """A file with the certificate to trust the API server by."""
        return self.folder / "certificates" / "apiserver.crt"

    @property
    def etcd_url(self) -> str:
        """The store's address; it speaks plain HTTP."""
        return f"http://127.0.0.1:{self._etcd_port}"

    @property
    def audit_log(self) -> Path:
        """Where the API server writes who did what."""
        return self.folder / "audit.log"

    def token(self, user: str, copy: str = "") -> str:
        """A bearer token of one of `USERS`; for each of `COPIES` another."""
        return "-".join(("token-of", user.replace(":", "-"), *filter(None, [copy])))

    def api(self, user: str = ADMIN) -> Api:
        """A client that speaks for *user*."""
        return Api(self.url, self.token(user), ssl.create_default_context(cafile=self.authority))

    def kubeconfig(self, user: str = ADMIN, copy: str = "", *, server: str = "") -> Path:
        """A kubeconfig file for *user*, with another address of the API server if one is given."""
        file = self.folder / f"{user.replace(':', '-')}{copy}.kubeconfig"
        cluster = {"server": server or self.url, "certificate-authority": str(self.authority)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": self.token(user, copy)}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
            "current-context": "test",
        }
        file.write_text(json.dumps(content))
        return file

    def start(self) -> None:
        """Starts both and waits until the API server is ready.

        Raises:
            EndedError: one of them did not come up.
        """
        rows = [
            f'{self.token(user, copy)},{user},{copy or user},"{groups}"'
            for user, groups in USERS.items()
            for copy in COPIES
        ]
        (self.folder / "tokens.csv").write_text("\n".join(rows) + "\n")
        (self.folder / "audit-policy.json").write_text(json.dumps(_AUDIT))
        for chance in range(_TRIES):  # somebody else may take a port between finding and using it
            try:
                self._start_etcd()
                self._port = free_ports(1)[0]
                self.start_api_server()
            except EndedError:
                self.stop()
                if chance == _TRIES - 1:
                    raise
            else:
                return

    def _start_etcd(self) -> None:
        self._etcd_port, peers = free_ports(2)
        command = [
            self._programs.path("etcd"),
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={self.etcd_url}",
            f"--advertise-client-urls={self.etcd_url}",
            f"--listen-peer-urls=http://127.0.0.1:{peers}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peers}",
            f"--initial-cluster=default=http://127.0.0.1:{peers}",
            "--unsafe-no-fsync",
        ]
        self._etcd = self.run(command)
        until = monotonic() + _PATIENCE
        while not listening(self._etcd_port):
            self._etcd.pause(_STEP)
            if monotonic() > until:
                raise EndedError(f"etcd does not listen:\n{self._etcd.tail()}")

    def start_api_server(self) -> None:
        """Starts the API server, again at the address it had, and waits until it is ready."""
        self._api_server = self.run([self._programs.path("kube-apiserver"), *self._api_server_flags()])
        until = monotonic() + _PATIENCE
        while not self._is_ready():
            self._api_server.pause(_STEP)
            if monotonic() > until:
                raise EndedError(f"the API server does not become ready:\n{self._api_server.tail()}")

    def _api_server_flags(self) -> list[str]:
        certificates = self.folder / "certificates"
        # The API server makes a key for TLS when there is none; the same serves for the tokens it signs.
        key = certificates / "apiserver.key"
        return [
            f"--etcd-servers={self.etcd_url}",
            "--etcd-compaction-interval=0",
            "--storage-media-type=application/json",  # for tests that read what is stored
            f"--audit-policy-file={self.folder / 'audit-policy.json'}",
            f"--audit-log-path={self.audit_log}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--cert-dir={certificates}",
            "--service-cluster-ip-range=10.0.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount,DefaultStorageClass,TaintNodesByCondition",
            "--max-requests-inflight=2000",
            "--max-mutating-requests-inflight=1000",
            "--shutdown-delay-duration=0s",
            *self._flags,
        ]

    def _is_ready(self) -> bool:
        if not self.authority.exists():
            return False
        try:
            with self.api() as api:
                return api.ready()
        except (Unreachable, ssl.SSLError):
            return False

    def stop_api_server(self, by: signal.Signals = signal.SIGTERM) -> None:
        """Stops the API server and keeps the data; `start_api_server` brings it back."""
        if self._api_server is not None:
            self._api_server.signal(by)
            self.end(self._api_server)
            self._api_server = None

    def run(self, command: list[str], name: str = "") -> Process:
        """Starts a program beside the control plane; it ends with it at the latest. Its log is called *name*."""
        process = Process(command, self.folder / f"{name or Path(command[0]).name}.log")
        self._running.append(process)
        return process

    def scheduler(self, configuration: dict[str, object] | None = None, *flags: str) -> Process:
        """Starts a kube-scheduler without leader election.

        Args:
            configuration: as for `configure`.
            flags: more of them.
        """
        file = self.configure(configuration or {})
        return self.run([self._programs.path("kube-scheduler"), f"--config={file}", "--secure-port=0", *flags])

    def ours(self, configuration: dict[str, object] | None = None, *flags: str) -> Process:
        """Starts `extender schedule` in the same way; the arguments are those of `scheduler`."""
        file = self.configure(configuration or {})
        command = [sys.executable, "-m", "extender", "schedule", f"--config={file}", "--secure-port=0"]
        return self.run([*command, *flags])

    def configure(self, configuration: dict[str, object], user: str = SCHEDULER) -> Path:
        """A KubeSchedulerConfiguration without leader election, in a file.

        Args:
            configuration: fields that differ from the default.
            user: who speaks to the API server.
        """
        connection = {"kubeconfig": str(self.kubeconfig(user)), "qps": 1000, "burst": 1000}
        content = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": connection,
            **configuration,
        }
        file = self.folder / "kube-scheduler.json"
        file.write_text(json.dumps(content))
        return file

    def controllers(self, *names: str) -> Process:
        """Starts a kube-controller-manager with these controllers alone, such as `resourceclaim-controller`."""
        key = self.folder / "certificates" / "apiserver.key"
        return self.run(
            [
                self._programs.path("kube-controller-manager"),
                f"--kubeconfig={self.kubeconfig(ADMIN)}",
                f"--controllers={','.join(names)}",
                "--leader-elect=false",
                "--secure-port=0",
                f"--service-account-private-key-file={key}",
            ]
        )

    def end(self, process: Process) -> None:
        """Ends a program that was started here."""
        process.stop()
        if process in self._running:
            self._running.remove(process)

    def end_guests(self) -> None:
        """Ends all but the API server and its store."""
        for process in reversed(self._running.copy()):
            if process not in {self._etcd, self._api_server}:
                self.end(process)

    def stop(self) -> None:
        """Ends everything, what was started last first."""
        for process in reversed(self._running):
            process.stop()
        self._running.clear()
