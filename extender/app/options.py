"""The options of the processes `extender schedule` and `extender serve`, as the command line sets them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from extender.app.wiring import SchedulerSetup
from extender.cache.cache import Cache
from extender.client.kubeconfig import CredentialSource
from extender.extender_api.best_node.assumptions import DEFAULT_TIMEOUT_SECONDS
from extender.extender_api.best_node.choice import FilterAnswer
from extender.extender_api.request_limits import DEFAULT_LIMITS, RequestLimits
from extender.extender_api.routes import VerbPaths
from extender.extender_api.score_scaling import ScoreRange
from extender.logs.klog import LoggingOptions
from extender.serving.serving_options import (
    ALWAYS_ALLOWED_PATHS,
    AuthenticationOptions,
    AuthorizationOptions,
    ServingOptions,
)


@dataclass(frozen=True, slots=True)
class ScheduleOptions:
    """The options of `extender schedule`.

    Attributes:
        setup: the configuration with the changes of the command line, and its plugins.
        serving: the options of the HTTPS port; None: no port.
        authentication, authorization: the options for callers of the HTTPS port.
        max_in_unschedulable_pods_seconds: the time after which an unschedulable pod is retried.
        features: true for enabled feature gates, by (name, stage).
        disabled_metrics: the metric families to leave out.
        shows_hidden_metrics: whether metrics that the release hides are exposed.
        flags: the values of all flags by name, as text for the page `/flagz`.
        warnings: the lines to log after the start.
        serves_ui: whether the HTTPS port has the pages `/ui/`.

    Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.flushUnschedulablePodsLeftover (1.36).
    """

    setup: SchedulerSetup
    credential_source: CredentialSource
    serving: ServingOptions | None = field(default_factory=ServingOptions)
    authentication: AuthenticationOptions = field(default_factory=AuthenticationOptions)
    authorization: AuthorizationOptions = field(default_factory=AuthorizationOptions)
    max_in_unschedulable_pods_seconds: float = 300.0
    logs: LoggingOptions = field(default_factory=LoggingOptions)
    features: Mapping[tuple[str, str], bool] = field(default_factory=dict)
    disabled_metrics: frozenset[str] = frozenset()
    shows_hidden_metrics: bool = False
    flags: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    serves_ui: bool = False


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The options of `extender serve`.

    Attributes:
        setup: the configuration with the profiles that the verbs use.
        cluster: a live cluster's credentials, or a recorded cluster; None: the requests contain the whole nodes.
        serving: the address and certificate of the verbs; plain HTTP without a certificate.
        config_file: the path of the configuration file, which is reloaded when it changes; empty: no file.
        diagnostics_serving: the second HTTPS port, with health, metrics and explain only; None: no second port.
        client_ca_file: the PEM file of the CAs that sign the callers' client certificates; empty: callers need none.
        client_names: the allowed common names of client certificates; empty: any name.
        other_scheduler_names: additional scheduler names; the verb bind may bind pods with these names.
        always_allowed_paths: the paths of pages without authorization; other pages need the API server's authorization.
        score_range: the score range of the verb prioritize.
        standalone: whether the process also schedules the pods of the profiles.
        filter_answer: the nodes in the answer of the verb filter.
        assume_timeout_seconds: the time after which a pod is no longer assumed on the node that filter chose.
        start_lines: the lines to log after the start.
        serves_ui: whether the ports have the pages `/ui/`.

    Source: apiserver/pkg/server/options/authorization.go, DelegatingAuthorizationOptions.AddFlags (1.36).
    """

    setup: SchedulerSetup
    cluster: CredentialSource | Cache | None
    serving: ServingOptions
    config_file: str = ""
    diagnostics_serving: ServingOptions | None = None
    client_ca_file: str = ""
    client_names: frozenset[str] = frozenset()
    request_limits: RequestLimits = DEFAULT_LIMITS
    paths: VerbPaths = field(default_factory=VerbPaths)
    other_scheduler_names: tuple[str, ...] = ()
    always_allowed_paths: tuple[str, ...] = ALWAYS_ALLOWED_PATHS
    score_range: ScoreRange = ScoreRange.TEN
    standalone: bool = False
    filter_answer: FilterAnswer = FilterAnswer.FEASIBLE
    assume_timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    start_lines: tuple[str, ...] = ()
    logs: LoggingOptions = field(default_factory=LoggingOptions)
    serves_ui: bool = False
