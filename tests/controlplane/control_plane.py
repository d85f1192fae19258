"""etcd and kube-apiserver on loopback with temporary data, and the users of the API server."""

import json
import signal
import ssl
from pathlib import Path
from time import monotonic
from typing import Final

from tests.controlplane.api_client import ApiClient, UnreachableError
from tests.controlplane.process import Process, ProcessEndedError, free_ports, is_listening
from tests.controlplane.programs import Programs, make_extender_command

USERS: Final = {
    "admin": "system:masters",
    "system:kube-scheduler": "",
    "system:serviceaccount:extender:extender": "system:serviceaccounts",
}
"""The users with tokens, and their groups. The scheduler has only the permissions of its built-in role. The service
account has none until a test grants some."""

REPLICAS: Final = ("", "one", "two")
"""Each user has a token per replica. The uid in the audit log identifies the token."""

ADMIN: Final = "admin"
SCHEDULER: Final = "system:kube-scheduler"
EXTENDER: Final = "system:serviceaccount:extender:extender"

_TIMEOUT: Final = 120.0
_POLL_INTERVAL: Final = 0.1
_START_ATTEMPTS: Final = 3

_AUDIT_POLICY: Final = {
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
"""The audit policy: log the writes of bindings and leases."""


class ControlPlane:
    """A running API server and its etcd.

    There is no kubelet: pods never run, and an assigned pod that is deleted with a grace period stays. The admission of
    not-ready taints is disabled, because nothing would remove them. Controllers run only if a test starts them.

    Args:
        programs: the binaries.
        folder: gets data, keys, certificates and logs.
        flags: additional flags of the API server.
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
        """The address of the API server."""
        return f"https://127.0.0.1:{self._port}"

    @property
    def ca_file(self) -> Path:
        """The file with the CA certificate of the API server."""
        return self.folder / "certificates" / "apiserver.crt"

    @property
    def etcd_url(self) -> str:
        """The address of etcd, over plain HTTP."""
        return f"http://127.0.0.1:{self._etcd_port}"

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The process ids of etcd and of the API server, as far as they run."""
        return tuple(process.pid for process in (self._etcd, self._api_server) if process is not None)

    @property
    def audit_log(self) -> Path:
        """The audit log file of the API server."""
        return self.folder / "audit.log"

    def token(self, user: str, replica: str = "") -> str:
        """Return the bearer token of one of `USERS` for one of `REPLICAS`."""
        return "-".join(("token-of", user.replace(":", "-"), *filter(None, [replica])))

    def client(self, user: str = ADMIN) -> ApiClient:
        """Return a client with the token of *user*."""
        return ApiClient(self.url, self.token(user), ssl.create_default_context(cafile=self.ca_file))

    def write_kubeconfig(self, user: str = ADMIN, replica: str = "", *, server: str = "") -> Path:
        """Write a kubeconfig file for *user*; *server* overrides the address of the API server."""
        file = self.folder / f"{user.replace(':', '-')}{replica}.kubeconfig"
        cluster = {"server": server or self.url, "certificate-authority": str(self.ca_file)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": self.token(user, replica)}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
            "current-context": "test",
        }
        file.write_text(json.dumps(content))
        return file

    def start(self) -> None:
        """Start both programs and wait until the API server is ready.

        Raises:
            ProcessEndedError: one of them did not start.
        """
        rows = [
            f'{self.token(user, copy)},{user},{copy or user},"{groups}"'
            for user, groups in USERS.items()
            for copy in REPLICAS
        ]
        (self.folder / "tokens.csv").write_text("\n".join(rows) + "\n")
        (self.folder / "audit-policy.json").write_text(json.dumps(_AUDIT_POLICY))
        for attempt in range(_START_ATTEMPTS):  # another process may take a port before it is used
            try:
                self.start_etcd()
                self._port = free_ports(1)[0]
                self.start_api_server()
            except ProcessEndedError:
                self.stop()
                if attempt == _START_ATTEMPTS - 1:
                    raise
            else:
                return

    def start_etcd(self) -> None:
        """Start etcd at a new port and wait until it listens."""
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
        self._etcd = self.start_program(command)
        deadline = monotonic() + _TIMEOUT
        while not is_listening(self._etcd_port):
            self._etcd.pause(_POLL_INTERVAL)
            if monotonic() > deadline:
                raise ProcessEndedError(f"etcd does not listen:\n{self._etcd.tail()}")

    def start_api_server(self) -> None:
        """Start the API server at its previous address and wait until it is ready."""
        self._api_server = self.start_program([self._programs.path("kube-apiserver"), *self._api_server_flags()])
        deadline = monotonic() + _TIMEOUT
        while not self._is_ready():
            self._api_server.pause(_POLL_INTERVAL)
            if monotonic() > deadline:
                raise ProcessEndedError(f"the API server does not become ready:\n{self._api_server.tail()}")

    def _api_server_flags(self) -> list[str]:
        certificates = self.folder / "certificates"
        # The API server generates a TLS key; it also signs the tokens with it.
        key = certificates / "apiserver.key"
        return [
            f"--etcd-servers={self.etcd_url}",
            "--etcd-compaction-interval=0",
            "--storage-media-type=application/json",  # tests read the stored objects
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
        if not self.ca_file.exists():
            return False
        try:
            with self.client() as api:
                return api.is_ready()
        except (UnreachableError, ssl.SSLError):
            return False

    def stop_api_server(self, by: signal.Signals = signal.SIGTERM) -> None:
        """Stop the API server but not etcd; `start_api_server` starts it again."""
        if self._api_server is not None:
            self._api_server.signal(by)
            self.stop_program(self._api_server)
            self._api_server = None

    def stop_etcd(self) -> None:
        """Stop etcd, after the API server."""
        if self._etcd is not None:
            self.stop_program(self._etcd)
            self._etcd = None

    def start_program(self, command: list[str], name: str = "") -> Process:
        """Start a program that ends with the control plane at the latest. *name* is the name of its log."""
        process = Process(command, self.folder / f"{name or Path(command[0]).name}.log")
        self._running.append(process)
        return process

    def start_kube_scheduler(self, configuration: dict[str, object] | None = None, *flags: str) -> Process:
        """Start kube-scheduler without leader election.

        Args:
            configuration: see `write_configuration`.
            flags: additional flags.
        """
        file = self.write_configuration(configuration or {})
        return self.start_program(
            [self._programs.path("kube-scheduler"), f"--config={file}", "--secure-port=0", *flags]
        )

    def start_extender(self, configuration: dict[str, object] | None = None, *flags: str) -> Process:
        """Start `extender schedule`; the arguments are those of `start_kube_scheduler`."""
        file = self.write_configuration(configuration or {})
        return self.start_program(make_extender_command("schedule", f"--config={file}", "--secure-port=0", *flags))

    def write_configuration(self, configuration: dict[str, object], user: str = SCHEDULER) -> Path:
        """Write a KubeSchedulerConfiguration without leader election, and return its file.

        Args:
            configuration: fields that differ from the default.
            user: the user of the kubeconfig.
        """
        connection = {"kubeconfig": str(self.write_kubeconfig(user)), "qps": 1000, "burst": 1000}
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

    def start_controllers(self, *names: str) -> Process:
        """Start kube-controller-manager with only these controllers, such as `resourceclaim-controller`."""
        key = self.folder / "certificates" / "apiserver.key"
        return self.start_program(
            [
                self._programs.path("kube-controller-manager"),
                f"--kubeconfig={self.write_kubeconfig(ADMIN)}",
                f"--controllers={','.join(names)}",
                "--leader-elect=false",
                "--secure-port=0",
                f"--service-account-private-key-file={key}",
            ]
        )

    def stop_program(self, process: Process) -> None:
        """Stop a program that was started here."""
        process.stop()
        if process in self._running:
            self._running.remove(process)

    def stop_other_programs(self) -> None:
        """Stop all programs except the API server and etcd."""
        for process in reversed(self._running.copy()):
            if process not in {self._etcd, self._api_server}:
                self.stop_program(process)

    def stop(self) -> None:
        """Stop all programs in reverse order."""
        for process in reversed(self._running):
            process.stop()
        self._running.clear()
