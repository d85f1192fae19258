"""Namespaces, services and controllers with their pod selectors."""

from msgspec import field

from extender.api.kinds.meta import KubernetesObject, KubernetesStruct, LabelSelector


class Namespace(KubernetesObject, frozen=True, kw_only=True):
    """A namespace; namespace selectors match its labels."""


class ServiceSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The pod selector of a service; an empty selector matches no pod."""

    selector: dict[str, str] = field(default_factory=dict)


class Service(KubernetesObject, frozen=True, kw_only=True):
    """A service."""

    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The pod selector of a replication controller."""

    selector: dict[str, str] = field(default_factory=dict)


class ReplicationController(KubernetesObject, frozen=True, kw_only=True):
    """A replication controller."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class ReplicaSetSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The pod selector of a replica set."""

    selector: LabelSelector | None = None


class ReplicaSet(KubernetesObject, frozen=True, kw_only=True):
    """A replica set."""

    spec: ReplicaSetSpec = ReplicaSetSpec()


class StatefulSetSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The pod selector of a stateful set."""

    selector: LabelSelector | None = None


class StatefulSet(KubernetesObject, frozen=True, kw_only=True):
    """A stateful set."""

    spec: StatefulSetSpec = StatefulSetSpec()
