"""Set the defaults of new pods: default fields, priority, tolerations and QoS class.

Source: pkg/apis/core/v1/defaults.go, SetDefaults_PodSpec; plugin/pkg/admission/priority/admission.go, Plugin.Admit;
plugin/pkg/admission/defaulttolerationseconds/admission.go, Plugin.Admit (1.36).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from extender.api.defaults import (
    DEFAULT_SCHEDULER_NAME,
    SYSTEM_PRIORITIES,
    default_host_port,
    fill_requests_from_limits,
)
from extender.api.quantity import milli_value
from extender.fake_apiserver.registry.api_errors import new_forbidden
from extender.fake_apiserver.registry.resources import PODS, Object

_GRACE_SECONDS: Final = 30
_TOLERATION_SECONDS: Final = 300
_DEFAULT_TOLERATED_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_QOS_RESOURCES: Final = ("cpu", "memory")


def set_defaults(spec: Object, *, template: bool = False) -> Object:
    """Return the spec of a pod with default fields. The spec of a pod template gets fewer defaults."""
    host_network = bool(spec.get("hostNetwork")) and not template
    defaulted_spec: Object = {} if template else {"enableServiceLinks": True}
    defaulted_spec |= {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": DEFAULT_SCHEDULER_NAME,
        **{name: value for name, value in spec.items() if value not in (None, "")},
    }
    for field in ("initContainers", "containers"):
        if field in spec:
            defaulted_spec[field] = [
                _set_container_defaults(container, template, host_network) for container in spec[field]
            ]
    return defaulted_spec


def _set_container_defaults(container: Object, template: bool, host_network: bool) -> Object:
    image = str(container.get("image", ""))
    tag = image.rsplit("/", 1)[-1].partition("@")[0].partition(":")[2]
    is_latest = tag in {"", "latest"} and "@" not in image
    resources = dict(container.get("resources") or {})
    limits = resources.get("limits")
    if limits and not template:
        resources["requests"] = fill_requests_from_limits(resources.get("requests") or {}, limits)
    defaulted_container: Object = {
        "imagePullPolicy": "Always" if is_latest else "IfNotPresent",
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        **container,
        "resources": resources,
    }
    if ports := container.get("ports"):
        defaulted_container["ports"] = [_set_port_defaults(port, host_network=host_network) for port in ports]
    return defaulted_container


def _set_port_defaults(port: Object, *, host_network: bool) -> Object:
    defaulted_port = {"protocol": "TCP", **port}
    host_port = default_host_port(
        int(port.get("containerPort", 0)), int(port.get("hostPort", 0)), host_network=host_network
    )
    return {**defaulted_port, "hostPort": host_port} if host_port else defaulted_port


def admit(spec: Object, name: str, priority_classes: Mapping[str, Object]) -> Object:
    """Return the spec after admission, which adds the priority, the preemption policy and default tolerations.

    *name* is for error messages.

    Raises:
        StatusError: 403 if the priority class is unknown, or the priority or preemption policy in the spec differs from
            the priority class.
    """
    return {
        **spec,
        **_resolve_priority(spec, name, priority_classes),
        "tolerations": _add_default_tolerations(spec.get("tolerations") or []),
    }


def _resolve_priority(spec: Object, name: str, priority_classes: Mapping[str, Object]) -> Object:
    """Return the fields of the spec that depend on the priority class."""
    class_name = spec.get("priorityClassName", "")
    policy = "PreemptLowerPriority"
    priority = 0
    if class_name in priority_classes:
        priority_class: Object | None = priority_classes[class_name]
    elif class_name in SYSTEM_PRIORITIES:
        priority_class, priority = None, SYSTEM_PRIORITIES[class_name]
    elif class_name:
        raise new_forbidden(PODS, name, f"no PriorityClass with name {class_name} was found")
    else:
        global_defaults = [candidate for candidate in priority_classes.values() if candidate.get("globalDefault")]
        priority_class = min(global_defaults, key=lambda candidate: int(candidate.get("value", 0)), default=None)
    if priority_class is not None:
        class_name = priority_class["metadata"]["name"]
        priority, policy = int(priority_class.get("value", 0)), priority_class.get("preemptionPolicy") or policy
    requested_priority = spec.get("priority")
    if requested_priority is not None and requested_priority != priority:
        message = f"the integer value of priority ({requested_priority}) must not be provided in pod spec"
        ending = f"priority admission controller computed {priority} from the given PriorityClass name"
        raise new_forbidden(PODS, name, f"{message}; {ending}")
    requested_policy = spec.get("preemptionPolicy")
    if requested_policy is not None and requested_policy != policy:
        message = f"the string value of PreemptionPolicy ({requested_policy}) must not be provided in pod spec"
        ending = f"priority admission controller computed {policy} from the given PriorityClass name"
        raise new_forbidden(PODS, name, f"{message}; {ending}")
    fields: Object = {"priority": priority, "preemptionPolicy": policy}
    return {**fields, "priorityClassName": class_name} if class_name else fields


def _add_default_tolerations(tolerations: Sequence[Object]) -> list[Object]:
    default_tolerations = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATION_SECONDS}
        for key in _DEFAULT_TOLERATED_TAINTS
        if not any(
            toleration.get("key", key) in {key, ""} and toleration.get("effect", "NoExecute") in {"NoExecute", ""}
            for toleration in tolerations
        )
    ]
    return [*tolerations, *default_tolerations]


def get_pod_qos(spec: Object) -> str:
    """Return the QoS class: Guaranteed, Burstable or BestEffort.

    Source: pkg/apis/core/helper/qos/qos.go, ComputePodQOS (1.36).
    """
    containers = [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]
    requests = [_get_positive_amounts(container, "requests") for container in containers]
    limits = [_get_positive_amounts(container, "limits") for container in containers]
    if not any(requests) and not any(limits):
        return "BestEffort"
    all_limited = all(len(container_limits) == len(_QOS_RESOURCES) for container_limits in limits)
    return "Guaranteed" if all_limited and requests == limits else "Burstable"


def _get_positive_amounts(container: Object, field: str) -> dict[str, int]:
    amounts = (container.get("resources") or {}).get(field) or {}
    values = {name: milli_value(amounts[name]) for name in _QOS_RESOURCES if name in amounts}
    return {name: amount for name, amount in values.items() if amount > 0}
