"""The configuration as the rest of the program reads it: frozen, complete, in Kubernetes' own words.

Types a document shares with the model are Structs, so that strict decoding fills them directly; the two that differ
from what is written, `Profile` and `Configuration`, are dataclasses.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from extender.config.durations import Duration
from extender.config.strict import Int32, Int64

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
KIND: Final = "KubeSchedulerConfiguration"
DEFAULT_EXTENDER_TIMEOUT: Final = 5.0


class Plugin(msgspec.Struct, frozen=True, rename="camel"):
    """A plugin's name and, where it scores, its weight; 0 means not given, which counts as 1. Source: G022, G031."""

    name: str = ""
    weight: Int32 = 0


class PluginSet(msgspec.Struct, frozen=True, rename="camel"):
    """What is enabled, in order, and what is disabled (`*`: everything) at one extension point. Source: G022."""

    enabled: tuple[Plugin, ...] = ()
    disabled: tuple[Plugin, ...] = ()


class Plugins(msgspec.Struct, frozen=True, rename="camel"):
    """The plugin set of every extension point; `multi_point` speaks for all of them. Source: G022."""

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()


@dataclass(frozen=True, slots=True)
class Profile:
    """One scheduler name and the plugins that decide for it.

    Attributes:
        scheduler_name: the `spec.schedulerName` it serves.
        percentage_of_nodes_to_score: 0 to 100; None means the configuration's own.
        plugins: merged with the default sets (Source: G028), `multiPoint` not yet expanded.
        plugin_config: arguments by plugin name, builtins as written.
        check_all_filters: a refused node is told by every plugin that refuses it, not by the first alone. No
            configuration can say so, only the Policy of an old release. Source: C018.
        args_paths: by plugin name, where its arguments stand: `profiles[0].pluginConfig[1].args`.
        path: where the profile stands: `profiles[0]`. Neither path takes part in equality.
    """

    scheduler_name: str
    percentage_of_nodes_to_score: int | None = None
    plugins: Plugins = field(default_factory=Plugins)
    plugin_config: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    check_all_filters: bool = False
    args_paths: Mapping[str, str] = field(default_factory=dict, compare=False)
    path: str = field(default="", compare=False)


class ManagedResource(msgspec.Struct, frozen=True, rename="camel"):
    """An extended resource an extender looks after. Source: F008."""

    name: str = ""
    ignored_by_scheduler: bool = False


class TLSConfig(msgspec.Struct, frozen=True, rename="camel"):
    """How to speak TLS to an extender; the data fields are PEM and come before the files. Source: F005."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class Extender(msgspec.Struct, frozen=True, rename="camel"):
    """An HTTP extender; an empty verb means it lacks that ability. `http_timeout` in seconds. Source: F001-F009."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: TLSConfig | None = None
    http_timeout: Duration = 0.0
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False

    @property
    def effective_timeout(self) -> float:
        """Seconds one call may take: `http_timeout`, or 5 when that is 0. Source: F006."""
        return self.http_timeout or DEFAULT_EXTENDER_TIMEOUT


class LeaderElection(msgspec.Struct, frozen=True, rename="camel"):
    """Leader election; durations in seconds. Source: G002-G008."""

    leader_elect: bool = True
    lease_duration: Duration = 15.0
    renew_deadline: Duration = 10.0
    retry_period: Duration = 2.0
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ClientConnection(msgspec.Struct, frozen=True, rename="camel"):
    """How to speak to the API server. Source: G010."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: float = 50.0
    burst: Int32 = 100


@dataclass(frozen=True, slots=True)
class Configuration:
    """A whole `KubeSchedulerConfiguration`, defaulted. Source: G001-G017."""

    profiles: tuple[Profile, ...]
    parallelism: int = 16
    leader_election: LeaderElection = field(default_factory=LeaderElection)
    client_connection: ClientConnection = field(default_factory=ClientConnection)
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    percentage_of_nodes_to_score: int = 0
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False
