"""The flags of `extender schedule`: kube-scheduler's flags, in kube-scheduler's groups.

Source: cmd/kube-scheduler/app/options/options.go, Options.initFlags, Options.ApplyLeaderElectionTo;
apiserver/pkg/server/options/serving.go, SecureServingOptions.AddFlags;
apiserver/pkg/server/options/authentication.go, DelegatingAuthenticationOptions.AddFlags;
apiserver/pkg/server/options/authorization.go, DelegatingAuthorizationOptions.AddFlags;
cmd/kube-scheduler/app/options/deprecated.go, DeprecatedOptions.AddFlags; component-base/compatibility/registry.go,
componentGlobalsRegistry.AddFlags; component-base/version/verflag/verflag.go, PrintAndExitIfRequested (1.36).
"""

from collections.abc import Mapping
from typing import Final

from extender.cli.pflag import (
    BOOL,
    DURATION,
    FLOAT,
    GATES,
    INT,
    INT32,
    IP,
    LEVEL,
    PAIRS,
    STRING,
    STRINGS,
    Flag,
    FlagType,
)
from extender.config.releases import DEFAULT_RELEASE, RELEASES
from extender.serving.serving_options import ALWAYS_ALLOWED_PATHS, PORT

_VERSION_TYPE: Final = FlagType("true|raw|vX.Y.Z", str, value_without_argument="true")

_IGNORED_WITH_CONFIG = "is ignored if --config is given"
_HTTP1 = "the service speaks HTTP/1.1"
_NO_BUFFER = "log lines are written immediately"

_MISC = (
    Flag("config", STRING, "", "File with a KubeSchedulerConfiguration, or a Policy of an old release."),
    Flag("master", STRING, "", "Address of the API server; overrides the kubeconfig."),
    Flag("write-config-to", STRING, "", "Write the configuration with all defaults to this file and exit."),
)  # fmt: skip
_SERVING = (
    Flag("bind-address", IP, "0.0.0.0", "Address to listen on; 0.0.0.0 and :: mean all."),  # noqa: S104
    Flag("secure-port", INT, PORT, "Port for HTTPS; 0: no port."),
    Flag("cert-dir", STRING, "",
         "Folder of kube-scheduler.crt and kube-scheduler.key; missing files are created. Empty: in memory."),
    Flag("tls-cert-file", STRING, "",
         "File with the certificate, followed by intermediate certificates; reloaded on change."),
    Flag("tls-private-key-file", STRING, "", "File with the certificate's private key."),
    Flag("tls-min-version", STRING, "", "VersionTLS12 (the default) or VersionTLS13."),
    Flag("tls-cipher-suites", STRINGS, (), "Cipher suites for TLS 1.2; default: those of the TLS library."),
    Flag("tls-curve-preferences", STRINGS, (), "Key exchanges.", no_effect_reason="the TLS library selects them"),
    Flag("tls-sni-cert-key", STRINGS, (), "Further certificates.", no_effect_reason="only one certificate is served"),
    Flag("permit-address-sharing", BOOL, False, "Set SO_REUSEADDR on the listening socket."),
    Flag("permit-port-sharing", BOOL, False, "Set SO_REUSEPORT, so that several processes may share the port."),
    Flag("ui", BOOL, False, "Serve the pages /ui/ on the port; they show the cluster and why pods wait."),
    Flag("disable-http2-serving", BOOL, False, "Serve no HTTP/2.", no_effect_reason=_HTTP1),
    Flag("http2-max-streams-per-connection", INT, 0, "Maximum streams per connection.", no_effect_reason=_HTTP1),
)  # fmt: skip
_AUTHENTICATION = (
    Flag("authentication-kubeconfig", STRING, "", "Kubeconfig for token reviews; empty: the pod's service account."),
    Flag("authentication-skip-lookup", BOOL, False, "Do not look up the client CA in the cluster."),
    Flag("authentication-token-webhook-cache-ttl", DURATION, 10.0, "How long a token review is cached."),
    Flag("authentication-tolerate-lookup-failure", BOOL, True, "Continue if the client CA cannot be looked up."),
    Flag("client-ca-file", STRING, "",
         "File with CAs; a client certificate signed by one of them authenticates the client."),
    Flag("requestheader-client-ca-file", STRING, "", "File with CAs of front proxies, which pass the user in headers."),
    Flag("requestheader-allowed-names", STRINGS, (), "Allowed common names of front proxies; empty: any."),
    Flag("requestheader-username-headers", STRINGS, ("x-remote-user",), "Headers with the user name."),
    Flag("requestheader-uid-headers", STRINGS, (), "Headers with the user's uid."),
    Flag("requestheader-group-headers", STRINGS, ("x-remote-group",), "Headers with the user's groups."),
    Flag("requestheader-extra-headers-prefix", STRINGS, ("x-remote-extra-",),
         "Prefixes of headers with extra user information."),
)  # fmt: skip
_AUTHORIZATION = (
    Flag("authorization-always-allow-paths", STRINGS, ALWAYS_ALLOWED_PATHS,
         "Paths without authorization; a `*` at the end matches any suffix."),
    Flag("authorization-kubeconfig", STRING, "", "Kubeconfig for access reviews; empty: the pod's service account."),
    Flag("authorization-webhook-cache-authorized-ttl", DURATION, 10.0, "How long an allowed access review is cached."),
    Flag("authorization-webhook-cache-unauthorized-ttl", DURATION, 10.0, "How long a denied access review is cached."),
)  # fmt: skip
_DEPRECATED = (
    Flag("kubeconfig", STRING, "", "File with the API server's address and the credentials.",
         deprecated=_IGNORED_WITH_CONFIG),
    Flag("kube-api-qps", FLOAT, 50.0, "Requests per second to the API server.", deprecated=_IGNORED_WITH_CONFIG),
    Flag("kube-api-burst", INT32, 100, "Burst of requests to the API server.", deprecated=_IGNORED_WITH_CONFIG),
    Flag("kube-api-content-type", STRING, "application/vnd.kubernetes.protobuf",
         "Content type of requests to the API server; JSON is always used.", deprecated=_IGNORED_WITH_CONFIG),
    Flag("profiling", BOOL, True, "Profiling over HTTP; not available.", deprecated=_IGNORED_WITH_CONFIG),
    Flag("contention-profiling", BOOL, True, "Block profiling; not available.", deprecated=_IGNORED_WITH_CONFIG),
    Flag("pod-max-in-unschedulable-pods-duration", DURATION, 300.0,
         "Time after which an unschedulable pod is retried without an event.",
         deprecated="will be removed in a future version"),
)  # fmt: skip
_ELECTION = (
    Flag("leader-elect", BOOL, True, "Schedule only while holding the lease; needed to run more than one replica."),
    Flag("leader-elect-lease-duration", DURATION, 15.0,
         "How long other candidates wait after the last renewal before they take the lease."),
    Flag("leader-elect-renew-deadline", DURATION, 10.0,
         "How long the leader tries to renew the lease before it gives up."),
    Flag("leader-elect-retry-period", DURATION, 2.0, "Time between two attempts."),
    Flag("leader-elect-resource-lock", STRING, "leases", "Kind of the lock; only leases."),
    Flag("leader-elect-resource-name", STRING, "kube-scheduler", "Name of the lease."),
    Flag("leader-elect-resource-namespace", STRING, "kube-system", "Namespace of the lease."),
)  # fmt: skip
EMULATED_VERSION: Final = Flag(
    "emulated-version",
    STRINGS,
    (),
    f"Kubernetes release whose kube-scheduler is emulated: {' or '.join(RELEASES)}; default {DEFAULT_RELEASE.version}.",
)
"""The flag that selects the emulated release, in every process."""
_GATES = (
    Flag("feature-gates", GATES, (), "Feature gates, as in kube:SchedulerPopFromBackoffQ=false; repeatable."),
    EMULATED_VERSION,
    Flag("min-compatibility-version", STRINGS, (), "Oldest compatible release.",
         no_effect_reason="no data is stored, and DRAFractionalCapacityRange stays off"),
)  # fmt: skip
_METRICS = (
    Flag("disabled-metrics", STRINGS, (), "Metric families to leave out."),
    Flag("show-hidden-metrics-for-version", STRING, "",
         "Show the metrics hidden since this release, the one before --emulated-version."),
    Flag("allow-metric-labels", PAIRS, (), "Allowed label values.",
         no_effect_reason="label values are bounded already"),
    Flag("allow-metric-labels-manifest", STRING, "", "File with allowed label values.",
         no_effect_reason="label values are bounded already"),
)  # fmt: skip
_LOGS = (
    Flag("v", LEVEL, 0, "Log verbosity: 2 for operation, 4 for debugging, 10 logs everything.", short="v"),
    Flag("vmodule", STRINGS, (), "Verbosity by file, as pattern=N,...; only with the text format."),
    Flag("logging-format", STRING, "text", "text or json."),
    Flag("log-flush-frequency", DURATION, 5.0, "Time between two flushes.", no_effect_reason=_NO_BUFFER),
    Flag("log-text-split-stream", BOOL, False, "Requires the feature gate LoggingAlphaOptions."),
    Flag("log-json-split-stream", BOOL, False, "Requires the feature gate LoggingAlphaOptions."),
    Flag("log-text-info-buffer-size", STRING, "0", "Bytes to buffer.", no_effect_reason=_NO_BUFFER),
    Flag("log-json-info-buffer-size", STRING, "0", "Bytes to buffer.", no_effect_reason=_NO_BUFFER),
)  # fmt: skip
_GLOBAL = (
    Flag("help", BOOL, False, "Show this help and exit.", short="h"),
    Flag("version", _VERSION_TYPE, "false", "Show the version and exit."),
)

