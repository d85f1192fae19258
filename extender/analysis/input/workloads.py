"""Workloads: controllers of pods that are read from files, with the template of their pods."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec.structs import replace

from extender.api.kinds.meta import Condition, Int32, KubernetesObject, KubernetesStruct, ObjectMeta
from extender.api.kinds.pod import PodSpec
from extender.api.kinds.storage import PersistentVolumeClaim


class PodTemplate(KubernetesStruct, frozen=True, kw_only=True):
    """The template of the pods of a workload."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class StatefulSetOrdinals(KubernetesStruct, frozen=True, kw_only=True):
    """The number of the first pod of a stateful set."""

    start: Int32 = 0


class WorkloadSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The fields of all kinds of workloads; a kind has some of them.

    Attributes:
        selector: the label selector as plain values; that of a replication controller is a mapping of labels.
        template: the pod template; None if the file has only the selector.
        job_template: the template of the jobs of a cron job.
    """

    replicas: Int32 | None = None
    parallelism: Int32 | None = None
    completions: Int32 | None = None
    suspend: bool | None = None
    ordinals: StatefulSetOrdinals = StatefulSetOrdinals()
    selector: dict[str, Any] | None = None
    template: PodTemplate | None = None
    volume_claim_templates: tuple[PersistentVolumeClaim, ...] = ()
    job_template: "JobTemplate | None" = None


class JobTemplate(KubernetesStruct, frozen=True, kw_only=True):
    """The template of the jobs of a cron job."""

    spec: WorkloadSpec = WorkloadSpec()


class WorkloadStatus(KubernetesStruct, frozen=True, kw_only=True):
    """The field of a status that is read."""

    conditions: tuple[Condition, ...] = ()


class Workload(KubernetesObject, frozen=True, kw_only=True):
    """A controller of pods: a Deployment, ReplicaSet, ReplicationController, StatefulSet, DaemonSet, Job or CronJob.

    After `expand_cron_job`, the spec of a CronJob is that of its next job.
    """

    kind: str = ""
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()

    @property
    def is_finished(self) -> bool:
        """Whether this is a finished Job. Source: pkg/controller/job/util/utils.go, IsJobFinished (1.37)."""
        conditions = (condition for condition in self.status.conditions if condition.status == "True")
        return any(condition.type in {"Complete", "Failed"} for condition in conditions)

    @property
    def key(self) -> str:
        """The workload in kubectl's notation with its namespace: `deployment/shop/web`."""
        return f"{self.kind.lower()}/{self.metadata.namespace}/{self.metadata.name}"

    @property
    def spec_path(self) -> str:
        """The path of the spec in the object of the API server: `spec`."""
        return "spec.jobTemplate.spec" if self.kind == "CronJob" else "spec"


def expand_cron_job(workload: Workload) -> Workload:
    """Return a cron job with the spec of its next job; a suspended one has no next job. Return others unchanged."""
    if workload.kind != "CronJob":
        return workload
    job = (workload.spec.job_template or JobTemplate()).spec
    return replace(workload, spec=replace(job, suspend=bool(job.suspend or workload.spec.suspend)))


WORKLOAD_VERSIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Deployment": "apps/v1",
        "ReplicaSet": "apps/v1",
        "StatefulSet": "apps/v1",
        "DaemonSet": "apps/v1",
        "Job": "batch/v1",
        "CronJob": "batch/v1",
        "ReplicationController": "v1",
    }
)
"""The apiVersion of each kind of workload."""

WORKLOAD_ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        alias: kind
        for kind, short_name in (
            ("Deployment", "deploy"),
            ("ReplicaSet", "rs"),
            ("StatefulSet", "sts"),
            ("DaemonSet", "ds"),
            ("Job", "job"),
            ("CronJob", "cj"),
            ("ReplicationController", "rc"),
        )
        for name in (kind.lower(), f"{kind.lower()}s", short_name)
        for alias in (name, f"{name}.{WORKLOAD_VERSIONS[kind].rpartition('/')[0]}".rstrip("."))
    }
)
"""The kinds of workloads by the names that kubectl accepts and prints: `deployment`, `deploy`, `deployment.apps`."""
