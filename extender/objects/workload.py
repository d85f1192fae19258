"""What groups pods: namespaces, services and controllers, as far as their selectors go."""

from msgspec import field

from extender.objects.meta import KubernetesObject, LabelSelector
from extender.objects.record import Record


class Namespace(KubernetesObject, frozen=True, kw_only=True):
    """A namespace; its labels are what namespace selectors look at."""


class ServiceSpec(Record, frozen=True, kw_only=True):
    """The labels of a service's pods; none means no pod."""

    selector: dict[str, str] = field(default_factory=dict)


class Service(KubernetesObject, frozen=True, kw_only=True):
    """A service."""

    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(Record, frozen=True, kw_only=True):
    """The labels of a replication controller's pods."""

    selector: dict[str, str] = field(default_factory=dict)


class ReplicationController(KubernetesObject, frozen=True, kw_only=True):
    """A replication controller."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class ReplicaSetSpec(Record, frozen=True, kw_only=True):
    """The pods of a replica set."""

    selector: LabelSelector | None = None


class ReplicaSet(KubernetesObject, frozen=True, kw_only=True):
    """A replica set."""

    spec: ReplicaSetSpec = ReplicaSetSpec()


class StatefulSetSpec(Record, frozen=True, kw_only=True):
    """The pods of a stateful set."""

    selector: LabelSelector | None = None


class StatefulSet(KubernetesObject, frozen=True, kw_only=True):
    """A stateful set."""

    spec: StatefulSetSpec = StatefulSetSpec()
