"""The flags of `extender schedule`: kube-scheduler's own, in its groups. Source: G045 to G054."""

from collections.abc import Mapping
from typing import Final

from extender.cli.flags import (
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
    Value,
)
from extender.web.settings import ALWAYS_ALLOWED, PORT

VERSION: Final = Value("true|raw|vX.Y.Z", str, bare="true")

_FILE_WINS = "is ignored if --config is given"
_HTTP1 = "the service speaks HTTP/1.1"
_NO_BUFFER = "log lines are written at once"

_MISC = (
    Flag("config", STRING, "", "File with a KubeSchedulerConfiguration, or a Policy of an old release."),
    Flag("master", STRING, "", "Address of the API server; wins over the kubeconfig's."),
    Flag("write-config-to", STRING, "", "Write the whole configuration to this file and exit."),
)
_SERVING = (
    Flag("bind-address", IP, "0.0.0.0", "Address to listen on; 0.0.0.0 and :: mean all."),  # noqa: S104
    Flag("secure-port", INT, PORT, "Port for HTTPS; 0 serves nothing."),
    Flag("cert-dir", STRING, "", "Folder of kube-scheduler.crt and .key, made there if missing; empty: in memory."),
    Flag("tls-cert-file", STRING, "", "File with the certificate, its signers' behind it; read again on change."),
    Flag("tls-private-key-file", STRING, "", "File with its key."),
    Flag("tls-min-version", STRING, "", "VersionTLS12 (the default) or VersionTLS13."),
    Flag("tls-cipher-suites", STRINGS, (), "Cipher suites for TLS 1.2; the default is the library's."),
    Flag("tls-curve-preferences", STRINGS, (), "Key exchanges.", idle="the library chooses among safe ones"),
    Flag("tls-sni-cert-key", STRINGS, (), "Further certificates.", idle="only one certificate is served"),
    Flag("permit-address-sharing", BOOL, False, "Set SO_REUSEADDR on the listening socket."),
    Flag("permit-port-sharing", BOOL, False, "Set SO_REUSEPORT, so that several processes may share the port."),
    Flag("disable-http2-serving", BOOL, False, "Serve no HTTP/2.", idle=_HTTP1),
    Flag("http2-max-streams-per-connection", INT, 0, "Streams a connection may have.", idle=_HTTP1),
)
_AUTHENTICATION = (
    Flag("authentication-kubeconfig", STRING, "", "Whom to ask about callers' tokens; empty: the pod's own account."),
    Flag("authentication-skip-lookup", BOOL, False, "Do not look for client authorities in the cluster."),
    Flag("authentication-token-webhook-cache-ttl", DURATION, 10.0, "How long an answer about a token holds."),
    Flag("authentication-tolerate-lookup-failure", BOOL, True, "Go on if client authorities cannot be looked up."),
    Flag("client-ca-file", STRING, "", "A certificate signed by one of these names the caller."),
    Flag("requestheader-client-ca-file", STRING, "", "A proxy with a certificate signed by one of these may name it."),
    Flag("requestheader-allowed-names", STRINGS, (), "Common names of such proxies; empty: any."),
    Flag("requestheader-username-headers", STRINGS, ("x-remote-user",), "Headers that name the user."),
    Flag("requestheader-uid-headers", STRINGS, (), "Headers that give the user's uid."),
    Flag("requestheader-group-headers", STRINGS, ("x-remote-group",), "Headers that name groups."),
    Flag("requestheader-extra-headers-prefix", STRINGS, ("x-remote-extra-",), "Prefixes of headers that say more."),
)
_AUTHORIZATION = (
    Flag(
        "authorization-always-allow-paths",
        STRINGS,
        ALWAYS_ALLOWED,
        "Paths open to all; a `*` at the end matches any rest.",
    ),
    Flag("authorization-kubeconfig", STRING, "", "Whom to ask about callers' rights; empty: the pod's own account."),
    Flag("authorization-webhook-cache-authorized-ttl", DURATION, 10.0, "How long a yes holds."),
    Flag("authorization-webhook-cache-unauthorized-ttl", DURATION, 10.0, "How long a no holds."),
)
_DEPRECATED = (
    Flag("kubeconfig", STRING, "", "Where the API server is and who we are.", deprecated=_FILE_WINS),
    Flag("kube-api-qps", FLOAT, 50.0, "Requests a second.", deprecated=_FILE_WINS),
    Flag("kube-api-burst", INT32, 100, "Requests at once.", deprecated=_FILE_WINS),
    Flag(
        "kube-api-content-type",
        STRING,
        "application/vnd.kubernetes.protobuf",
        "How to speak to the API server; JSON is spoken whatever it says.",
        deprecated=_FILE_WINS,
    ),
    Flag("profiling", BOOL, True, "Profiling over the service; there is none.", deprecated=_FILE_WINS),
    Flag("contention-profiling", BOOL, True, "Block profiling; there is none.", deprecated=_FILE_WINS),
    Flag(
        "pod-max-in-unschedulable-pods-duration",
        DURATION,
        300.0,
        "How long a pod stays parked at most before it is tried again, whatever happened.",
        deprecated="will be removed in a future version",
    ),
)
_ELECTION = (
    Flag("leader-elect", BOOL, True, "Schedule only while holding the lease; needed to run more than one replica."),
    Flag("leader-elect-lease-duration", DURATION, 15.0, "How long others wait for a leader that has gone silent."),
    Flag("leader-elect-renew-deadline", DURATION, 10.0, "How long the leader tries to renew before it gives up."),
    Flag("leader-elect-retry-period", DURATION, 2.0, "How long to wait between tries."),
    Flag("leader-elect-resource-lock", STRING, "leases", "What to hold; only leases."),
    Flag("leader-elect-resource-name", STRING, "kube-scheduler", "Name of the lease."),
    Flag("leader-elect-resource-namespace", STRING, "kube-system", "Namespace of the lease."),
)
_ONE_VERSION = "there is one version to be like, 1.36"
_GATES = (
    Flag("feature-gates", GATES, (), "Switch features, as in kube:SchedulerPopFromBackoffQ=false; repeatable."),
    Flag("emulated-version", STRINGS, (), "Behave as an older release: only 1.36 here."),
    Flag("min-compatibility-version", STRINGS, (), "Oldest release to get on with.", idle=_ONE_VERSION),
)
_METRICS = (
    Flag("disabled-metrics", STRINGS, (), "Metric families to leave out."),
    Flag("show-hidden-metrics-for-version", STRING, "", "Show what 1.35 hid.", idle="nothing is hidden"),
    Flag("allow-metric-labels", PAIRS, (), "Allowed values of labels.", idle="labels are bounded already"),
    Flag("allow-metric-labels-manifest", STRING, "", "The same in a file.", idle="labels are bounded already"),
)
_LOGS = (
    Flag("v", LEVEL, 0, "How much to log: 2 is good for operation, 4 for finding faults, 10 is all.", short="v"),
    Flag("vmodule", STRINGS, (), "Verbosity by file, as pattern=N,...; only with the text format."),
    Flag("logging-format", STRING, "text", "text or json."),
    Flag("log-flush-frequency", DURATION, 5.0, "How often to flush.", idle=_NO_BUFFER),
    Flag("log-text-split-stream", BOOL, False, "Needs the gate LoggingAlphaOptions."),
    Flag("log-json-split-stream", BOOL, False, "Needs the gate LoggingAlphaOptions."),
    Flag("log-text-info-buffer-size", STRING, "0", "Bytes to buffer.", idle=_NO_BUFFER),
    Flag("log-json-info-buffer-size", STRING, "0", "Bytes to buffer.", idle=_NO_BUFFER),
)
_GLOBAL = (
    Flag("help", BOOL, False, "Show this and exit.", short="h"),
    Flag("version", VERSION, "false", "Show the version and exit."),
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
"""By group, in kube-scheduler's order."""

FLAGS: Final[Mapping[str, Flag]] = {flag.name: flag for flags in GROUPS.values() for flag in flags}
"""By name."""
