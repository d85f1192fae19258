"""What a scheduler process is told to do, read from its command line; see `cli` and `process`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from extender.client.kubeconfig import Place
from extender.cluster.state import ClusterState
from extender.observe.logs import Logging
from extender.web.app import Paths
from extender.web.scaling import ScoreRange
from extender.web.settings import ALWAYS_ALLOWED, Authentication, Authorization, Serving
from extender.web.wire import MAX_NAMES_BYTES, MAX_NODES_BYTES
from extender.wiring import Scheduling


@dataclass(frozen=True, slots=True)
class ScheduleOptions:
    """How to run.

    Attributes:
        scheduling: the configuration, with what the command line changes in it, and its plugins.
        place: where the credentials of the scheduler are found.
        serving: None serves nothing.
        authentication, authorization: of the service's callers.
        max_parked: seconds after which a parked pod is tried again. Source: D027.
        logs: how to log.
        features: every gate by name and stage, and whether it is on.
        disabled_metrics: names of families to leave out.
        flags: every flag with its value, as `/flagz` shows them.
        notes: what to say in the log once the process has begun its work.
    """

    scheduling: Scheduling
    place: Place
    serving: Serving | None = field(default_factory=Serving)
    authentication: Authentication = field(default_factory=Authentication)
    authorization: Authorization = field(default_factory=Authorization)
    max_parked: float = 300.0
    logs: Logging = field(default_factory=Logging)
    features: Mapping[tuple[str, str], bool] = field(default_factory=dict)
    disabled_metrics: frozenset[str] = frozenset()
    flags: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """How to answer the extender verbs.

    Attributes:
        scheduling: the profiles that answer.
        cluster: where a live cluster is found; a recorded one; None: there is none but what requests bring along.
        serving: where, and with what certificate; without one over plain HTTP.
        config: file the profiles come from, taken over when it changes; empty: there is none.
        pages: where health, metrics and explain are served over HTTPS without the verbs; None: nowhere else.
        client_authority: file in PEM; callers of the verbs must show a certificate signed by it. Empty: they need none.
        client_names: names that such a certificate may bear; empty: any.
        most_bytes: what a request may weigh at most that names nodes, and one that brings whole objects.
        paths: where the verbs are served.
        others: schedulers whose pods are bound beside those of the profiles.
        always_allowed: pages open to all; for the others the API server is asked. Source: G048.
        score_range: how prioritize answers.
        standalone: schedule the pods of the profiles as well.
        logs: how to log.
    """

    scheduling: Scheduling
    cluster: Place | ClusterState | None
    serving: Serving
    config: str = ""
    pages: Serving | None = None
    client_authority: str = ""
    client_names: frozenset[str] = frozenset()
    most_bytes: tuple[int, int] = (MAX_NAMES_BYTES, MAX_NODES_BYTES)
    paths: Paths = field(default_factory=Paths)
    others: tuple[str, ...] = ()
    always_allowed: tuple[str, ...] = ALWAYS_ALLOWED
    score_range: ScoreRange = ScoreRange.TEN
    standalone: bool = False
    logs: Logging = field(default_factory=Logging)