GROUPS: Final[Mapping[str, tuple[Flag, ...]]] = {
    "Misc": _MISC,
    "Secure serving": _SERVING,
    "Authentication": _AUTHENTICATION,
    "Authorization": _AUTHORIZATION,
    "Deprecated": _DEPRECATED,
    "Leader election": _ELECTION,
    "Feature gate": _GATES,
    "Metrics": _METRICS,
    "Logs": _LOGS,
    "Global": _GLOBAL,
}
"""The flags by group, in kube-scheduler's order."""

FLAGS: Final[Mapping[str, Flag]] = {flag.name: flag for flags in GROUPS.values() for flag in flags}
"""The flags by name."""

_POLICY_FILE = "--config reads the file of a Policy or its ConfigMap too"
_NO_TLS = "there is no port without TLS; --bind-address and --secure-port serve HTTPS"

REMOVED_FLAGS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("policy-config-file", "policy-configmap", "policy-configmap-namespace", "use-legacy-policy-config"),
        _POLICY_FILE,
    ),
    **dict.fromkeys(("address", "port"), _NO_TLS),
    "algorithm-provider": "write a KubeSchedulerConfiguration with the plugins, for --config",
    "hard-pod-affinity-symmetric-weight": "set hardPodAffinityWeight in the arguments of InterPodAffinity, in --config",
    "lock-object-name": "use --leader-elect-resource-name",
    "lock-object-namespace": "use --leader-elect-resource-namespace",
    "scheduler-name": "set schedulerName of the profile in --config",
}
"""What to use in place of kube-scheduler's flags of releases up to 1.23, which it has removed.

Source: cmd/kube-scheduler/app/options/deprecated.go, DeprecatedOptions.AddFlags (1.22).
"""
