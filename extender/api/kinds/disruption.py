"""Priority classes and pod disruption budgets."""

from datetime import datetime

from msgspec import field

from extender.api.kinds.meta import Int32, KubernetesObject, KubernetesStruct, LabelSelector


class PodDisruptionBudgetSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The pods that a budget protects, and the limits as numbers or percentages."""

    selector: LabelSelector | None = None
    min_available: Int32 | str | None = None
    max_unavailable: Int32 | str | None = None


class PodDisruptionBudgetStatus(KubernetesStruct, frozen=True, kw_only=True):
    """The number of evictions that are still allowed, and the pods whose eviction is already counted."""

    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, datetime] = field(default_factory=dict)
    current_healthy: Int32 = 0
    desired_healthy: Int32 = 0
    expected_pods: Int32 = 0


class PodDisruptionBudget(KubernetesObject, frozen=True, kw_only=True):
    """A limit on voluntary evictions."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class PriorityClass(KubernetesObject, frozen=True, kw_only=True):
    """A named priority value."""

    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str | None = None
