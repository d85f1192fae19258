"""Rules of the API server for manifests, as far as their fields influence scheduling, with its messages.

Objects of an API server were checked there, so they need no check here.

Source: pkg/apis/core/validation/validation.go, ValidateObjectMeta, ValidatePodCreate, ValidateNode;
pkg/apis/apps/validation/validation.go, ValidateDeploymentSpec, ValidatePodTemplateSpecForReplicaSet (1.37).
"""

from collections.abc import Iterator
from typing import Final

from extender.analysis.input.field_errors import (
    check_label_value,
    check_labels,
    check_qualified_name,
    check_supported_value,
    duplicate_value,
    required_value,
)
from extender.analysis.input.pod_rules import (
    PREEMPTION_POLICIES,
    TAINT_EFFECTS,
    check_label_selector,
    check_pod_spec,
    check_quantities,
)
from extender.analysis.input.workloads import Workload
from extender.api.codec import DecodeError, from_builtins
from extender.api.kinds.disruption import PodDisruptionBudget, PriorityClass
from extender.api.kinds.meta import KubernetesObject, LabelSelector, ObjectMeta
from extender.api.kinds.node import Node, Taint
from extender.api.kinds.pod import Pod
from extender.api.label_syntax import invalid_value, validate_dns_label, validate_subdomain
from extender.api.matching import selector_from_label_selector
from extender.api.scheme import KINDS
from extender.api.validation import ObjectError, prefix_paths, validate_object

_KINDS_WITHOUT_PODS: Final = frozenset(kind for _, kind in KINDS)
"""Kinds that scheduling reads: a workload of such a kind says something even without a template."""

_KINDS_WITH_OPTIONAL_SELECTOR: Final = ("Job", "CronJob", "ReplicationController")
"""The API server sets the selector of these kinds."""


def find_invalid_fields(obj: KubernetesObject) -> Iterator[ObjectError]:
    """Yield the path and the error of each field of a manifest that the API server would refuse."""
    yield from prefix_paths("metadata", _check_metadata(obj.metadata))
    match obj:
        case Pod():
            yield from prefix_paths("spec", check_pod_spec(obj.spec))
        case Workload():
            yield from _check_workload(obj)
        case Node():
            yield from _check_taints(obj.spec.taints)
            yield from check_quantities("status.capacity", obj.status.capacity)
            yield from check_quantities("status.allocatable", obj.status.allocatable)
        case PriorityClass() if obj.preemption_policy is not None:
            yield from check_supported_value("preemptionPolicy", obj.preemption_policy, PREEMPTION_POLICIES)
        case PodDisruptionBudget():
            yield from check_label_selector(obj.spec.selector, "spec.selector")


def _check_metadata(meta: ObjectMeta) -> Iterator[ObjectError]:
    if meta.name and (error := validate_subdomain(meta.name)):
        yield "name", invalid_value(meta.name, error)
    if meta.namespace and (error := validate_dns_label(meta.namespace)):
        yield "namespace", invalid_value(meta.namespace, error)
    yield from prefix_paths("labels", check_labels(meta.labels))


def _check_workload(workload: Workload) -> Iterator[ObjectError]:
    template, path = workload.spec.template, f"{workload.spec_path}.template"
    if template is None:
        if workload.kind not in _KINDS_WITHOUT_PODS:
            yield path, required_value("without it, the workload has no pods")
        return
    if workload.kind not in _KINDS_WITH_OPTIONAL_SELECTOR:
        yield from _check_selector(workload, template.metadata.labels)
    yield from prefix_paths(f"{path}.metadata.labels", check_labels(template.metadata.labels))
    yield from prefix_paths(f"{path}.spec", check_pod_spec(template.spec))


def _check_selector(workload: Workload, template_labels: dict[str, str]) -> Iterator[ObjectError]:
    """Yield the errors of a selector. Without a valid one, default spreading would count pods of other workloads."""
    if workload.spec.selector is None:
        yield "spec.selector", required_value("the labels of its pods, such as {matchLabels: {app: web}}")
        return
    try:
        selector = from_builtins(workload.spec.selector, LabelSelector)
    except DecodeError as error:
        yield f"spec.selector.{error.path}", error.message
        return
    errors = list(prefix_paths("spec.selector", validate_object(selector)))
    errors += check_label_selector(selector, "spec.selector")
    yield from errors
    if selector == LabelSelector():
        yield "spec.selector", invalid_value({}, f"empty selector is invalid for {workload.kind.lower()}")
    elif not errors and not selector_from_label_selector(selector).matches(template_labels):
        message = "`selector` does not match template `labels`"
        yield "spec.template.metadata.labels", invalid_value(template_labels, message)


def _check_taints(taints: tuple[Taint, ...]) -> Iterator[ObjectError]:
    pairs: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        path = f"spec.taints[{index}]"
        yield from check_qualified_name(f"{path}.key", taint.key)
        yield from check_label_value(f"{path}.value", taint.value)
        yield from check_supported_value(f"{path}.effect", taint.effect, TAINT_EFFECTS)
        if (taint.key, taint.effect) in pairs:
            yield (
                path,
                f"{duplicate_value(f'{taint.key}:{taint.effect}')}: taints must be unique by key and effect pair",
            )
        pairs.add((taint.key, taint.effect))
