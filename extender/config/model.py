"""The types of a `KubeSchedulerConfiguration` with all defaults.

Types that are decoded directly from a document are Structs. `Profile` and `Configuration`, which are built after
decoding, are dataclasses.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from extender.api.kinds.meta import Int32, Int64
from extender.config.durations import Duration

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
KIND: Final = "KubeSchedulerConfiguration"
DEFAULT_EXTENDER_TIMEOUT: Final = 5.0


class Plugin(msgspec.Struct, frozen=True, rename="camel"):
    """A plugin with its score weight; 0 means unset, which is treated as 1.

    Source: kube-scheduler/config/v1/types.go, Plugins; pkg/scheduler/framework/runtime/framework.go,
    getValidScoreWeights (1.36).
    """

    name: str = ""
    weight: Int32 = 0


class PluginSet(msgspec.Struct, frozen=True, rename="camel"):
    """The enabled plugins of one extension point, in order, and the disabled ones; `*` disables all default plugins.

    Source: kube-scheduler/config/v1/types.go, Plugins (1.36).
    """

    enabled: tuple[Plugin, ...] = ()
    disabled: tuple[Plugin, ...] = ()


class Plugins(msgspec.Struct, frozen=True, rename="camel"):
    """The plugin sets of all extension points; `multi_point` applies to each of them.

    Source: kube-scheduler/config/v1/types.go, Plugins (1.36).
    """

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
    pod_group_post_filter: PluginSet = PluginSet()


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile: a scheduler name and its plugins.

    Attributes:
        scheduler_name: the `spec.schedulerName` of its pods.
        percentage_of_nodes_to_score: 0 to 100; None means the value of the configuration.
        plugins: plugin sets merged with the default ones, before the expansion of `multiPoint`.
        plugin_config: plugin arguments as plain values, by plugin name.
        check_all_filters: run all Filter plugins on a rejected node instead of stopping at the first rejection. Only
            a legacy Policy can set it.
        args_paths: field path of the arguments by plugin name: `profiles[0].pluginConfig[1].args`.
        path: field path of the profile: `profiles[0]`. Paths are ignored in comparisons.

    Source: pkg/scheduler/apis/config/v1/default_plugins.go, mergePluginSet (1.36);
    pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunFilterPlugins (1.21).
    """

    scheduler_name: str
    percentage_of_nodes_to_score: int | None = None
    plugins: Plugins = field(default_factory=Plugins)
    plugin_config: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    check_all_filters: bool = False
    args_paths: Mapping[str, str] = field(default_factory=dict, compare=False)
    path: str = field(default="", compare=False)


class ManagedResource(msgspec.Struct, frozen=True, rename="camel"):
    """An extended resource that an extender manages.

    Source: pkg/scheduler/apis/config/validation/validation.go, validateExtendedResourceName (1.36).
    """

    name: str = ""
    ignored_by_scheduler: bool = False


class TLSConfig(msgspec.Struct, frozen=True, rename="camel"):
    """The TLS settings of an extender; data fields are PEM and take precedence over files.

    Source: kube-scheduler/config/v1/types.go, ExtenderTLSConfig (1.36).
    """

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class Extender(msgspec.Struct, frozen=True, rename="camel"):
    """An HTTP extender. It does not support the verbs that are empty. `http_timeout` is in seconds; 0 becomes 5.

    Source: kube-scheduler/config/v1/types.go, Extender, ExtenderTLSConfig, Extender.Ignorable;
    pkg/scheduler/apis/config/validation/validation.go, validateExtenders, validateExtendedResourceName;
    pkg/scheduler/extender.go, makeTransport, NewHTTPExtender (1.36).
    """

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: TLSConfig | None = None
    http_timeout: Duration = DEFAULT_EXTENDER_TIMEOUT
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False

    def __post_init__(self) -> None:
        if not self.http_timeout:
            msgspec.structs.force_setattr(self, "http_timeout", DEFAULT_EXTENDER_TIMEOUT)


class LeaderElection(msgspec.Struct, frozen=True, rename="camel"):
    """Leader election settings; durations in seconds.

    Source: component-base/config/v1alpha1/defaults.go, RecommendedDefaultLeaderElectionConfiguration;
    pkg/scheduler/apis/config/v1/defaults.go, SetDefaults_KubeSchedulerConfiguration (1.36).
    """

    leader_elect: bool = True
    lease_duration: Duration = 15.0
    renew_deadline: Duration = 10.0
    retry_period: Duration = 2.0
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ClientConnection(msgspec.Struct, frozen=True, rename="camel"):
    """The client settings for the API server.

    Source: pkg/scheduler/apis/config/v1/defaults.go, SetDefaults_KubeSchedulerConfiguration (1.36).
    """

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: float = 50.0
    burst: Int32 = 100


@dataclass(frozen=True, slots=True)
class Configuration:
    """A `KubeSchedulerConfiguration` with all defaults.

    Source: pkg/scheduler/apis/config/validation/validation.go, ValidateKubeSchedulerConfiguration;
    component-base/config/v1alpha1/defaults.go, RecommendedDefaultLeaderElectionConfiguration;
    pkg/scheduler/apis/config/v1/defaults.go, SetDefaults_KubeSchedulerConfiguration;
    kube-scheduler/config/v1/types.go, KubeSchedulerConfiguration.DelayCacheUntilActive (1.36).
    """

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


@dataclass(frozen=True, slots=True)
class ExtensionPoint:
    """The names of one extension point.

    Attributes:
        key: the key in a configuration, `preFilter`.
        field: the field of `Plugins`, `pre_filter`.
        interface: the Go interface in kube-scheduler's messages, `PreFilterPlugin`.
    """

    key: str
    field: str
    interface: str

    def get_plugin_set(self, plugins: Plugins) -> PluginSet:
        """Return the plugin set of this extension point."""
        plugin_set: PluginSet = getattr(plugins, self.field)
        return plugin_set


# kube-scheduler expands the extension points in this order. The error about an unknown multiPoint plugin names the
# first extension point that does not disable all multiPoint plugins.
EXTENSION_POINTS: Final = (
    ExtensionPoint("preFilter", "pre_filter", "PreFilterPlugin"),
    ExtensionPoint("filter", "filter", "FilterPlugin"),
    ExtensionPoint("postFilter", "post_filter", "PostFilterPlugin"),
    ExtensionPoint("reserve", "reserve", "ReservePlugin"),
    ExtensionPoint("preScore", "pre_score", "PreScorePlugin"),
    ExtensionPoint("score", "score", "ScorePlugin"),
    ExtensionPoint("preBind", "pre_bind", "PreBindPlugin"),
    ExtensionPoint("bind", "bind", "BindPlugin"),
    ExtensionPoint("postBind", "post_bind", "PostBindPlugin"),
    ExtensionPoint("permit", "permit", "PermitPlugin"),
    ExtensionPoint("preEnqueue", "pre_enqueue", "PreEnqueuePlugin"),
    ExtensionPoint("queueSort", "queue_sort", "QueueSortPlugin"),
    ExtensionPoint("placementGenerate", "placement_generate", "PlacementGeneratePlugin"),
    ExtensionPoint("placementScore", "placement_score", "PlacementScorePlugin"),
    ExtensionPoint("podGroupPostFilter", "pod_group_post_filter", "PodGroupPostFilterPlugin"),
)

PLACEMENT_POINTS: Final = frozenset({"placementGenerate", "placementScore"})
