"""What a scheduler process is told to do, read from its command line; see `cli.schedule` and `process`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from extender.client.kubeconfig import Place
from extender.observe.logs import Logging
from extender.web.settings import Authentication, Authorization, Serving
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
