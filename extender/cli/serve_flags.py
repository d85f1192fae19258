"""The flags of `extender serve`: kube-scheduler's names wherever it has one."""

from collections.abc import Mapping
from typing import Final

from extender.cli.flags import BOOL, GATES, INT, LEVEL, STRING, STRINGS, Flag, Value
from extender.web.scaling import ScoreRange
from extender.web.settings import ALWAYS_ALLOWED
from extender.web.wire import MAX_NAMES_BYTES, MAX_NODES_BYTES

FILES: Final = Value("FILE", lambda text: (text,), ",".join, many=True)

_CLUSTER = (
    Flag("file", FILES, (), "A recorded cluster instead of a live one: YAML or JSON, - is standard input; repeatable.",
         short="f"),
    Flag("without-cluster", BOOL, False, "No cluster at all: requests must bring whole nodes along."),
    Flag("config", STRING, "", "File with a KubeSchedulerConfiguration, or a Policy: its profiles "
         "answer. Taken over when it changes."),
    Flag("kubeconfig", STRING, "", "Where the API server is and who we are; wins over the configuration's."),
    Flag("master", STRING, "", "Address of the API server; wins over the kubeconfig's."),
    Flag("standalone", BOOL, False, "Schedule the pods of the profiles as well, as extender schedule does."),
    Flag("feature-gates", GATES, (), "Switch features, as in kube:DynamicResourceAllocation=false; repeatable."),
)  # fmt: skip
_VERBS = (
    Flag("url-prefix", STRING, "", "What comes before the verbs: the path of the scheduler's urlPrefix."),
    Flag("filter-verb", STRING, "filter", "Name of the verb, as the scheduler's filterVerb; empty: not served."),
    Flag("prioritize-verb", STRING, "prioritize", "The same for prioritizeVerb."),
    Flag("preempt-verb", STRING, "preempt", "The same for preemptVerb."),
    Flag("bind-verb", STRING, "bind", "The same for bindVerb; only for a live cluster."),
    Flag("score-range", STRING, ScoreRange.TEN.value, "What prioritize answers: scores as kube-scheduler "
         "takes them, or raw, the profile's totals."),
    Flag("scheduler-name", STRINGS, (), "Bind pods of these schedulers too, beside those of the profiles."),
)  # fmt: skip
_SERVING = (
    Flag("bind-address", STRING, "127.0.0.1", "Where to listen. Beyond this machine it takes "
         "--client-ca-file, or --anonymous-verbs."),
    Flag("port", INT, 8888, "Port; 0 takes a free one."),
    Flag("secure-port", INT, 0, "Port for health, metrics and explain alone, over HTTPS and at all addresses, so that "
         "the verbs can keep to loopback; 0: they are with the verbs only."),
    Flag("tls-cert-file", STRING, "", "File with the certificate; without one, plain HTTP. Read again on change."),
    Flag("tls-private-key-file", STRING, "", "File with its key."),
    Flag("client-ca-file", STRING, "", "Callers of the verbs must show a certificate signed by one of these."),
    Flag("anonymous-verbs", BOOL, False, "Beyond this machine, let everybody who reaches the port ask filter, "
         "prioritize and preempt, without a certificate; bind is not served."),
    Flag("allowed-client-names", STRINGS, (), "Names such a certificate may bear; empty: any."),
    Flag("max-names-bytes", INT, MAX_NAMES_BYTES, "The most a request may weigh that names nodes."),
    Flag("max-nodes-bytes", INT, MAX_NODES_BYTES, "The most a request may weigh that brings whole nodes or pods."),
    Flag("authorization-always-allow-paths", STRINGS, ALWAYS_ALLOWED,
         "Pages open to all; for others the API server is asked. A `*` at the end matches any rest."),
)  # fmt: skip
_LOGS = (
    Flag("v", LEVEL, 0, "How much to log: 2 tells of every request.", short="v"),
    Flag("logging-format", STRING, "text", "text or json."),
)
_GLOBAL = (Flag("help", BOOL, False, "Show this and exit.", short="h"),)

GROUPS: Final[Mapping[str, tuple[Flag, ...]]] = {
    "Cluster": _CLUSTER,
    "Verb": _VERBS,
    "Serving": _SERVING,
    "Log": _LOGS,
    "Global": _GLOBAL,
}
"""By group."""

FLAGS: Final[Mapping[str, Flag]] = {flag.name: flag for flags in GROUPS.values() for flag in flags}
"""By name."""
