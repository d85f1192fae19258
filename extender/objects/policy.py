"""Who goes first and who may be disturbed: priority classes and disruption budgets."""

from datetime import datetime

from msgspec import field

from extender.objects.meta import KubernetesObject, LabelSelector
from extender.objects.record import Int32, Record


class PodDisruptionBudgetSpec(Record, frozen=True, kw_only=True):
    """The pods a budget protects; the two limits are numbers or percentages."""

    selector: LabelSelector | None = None
    min_available: Int32 | str | None = None
    max_unavailable: Int32 | str | None = None


class PodDisruptionBudgetStatus(Record, frozen=True, kw_only=True):
    """How many more pods may be evicted, and those whose eviction is already counted."""

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
    """A named priority."""

    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str | None = None
