"""The flags of `extender serve`; flags that kube-scheduler also has keep their names."""

from collections.abc import Mapping
from typing import Final

from extender.cli.pflag import BOOL, DURATION, GATES, INT, LEVEL, STRING, STRINGS, Flag, FlagType
from extender.cli.schedule_flags import EMULATED_VERSION
from extender.extender_api.best_node.assumptions import DEFAULT_TIMEOUT_SECONDS
from extender.extender_api.best_node.choice import FilterAnswer
from extender.extender_api.request_limits import DEFAULT_LIMITS
from extender.extender_api.score_scaling import ScoreRange
from extender.serving.serving_options import ALWAYS_ALLOWED_PATHS

FILES: Final = FlagType("FILE", lambda text: (text,), ",".join, repeatable=True)

_CLUSTER = (
    Flag("file", FILES, (),
         "Recorded cluster instead of a live one: YAML or JSON, or a directory; - is standard input; repeatable.",
         short="f"),
    Flag("override", BOOL, False, "With --file: a later object replaces an earlier one of the same kind and name."),
    Flag("without-cluster", BOOL, False, "No cluster: requests must contain whole nodes."),
    Flag("config", STRING, "", "File with a KubeSchedulerConfiguration or a Policy; the verbs answer "
         "with its profiles. Reloaded on change."),
    Flag("kubeconfig", STRING, "", "File with the API server's address and the credentials; overrides "
         "the configuration."),
    Flag("master", STRING, "", "Address of the API server; overrides the kubeconfig."),
    Flag("standalone", BOOL, False, "Also schedule the pods of the profiles, like extender schedule."),
    Flag("feature-gates", GATES, (), "Feature gates, as in kube:DynamicResourceAllocation=false; repeatable."),
    EMULATED_VERSION,
)  # fmt: skip
_VERBS = (
    Flag("url-prefix", STRING, "", "Path before the verbs, as in the scheduler's urlPrefix."),
    Flag("filter-verb", STRING, "filter", "Path of filter, as in the scheduler's filterVerb; empty: not served."),
    Flag("prioritize-verb", STRING, "prioritize", "Path of prioritize, as in prioritizeVerb; empty: not served."),
    Flag("preempt-verb", STRING, "preempt", "Path of preempt, as in preemptVerb; empty: not served."),
    Flag("bind-verb", STRING, "bind", "Path of bind, as in bindVerb; only for a live cluster; empty: not served."),
    Flag("score-range", STRING, ScoreRange.TEN.value, "Scores of prioritize: 0-10: kube-scheduler's "
         "range; relative: the same minus the commonest score, without the nodes that then have 0, which is faster; "
         "raw: the totals of the profile."),
    Flag("filter-answer", STRING, FilterAnswer.FEASIBLE.value, "Nodes in the answer of filter: feasible: all nodes "
         "that fit; best: only the node that the profile would select. kube-scheduler then neither scores nodes nor "
         "calls prioritize; the pod is assumed on the node until its binding is seen."),
    Flag("assume-timeout", DURATION, DEFAULT_TIMEOUT_SECONDS, "With --filter-answer=best, the time after which a pod "
         "whose binding was not seen is no longer assumed."),
    Flag("kube-scheduler-config", STRING, "", "With --filter-answer=best, file with the configuration of the calling "
         "kube-scheduler. The plugins and verbs that it no longer calls are logged. If the file contradicts "
         "--filter-answer=best, serve does not start."),
    Flag("scheduler-name", STRINGS, (), "Schedulers whose pods may be bound, in addition to those of the profiles."),
)  # fmt: skip
_SERVING = (
    Flag("bind-address", STRING, "127.0.0.1", "Address to listen on. An address other than loopback "
         "requires --client-ca-file or --anonymous-verbs."),
    Flag("port", INT, 8888, "Port; 0: any free port."),
    Flag("secure-port", INT, 0, "Second port for health, metrics and explain only, over HTTPS on all addresses; "
         "the verbs can then stay on loopback; 0: no second port."),
    Flag("tls-cert-file", STRING, "", "File with the certificate; empty: plain HTTP. Reloaded on change."),
    Flag("tls-private-key-file", STRING, "", "File with the certificate's private key."),
    Flag("client-ca-file", STRING, "", "File with CAs; clients of the verbs need a certificate signed by one of them."),
    Flag("anonymous-verbs", BOOL, False, "Allow an address other than loopback without client certificates: "
         "every client can call filter, prioritize and preempt; bind is not served."),
    Flag("allowed-client-names", STRINGS, (), "Allowed common names of client certificates; empty: any."),
    Flag("max-names-bytes", INT, DEFAULT_LIMITS.max_names_bytes,
         "Maximum body size of a request with node names, in bytes."),
    Flag("max-nodes-bytes", INT, DEFAULT_LIMITS.max_bytes,
         "Maximum body size of a request with whole nodes or pods, in bytes."),
    Flag("max-nodes", INT, DEFAULT_LIMITS.max_nodes, "Maximum number of nodes of a request."),
    Flag("max-victims", INT, DEFAULT_LIMITS.max_victims, "Maximum number of victims of a preempt request."),
    Flag("authorization-always-allow-paths", STRINGS, ALWAYS_ALLOWED_PATHS,
         "Pages without authorization; the API server authorizes all others. A `*` at the end matches any suffix."),
    Flag("ui", BOOL, False, "Serve the pages /ui/ on the ports; they show the cluster and why pods wait. An address "
         "other than loopback requires a live cluster or --client-ca-file, because readers are then authenticated."),
)  # fmt: skip
_LOGS = (
    Flag("v", LEVEL, 0, "Log verbosity: 2 logs every request.", short="v"),
    Flag("logging-format", STRING, "text", "text or json."),
)
_GLOBAL = (Flag("help", BOOL, False, "Show this help and exit.", short="h"),)

GROUPS: Final[Mapping[str, tuple[Flag, ...]]] = {
    "Cluster": _CLUSTER,
    "Verb": _VERBS,
    "Serving": _SERVING,
    "Log": _LOGS,
    "Global": _GLOBAL,
}
"""The flags by group."""

FLAGS: Final[Mapping[str, Flag]] = {flag.name: flag for flags in GROUPS.values() for flag in flags}
"""The flags by name."""
